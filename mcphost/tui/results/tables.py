"""Structured content that is a list of objects, as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.reactive import reactive
from textual.widgets import DataTable

from mcphost.json_values import is_number
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.textual_private.corrections import ScrollbarsOnLayout

COLUMNS: Final = 30
CELLS: Final = 2_000
"""On screen; each takes about 20 µs to measure."""

BESIDE: Final = 4
"""Plain members beside the rows; with more, the rows are not what the value is about."""

_SHORT_HEADING: Final = 6
_SHORT_CELL: Final = 12
"""Cells to which a heading, or the text below it, may be cut so that all columns are in view."""

_CELL_WIDTH: Final = 60
_HEADING_WIDTH: Final = 30


@dataclass(frozen=True, slots=True)
class ResultTable:
    """``name`` is the member that holds the rows, empty if the value itself is the list.

    ``beside`` are the other members, which are plain values.
    """

    name: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    beside: tuple[tuple[str, Any], ...] = ()

    @property
    def shown(self) -> int:
        """The number of rows within the limit of cells."""
        return min(len(self.rows), CELLS // len(self.columns))

    @property
    def summary(self) -> str:
        """``items · 41 rows``."""
        count = f"{len(self.rows)} row{'' if len(self.rows) == 1 else 's'}"
        first = f"first {self.shown} of " if self.shown < len(self.rows) else ""
        beside = (f"{show_line(name, 40)}: {_plain(value)}" for name, value in self.beside)
        return " · ".join(filter(None, (show_line(self.name, 40), first + count, *beside)))


def as_table(value: object) -> ResultTable | None:
    """The table in a list of objects, or in an object with one such list and a few plain members; else None."""
    if isinstance(value, list):
        return _table("", value)
    if not isinstance(value, dict) or len(value) > BESIDE + 1:
        return None
    lists = [(str(name), member) for name, member in value.items() if isinstance(member, list)]
    plain = tuple((str(name), member) for name, member in value.items() if not isinstance(member, list | dict))
    if len(lists) != 1 or len(plain) + 1 != len(value):
        return None
    return _table(*lists[0], plain)


def _plain(value: object) -> str:
    return show_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 60)


def _table(name: str, rows: list[Any], beside: tuple[tuple[str, Any], ...] = ()) -> ResultTable | None:
    if not rows or not all(isinstance(row, dict) and row for row in rows):
        return None
    columns: dict[str, None] = {}
    for row in rows[:CELLS]:  # more are never shown
        columns.update(dict.fromkeys(row))
        if len(columns) > COLUMNS:
            return None
    return ResultTable(name, tuple(columns), rows, beside)


@dataclass(frozen=True, slots=True)
class ColumnWidth:
    """The cells of a heading, and of the widest value below it. ``whole``: no value may be cut."""

    heading: int
    value: int
    whole: bool = False


def fitted(columns: Sequence[ColumnWidth], room: int) -> tuple[int, ...]:
    """The widths of columns that share ``room`` cells: first headings are cut, then texts, the widest ones first.

    They keep the width that they need if cutting would leave too little of them.
    """
    needed = tuple(max(column.heading, column.value) for column in columns)
    widest = max(needed, default=0)
    for width in range(widest, _SHORT_HEADING - 1, -1):
        cut = tuple(max(min(column.heading, width), column.value) for column in columns)
        if sum(cut) <= room:
            return cut
    for width in range(widest, _SHORT_CELL - 1, -1):
        values = (column.value if column.whole else min(column.value, width) for column in columns)
        cut = tuple(
            max(min(column.heading, _SHORT_HEADING), value) for column, value in zip(columns, values, strict=True)
        )
        if sum(cut) <= room:
            return cut
    return needed


class TableView(DataTable[Text], ScrollbarsOnLayout):
    """Text as text, numbers aligned to the right. Columns are cut if that brings all of them into view."""

    is_cut: reactive[bool] = reactive(False)
    """True if a column is narrower than its heading or its texts, or out of view at the side."""

    DEFAULT_CSS = """
    TableView {
        height: 1fr; background: $surface; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1;
        &:focus { background-tint: transparent; }
        &:ansi > .datatable--header { background: ansi_default; text-style: bold underline; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, table: ResultTable) -> None:
        super().__init__(cursor_type="row", zebra_stripes=True)
        self.table = table
        self._headings = [_text(show_line(column, _HEADING_WIDTH), "bold") for column in table.columns]
        self._cells = [[_cell(row, column) for column in table.columns] for row in table.rows[: table.shown]]
        self._needed = [
            ColumnWidth(
                heading.cell_len,
                max((cell.cell_len for cell in cells), default=0),
                any(cell.justify == "right" for cell in cells),
            )
            for heading, *cells in zip(self._headings, *self._cells, strict=True)
        ]
        self._widths: tuple[int, ...] = ()

    def on_mount(self) -> None:
        self.call_after_refresh(self._fit, self.size)

    def on_resize(self, event: events.Resize) -> None:
        self._fit(event.size)

    def _fit(self, size: Size) -> None:
        size = self.size or size
        beside = 2 * self.cell_padding * len(self._needed) + (len(self._cells) >= size.height)
        room = size.width - beside
        widths = fitted(self._needed, room)
        needed = sum(max(column.heading, column.value) for column in self._needed)
        self.is_cut = needed > room
        if widths == self._widths:
            return
        row, self._widths = self.cursor_row, widths
        self.clear(columns=True)
        for heading, width in zip(self._headings, widths, strict=True):
            self.add_column(heading, width=width)
        self.add_rows(self._cells)
        self.move_cursor(row=row, animate=False)


def _cell(row: Mapping[str, Any], column: str) -> Text:
    value = row.get(column, "")
    if isinstance(value, str):
        return _text(show_line(value, _CELL_WIDTH))
    if is_number(value):
        return Text(json.dumps(value)[:_CELL_WIDTH], justify="right")
    return _text(show_line(json.dumps(value, ensure_ascii=False), _CELL_WIDTH), "dim" if value is None else "")


def _text(words: str, style: str = "") -> Text:
    """Text on one line that ends in … if its column is narrower."""
    return Text(words, style=style, no_wrap=True, overflow="ellipsis")
