"""Structured content that is a list of objects, as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.binding import BindingType
from textual.widgets import DataTable

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.textual_fixes import PlacedScrollbars

COLUMNS: Final = 30
CELLS: Final = 2_000
"""On screen; each takes about 20 µs to measure."""

BESIDE: Final = 4
"""Plain members beside the rows; with more, the rows are not what the value is about."""

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


class TableView(DataTable[Text], PlacedScrollbars):
    """Text as text, numbers aligned to the right."""

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

    def on_mount(self) -> None:
        for column in self.table.columns:
            self.add_column(Text(show_line(column, _HEADING_WIDTH), style="bold"))
        columns = self.table.columns
        self.add_rows([_cell(row, column) for column in columns] for row in self.table.rows[: self.table.shown])


def _cell(row: Mapping[str, Any], column: str) -> Text:
    value = row.get(column, "")
    if isinstance(value, str):
        return Text(show_line(value, _CELL_WIDTH))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Text(json.dumps(value)[:_CELL_WIDTH], justify="right")
    return Text(show_line(json.dumps(value, ensure_ascii=False), _CELL_WIDTH), style="dim" if value is None else "")
