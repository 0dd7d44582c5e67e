"""Text from outside on a terminal: behind a mark on every line, so that none of it looks like words of mcphost.

A terminal wraps a long line at its first column, where mcphost's own words begin; so lines are wrapped here. Text for
a pipe or a file never comes by.
"""

from __future__ import annotations

import os
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Final

MARK: Final = "│ "
"""Stands before each line of a text that is somebody else's."""

LABEL: Final = 12
"""Columns of the labels before mcphost's own facts."""

LEAST_COLUMNS: Final = 20
"""A terminal that claims fewer is taken to have so many."""

BLANK_LINES: Final = 3
"""More empty lines than these in a row are counted instead of shown."""

TAB: Final = 8


def cells(text: str) -> int:
    """Columns of a terminal that ``text`` takes."""
    return len(text) if text.isascii() else sum(map(cell, text))


def cell(character: str) -> int:
    """Columns that a character takes; rather too many than too few where terminals differ."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def size(stream: IO[str] | None) -> tuple[int, int]:
    """Columns and rows of the terminal behind a stream; those that the environment claims only where there is none."""
    found = shutil.get_terminal_size()
    with suppress(OSError, ValueError):
        found = found if stream is None else os.get_terminal_size(stream.fileno())
    return max(found.columns or 80, LEAST_COLUMNS), found.lines or 24


class Margin:
    """Puts a mark before every line of a text that comes in pieces; the text has been made safe to show.

    Empty lines are held back until something follows them, and counted where they are many.
    """

    def __init__(self, width: int, mark: str = MARK) -> None:
        self._width, self._mark = width, mark
        self._column = 0
        """Cells of the line so far; 0: it has not begun."""
        self._blanks = ""
        """White space of a line on which there is nothing else yet."""
        self._empty = 0
        """Lines without anything, which are held back."""

    def feed(self, text: str) -> str:
        """What may be written now."""
        first, *others = text.split("\n")
        written = list(self._add(first))
        for line in others:
            written.append(self._end_line())
            written.extend(self._add(line))
        return "".join(written)

    def end(self) -> str:
        """End the line, if one has begun; empty lines at the end of a text are left out."""
        self._blanks, self._empty = "", 0
        return self._end_line() if self._column else ""

    def _add(self, piece: str) -> Iterator[str]:
        if not self._column:
            self._blanks += piece
            if not self._blanks.strip():
                return
            yield from self._held_lines()
            piece, self._blanks = self._blanks, ""
        plain = piece.isascii() and "\t" not in piece
        yield from self._chunks(piece) if plain else map(self._one, piece)

    def _held_lines(self) -> Iterator[str]:
        count, self._empty = self._empty, 0
        bare = self._mark.rstrip() + "\n"
        yield f"{self._mark}⏎×{count + 1}\n" if count >= BLANK_LINES else bare * count

    def _end_line(self) -> str:
        if not self._column:
            self._empty, self._blanks = self._empty + 1, ""
            return ""
        self._column = 0
        return "\n"

    def _chunks(self, piece: str) -> Iterator[str]:
        at = 0
        while at < len(piece):
            yield self._room(1)
            end = at + self._width - self._column
            yield piece[at:end]
            self._column += len(piece[at:end])
            at = end

    def _one(self, character: str) -> str:
        wide = TAB - self._column % TAB if character == "\t" else cell(character)
        begun = self._room(wide)
        self._column += wide
        return begun + character

    def _room(self, wide: int) -> str:
        """Begin a line where none has begun or the one there is has no room for so many cells."""
        begun = ""
        if self._column and self._column + wide > self._width:
            begun, self._column = "\n", 0
        if not self._column:
            self._column = cells(self._mark)
            begun += self._mark
        return begun


def behind_margin(text: str, width: int, mark: str = MARK) -> str:
    """The whole of a text behind a margin, each line ended."""
    margin = Margin(width, mark)
    return margin.feed(text) + margin.end()


def labelled(label: str, value: str, width: int) -> list[str]:
    """A fact of mcphost's: its label, and the value beside it however many lines it takes."""
    indent = " " * (LABEL + 2)
    first, *others = behind_margin(value, width, indent).splitlines() or [""]
    return [f"  {label:<{LABEL}}{first[len(indent) :]}".rstrip(), *others]


def framed(title: str, text: str, width: int) -> list[str]:
    """Names and values from outside, safe to show, in a frame with a title of ours."""
    return [f"  ╭─ {title}", *behind_margin(text, width, f"  {MARK}").splitlines(), "  ╰─"]
