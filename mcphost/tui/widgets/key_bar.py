"""Keys and what they do, in as few lines as they take; none is torn apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

GAP: Final = 3


class KeyBar(Widget):
    """Shows pairs of a key and a word; foreign text in either was made safe."""

    DEFAULT_CSS = """
    KeyBar { height: auto; width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._pairs: tuple[tuple[str, str], ...] = ()

    def show_keys(self, pairs: tuple[tuple[str, str], ...]) -> None:
        """Show these instead."""
        if pairs != self._pairs:
            self._pairs = pairs
            self.refresh(layout=True)

    def render(self) -> Content:
        """The lines for the width there is."""
        return Content("\n").join([_drawn(line) for line in self._lines(self.size.width)])

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as the keys take at this width."""
        return sum(1 for _ in self._lines(width))

    def _lines(self, width: int) -> Iterator[Sequence[tuple[str, str]]]:
        line, used = list[tuple[str, str]](), 0
        for pair in self._pairs:
            room = cell_len(pair[0]) + cell_len(pair[1]) + 1
            if line and used + room > width:
                yield line
                line, used = [], 0
            line.append(pair)
            used += room + GAP
        if line:
            yield line


def _drawn(line: Sequence[tuple[str, str]]) -> Content:
    return Content(" " * GAP).join([Content.assemble((key, "bold $text-accent"), f" {word}") for key, word in line])
