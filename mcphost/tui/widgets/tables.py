"""Structured content that is a list of objects, as a table.

Knows when a table says more than JSON does. Refuses to guess: rows of different kinds stay JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.binding import BindingType
from textual.widgets import DataTable

from mcphost.protocol.display import show_line

COLUMNS: Final = 30
CELLS: Final = 2_000
"""On screen; each takes some 20 µs to measure."""

_CELL_WIDTH: Final = 60
_HEADING_WIDTH: Final = 30


@dataclass(frozen=True, slots=True)
class Table:
    """``name`` is the one member that holds the rows, empty where the value itself is the list."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]

    @property
    def shown(self) -> int:
        """How many rows fit the budget of cells."""
        return min(len(self.rows), CELLS // len(self.columns))

    @property
    def summary(self) -> str:
        """``items · 41 rows``."""
        count = f"{len(self.rows)} row{'' if len(self.rows) == 1 else 's'}"
        first = f"first {self.shown} of " if self.shown < len(self.rows) else ""
        return " · ".join(filter(None, (show_line(self.name, 40), first + count)))


def as_table(value: object) -> Table | None:
    """The table in a list of objects, or in an object whose only member is one; else None."""
    if isinstance(value, list):
        return _table("", value)
    if isinstance(value, dict) and len(value) == 1:
        (name, rows), *_ = value.items()
        return _table(str(name), rows) if isinstance(rows, list) else None
    return None


def _table(name: str, rows: list[Any]) -> Table | None:
    if not rows or not all(isinstance(row, dict) and row for row in rows):
        return None
    columns: dict[str, None] = {}
    for row in rows[:CELLS]:  # more are never shown
        columns.update(dict.fromkeys(row))
        if len(columns) > COLUMNS:
            return None
    return Table(name, tuple(columns), rows)


class TableView(DataTable[Text]):
    """A `Table` on screen: text as text, numbers to the right."""

    DEFAULT_CSS = """
    TableView { height: 1fr; background: $surface; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, table: Table) -> None:
        super().__init__(cursor_type="row", zebra_stripes=True)
        self.table = table

    def on_mount(self) -> None:
        """Fill it."""
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
