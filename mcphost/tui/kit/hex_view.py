"""A hex dump; only visible lines are drawn."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.segment import Segment
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

ROW: Final = 16
"""Bytes in a line."""
NARROW: Final = 8
"""Bytes in a line of a narrow view."""
ROW_CELLS: Final = 10 + ROW * 4 + 2
"""Cells of a line of `ROW` bytes."""


class HexView(Widget):
    """As high as its bytes, for a parent that scrolls."""

    ALLOW_SELECT = False

    DEFAULT_CSS = """
    HexView { height: auto; width: 1fr; }
    HexView > .hex-view--offset { color: $foreground-muted; }
    HexView > .hex-view--letters { color: $text-success; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"hex-view--offset", "hex-view--letters"}

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.data = data

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(1, -(-len(self.data) // _per_row(width)))

    def render_line(self, y: int) -> Strip:
        width, count = self.size.width, _per_row(self.size.width)
        offset, numbers, letters = hex_row(self.data, y * count, count)
        base = self.rich_style
        muted = base + self.get_component_rich_style("hex-view--offset", partial=True)
        read = base + self.get_component_rich_style("hex-view--letters", partial=True)
        row = [Segment(f"{offset}  ", muted), Segment(f"{numbers}  ", base), Segment(letters, read)]
        return Strip(row).adjust_cell_length(width, base)


def hex_row(data: bytes, start: int, count: int) -> tuple[str, str, str]:
    """The offset, the hexadecimal digits and the characters of a row, each with the same width in every row."""
    part = data[start : start + count]
    numbers = " ".join(part[at : at + 8].hex(" ") for at in range(0, count, 8))
    letters = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in part)
    return f"{start:08x}", numbers.ljust(count * 3), letters


def _per_row(width: int) -> int:
    return ROW if width >= ROW_CELLS else NARROW
