"""Wraps the lines of a conversation. When lines are added at the end, only those are wrapped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.cells import cell_len
from textual.strip import Strip

from mcphost.protocol.display import show
from mcphost.tui.kit.markdown import Line
from mcphost.tui.kit.text_view import expand_tabs, wrap_line

LONGEST: Final = 4_000
"""Characters; a longer line is split, so that no line takes more than a frame's time."""

Row = tuple[int, int, int]
"""The number of a line, and where in it the row starts and ends."""


class WrappedLines:
    """Lines, and their rows at the width they were last wrapped for."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.rows: list[Row] = []
        self.strips: dict[int, Strip] = {}
        """Drawn rows, kept until they change."""
        self.width = 0
        self._first_rows: list[int] = []

    def replace(self, first: int, lines: Iterable[Line]) -> None:
        """Replace all lines from ``first`` on."""
        del self.lines[first:]
        self.lines.extend(lines)
        self._keep(first)
        if self.width:
            self._wrap()

    def lay_out(self, width: int) -> None:
        """Wrap for this width."""
        if width != self.width:
            self.width = width
            self._keep(0)
            self._wrap()

    def row_of(self, line: int, column: int) -> int:
        """The row in which this column of a line is."""
        if line >= len(self._first_rows):
            return 0
        first = self._first_rows[line]
        found = (
            row for row in range(first, len(self.rows)) if self.rows[row][0] == line and column < self.rows[row][2]
        )
        return next(found, first)

    def _keep(self, lines: int) -> None:
        """Forget the rows of all lines from this one on."""
        if lines < len(self._first_rows):
            row = self._first_rows[lines]
            del self._first_rows[lines:]
            del self.rows[row:]
            self.strips = {number: strip for number, strip in self.strips.items() if number < row}

    def _wrap(self) -> None:
        for number in range(len(self._first_rows), len(self.lines)):
            line = self.lines[number]
            self._first_rows.append(len(self.rows))
            hang = cell_len(line.hang) if line.hang else 0
            self.rows.extend((number, start, end) for start, end in wrap_line(line.text, self.width, hang))


def legible(text: str) -> str:
    """Make text from a model or a tool safe to show.

    Emoji stay whole, except for the variation selector: terminals disagree on its width, and would shift the rest of
    the row.
    """
    return show(text, joiners=True).replace("\ufe0f", "")


def plain_lines(text: str, *, indent: str = "", part: str = "") -> Iterable[Line]:
    """The lines of a safe text, all in one style."""
    for line in map(expand_tabs, text.split("\n")):
        for piece in pieces(line):
            shown = indent + piece
            yield Line(shown, ((len(indent), len(shown), part),) if part else (), indent)


def pieces(line: str) -> Iterable[str]:
    """Split a line that is longer than `LONGEST`."""
    if len(line) <= LONGEST:
        yield line
    else:
        yield from (line[start : start + LONGEST] for start in range(0, len(line), LONGEST))
