"""Untrusted text on a terminal, behind a mark on every line, so that none of it looks like mcphost's own words.

A terminal wraps a long line to its first column, where mcphost's own words stand, so lines are wrapped here. Text for
a pipe or a file needs no margin.
"""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Final

from mcphost.protocol.display import TAB

MARK: Final = "│ "
"""The mark before each line of untrusted text."""

LABEL: Final = 12
"""Columns of the labels before mcphost's own facts."""

LEAST_COLUMNS: Final = 20
"""The least width that is assumed, whatever a terminal reports."""

BLANK_LINES: Final = 3
"""More empty lines in a row than these are counted instead of shown."""


def cells(text: str) -> int:
    """The columns that ``text`` takes on a terminal."""
    return len(text) if text.isascii() else sum(map(cell, text))


def cell(character: str) -> int:
    """The columns that a character takes; the larger number where terminals differ."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def size(stream: IO[str] | None) -> tuple[int, int]:
    """Columns and rows of the stream's terminal, or those of the environment if it is not a terminal."""
    found = shutil.get_terminal_size()
    with suppress(OSError, ValueError):
        found = found if stream is None else os.get_terminal_size(stream.fileno())
    return max(found.columns or 80, LEAST_COLUMNS), found.lines or 24


class Margin:
    """Puts a mark before every line of a text that arrives in pieces and is already safe to show.

    Empty lines are held back until more text follows, and counted where they are many. With ``at_spaces``, lines break
    between words: the beginning of a word that does not fit is taken back, for which a terminal is needed.
    """

    def __init__(self, width: int, mark: str = MARK, *, at_spaces: bool = False) -> None:
        self._width, self._mark, self._at_spaces = width, mark, at_spaces
        self._word = ""
        """With ``at_spaces``, what was written of the current word."""
        self._movable = False
        """True if there is another word before it on its line."""
        self._column = 0
        """Columns of the current line; 0 before it begins."""
        self._blanks = ""
        """Leading white space of a line that has nothing else yet."""
        self._empty = 0
        """Empty lines that are held back."""

    def feed(self, text: str) -> str:
        """The text that can be written now."""
        first, *others = text.split("\n")
        written = list(self._add(first))
        for line in others:
            written.append(self._end_line())
            written.extend(self._add(line))
        return "".join(written)

    def end(self) -> str:
        """End the current line; empty lines at the end of a text are left out."""
        self._blanks, self._empty = "", 0
        return self._end_line() if self._column else ""

    def _add(self, piece: str) -> Iterator[str]:
        if not self._column:
            self._blanks += piece
            if not self._blanks.strip():
                return
            yield from self._held_lines()
            piece, self._blanks = self._blanks, ""
        yield from self._words(piece) if self._at_spaces else self._put(piece)

    def _put(self, piece: str) -> Iterator[str]:
        plain = piece.isascii() and "\t" not in piece
        yield from self._chunks(piece) if plain else map(self._one, piece)

    def _words(self, piece: str) -> Iterator[str]:
        for token in re.findall(r"\s+|\S+", piece):
            fits = self._column + cells(token) <= self._width
            if token.isspace():
                self._word, self._movable = "", True
                if fits:
                    yield from self._put(token)
                else:
                    self._column = self._width  # no blank begins a line that is broken here
                continue
            if not fits and self._movable and self._column > cells(self._mark):
                back = cells(self._word)
                yield f"\x1b[{back}D\x1b[K\n" if back else "\n"
                token, self._word, self._column, self._movable = self._word + token, "", 0, False
            yield from self._put(token)
            self._word += token

    def _held_lines(self) -> Iterator[str]:
        count, self._empty = self._empty, 0
        bare = self._mark.rstrip() + "\n"
        yield f"{self._mark}⏎×{count + 1}\n" if count >= BLANK_LINES else bare * count

    def _end_line(self) -> str:
        self._word, self._movable = "", False
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
        """Return what begins a new line if the current one has no room for ``wide`` columns."""
        begun = ""
        if self._column and self._column + wide > self._width:
            begun, self._column = "\n", 0
        if not self._column:
            self._column = cells(self._mark)
            begun += self._mark
        return begun


def behind_margin(text: str, width: int, mark: str = MARK) -> str:
    """A whole text behind a margin; every line ends with a newline."""
    margin = Margin(width, mark)
    return margin.feed(text) + margin.end()


def labelled(label: str, value: str, width: int) -> list[str]:
    """One of mcphost's facts: a label with its value beside it, over as many lines as the value takes."""
    indent = " " * (LABEL + 2)
    first, *others = behind_margin(value, width, indent).splitlines() or [""]
    return [f"  {label:<{LABEL}}{first[len(indent) :]}".rstrip(), *others]


def framed(title: str, text: str, width: int) -> list[str]:
    """Untrusted names and values, already safe to show, in a frame with a title of mcphost's."""
    return [f"  ╭─ {title}", *behind_margin(text, width, f"  {MARK}").splitlines(), "  ╰─"]
