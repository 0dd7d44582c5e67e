"""Structured content that is a list of objects, as a table that can be sorted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.style import Style
from textual.widgets import Static

from mcphost.json_values import is_number
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.kit.json_text import json_start, json_text
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.kit.rows import MARK, Cell, RowList, columns

COLUMNS: Final = 30
MOST_ROWS: Final = 20_000
"""Rows that are listed and sorted; to sort as many takes about 20 ms."""

MEASURED_CELLS: Final = 2_000
"""Cells by which the columns are fitted; each takes about 2 µs."""

BESIDE: Final = 4
"""Plain members beside the rows; with more, the rows are not what the value is about."""

GAPS: Final = (2, 1)
"""Cells between two columns; fewer if that brings all of them into view."""

BADGES: Final[Mapping[type, str]] = {int: "#", float: "##", str: "s", bool: "t/f", list: "[]", dict: "{}"}
"""The types of columns, after their names."""

_MIXED: Final = "*"
_LONG_CELL: Final = 24
"""Cells to which a text is cut before any heading."""
_SHORT_HEADING: Final = 6
_SHORT_CELL: Final = 12
"""Cells to which a heading, or the text below it, may be cut so that all columns are in view."""

_CELL_WIDTH: Final = 200
_READ: Final = 2 * _CELL_WIDTH
"""Characters of a value that are read for its cell."""
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
    def summary(self) -> str:
        """``items · 41 rows``."""
        count = f"{len(self.rows):,} row{'' if len(self.rows) == 1 else 's'}"
        first = f"first {MOST_ROWS:,} of " if len(self.rows) > MOST_ROWS else ""
        return " · ".join(filter(None, (show_line(self.name, 40), first + count)))

    @property
    def beside_text(self) -> str:
        """``lookout: north · fog: null``."""
        return " · ".join(f"{show_line(name, 40)}: {_plain(value)}" for name, value in self.beside)


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
    columns: dict[str, Any] = {}
    for row in rows[:MOST_ROWS]:  # more are never shown
        columns.update(row)
        if len(columns) > COLUMNS:
            return None
    return ResultTable(name, tuple(columns), rows, beside)


def badge_of(values: Iterable[object]) -> str:
    """The type of these values: ``#`` whole numbers, ``##`` numbers, ``s`` text; see `BADGES`."""
    types = {type(value) for value in values if value is not None}
    if types == {int, float}:
        return BADGES[float]
    if len(types) > 1:
        return _MIXED
    return BADGES.get(types.pop(), _MIXED) if types else ""


def sorted_rows(rows: Iterable[Mapping[str, Any]], column: str, *, descending: bool = False) -> list[Mapping[str, Any]]:
    """Sort by one column, equal rows in their order; rows without a value come last in either direction."""
    present, absent = list[Mapping[str, Any]](), list[Mapping[str, Any]]()
    for row in rows:
        (absent if row.get(column) is None else present).append(row)
    keys = _sort_keys([row[column] for row in present])
    order = sorted(range(len(present)), key=keys.__getitem__, reverse=descending)
    return [*map(present.__getitem__, order), *absent]


def _sort_keys(values: list[Any]) -> list[Any]:
    types = set(map(type, values))
    if types == {str}:
        return list(map(str.casefold, values))
    if types <= {int, float} and all(value == value for value in values):
        return values
    return list(map(_sort_key, values))


def _sort_key(value: Any) -> tuple[int, Any]:
    """Numbers, then false and true, then texts, then lists and objects by their size."""
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, str):
        return 2, value.casefold()
    if is_number(value):
        return (0, value) if value == value else (1, True)  # NaN compares with nothing
    return 3, len(value)


@dataclass(frozen=True, slots=True)
class ColumnWidth:
    """The cells of a heading, and of the widest value below it. ``whole``: no value may be cut."""

    heading: int
    value: int
    whole: bool = False


def fitted(columns: Sequence[ColumnWidth], room: int) -> tuple[int, ...]:
    """The widths of columns that share ``room`` cells: long texts are cut first, then headings, then all texts, and of
    each the widest.

    They keep the width that they need if cutting would leave too little of them.
    """
    needed = tuple(max(column.heading, column.value) for column in columns)
    widest = max(needed, default=0)
    cuts = [(widest, width) for width in range(widest, _LONG_CELL - 1, -1)]
    cuts += [(width, _LONG_CELL) for width in range(widest, _SHORT_HEADING - 1, -1)]
    cuts += [(_SHORT_HEADING, width) for width in range(_LONG_CELL, _SHORT_CELL - 1, -1)]
    for heading, text in cuts:
        cut = tuple(
            max(min(column.heading, heading), column.value if column.whole else min(column.value, text))
            for column in columns
        )
        if sum(cut) <= room:
            return cut
    return needed


class TableHead(Static):
    """The names and types of the columns; a click sorts."""

    DEFAULT_CSS = """
    TableHead {
        height: 1; background: $panel;
        link-style: bold; link-color: $foreground; link-background: $panel;
        link-style-hover: bold; link-color-hover: $text-accent; link-background-hover: $boost;
        &:ansi { background: ansi_default; text-style: bold underline; }
    }
    """

    @dataclass
    class Clicked(Message):
        column: int

    def action_choose(self, column: int) -> None:
        self.post_message(self.Clicked(column))


class TableView(Vertical):
    """Text as text, numbers aligned to the right. Columns are cut if that brings all of them into view."""

    footnote: reactive[str] = reactive("", repaint=False)
    """The number of rows and the keys, for a border."""

    DEFAULT_CSS = """
    TableView { height: 1fr; }
    """
    HELP = (
        "The structured content as a table. enter shows a whole row, a click on a head sorts by it. Types in\n"
        "the heads: # whole numbers, ## numbers, s text, t/f true or false, [] lists, {} objects, * several."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "next_column", "sort", id="table.sort", tooltip="Sort by the next column, after the last by none"),
        Binding("O", "reverse", "reverse", id="table.reverse", show=False, tooltip="Sort in the other direction"),
        Binding("escape", "unsort", "server's order", id="table.unsort", tooltip="Back to the order of the server"),
        Binding("left", "shift(-1)", "columns", id="table.left", show=False, tooltip="To the columns on the left"),
        Binding("right", "shift(1)", "columns", id="table.right", show=False, tooltip="To the columns on the right"),
    ]

    def __init__(self, table: ResultTable) -> None:
        super().__init__()
        self.table = table
        self._head = TableHead(markup=False)
        self._rows: RowList[Mapping[str, Any]] = RowList(self._row)
        self._items = table.rows[:MOST_ROWS]
        sample = self._items[:: 1 + len(self._items) * len(table.columns) // MEASURED_CELLS]
        self._badges = [badge_of(row.get(column) for row in sample) for column in table.columns]
        self._values = [_measured(sample, column) for column in table.columns]
        self._sorted: int | None = None
        self._descending = False
        self._first = 0
        self._widths: tuple[int, ...] = ()
        self._room, self._gap = 0, GAPS[0]

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._rows

    def on_mount(self) -> None:
        self._rows.set_items(self._items, keep=id)
        self._fit()

    def on_resize(self, event: events.Resize) -> None:
        self._fit()

    def focus(self, scroll_visible: bool = True, from_app_focus: bool = False) -> TableView:
        self._rows.focus(scroll_visible)
        return self

    @property
    def is_cut(self) -> bool:
        """True if a column is narrower than its heading or its texts, or out of view at the side."""
        needed = sum(max(column.heading, column.value) for column in self._needed)
        return needed + self._gap * (len(self.table.columns) - 1) > self._room

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("reverse", "unsort"):
            return self._sorted is not None
        return self._shifts if action == "shift" else True

    def action_next_column(self) -> None:
        after = 0 if self._sorted is None else self._sorted + 1
        self._sort(after if after < len(self.table.columns) else None)

    def action_reverse(self) -> None:
        self._sort(self._sorted, descending=not self._descending)

    def action_unsort(self) -> None:
        self._sort(None)

    def action_shift(self, step: int) -> None:
        if self._can_shift(step):
            self._first += step
            self._draw()

    @on(TableHead.Clicked)
    def _head_clicked(self, event: TableHead.Clicked) -> None:
        """Sort by this column; a second click reverses the order, a third restores the server's."""
        event.stop()
        if event.column != self._sorted:
            self._sort(event.column)
        else:
            self._sort(None if self._descending else event.column, descending=True)

    @on(RowList.Highlighted)
    def _row_highlighted(self, event: RowList.Highlighted[Mapping[str, Any]]) -> None:
        event.stop()

    @on(RowList.Selected)
    def _row_chosen(self, event: RowList.Selected[Mapping[str, Any]]) -> None:
        """Show a row with all of its texts."""
        event.stop()
        self.app.push_screen(ReaderScreen(show_line(self.table.name, 40) or "row", json_text(event.item), is_json=True))

    def _sort(self, column: int | None, *, descending: bool = False) -> None:
        self._sorted, self._descending = column, descending and column is not None
        rows = self._items
        if column is not None:
            rows = sorted_rows(rows, self.table.columns[column], descending=descending)
        self._rows.set_items(rows)
        self._rows.highlighted = 0
        self._fit()
        if column is not None and all(index != column for index, _ in self._in_view()):
            self._first = column
            self._draw()
        self.refresh_bindings()

    # Drawing.

    @property
    def _needed(self) -> list[ColumnWidth]:
        heads = (cell_len(self._heading(index).plain) for index in range(len(self.table.columns)))
        return [
            ColumnWidth(head, value, self._is_number(index))
            for index, (head, value) in enumerate(zip(heads, self._values, strict=True))
        ]

    def _is_number(self, column: int) -> bool:
        return self._badges[column] in (BADGES[int], BADGES[float])

    def _heading(self, column: int) -> Content:
        arrow = ("↓" if self._descending else "↑") if column == self._sorted else ""
        name, badge = show_line(self.table.columns[column], _HEADING_WIDTH), self._badges[column]
        click = Style.from_meta({"@click": f"choose({column})"})
        heading = Content.assemble((arrow, "$text-accent"), (name, "bold"), (f" {badge}" if badge else "", "dim"))
        return heading.stylize(click)

    def _fit(self) -> None:
        size = self.size
        self._room = size.width - len(MARK) - (len(self._items) >= size.height)  # with the head above the rows
        needed = self._needed
        for self._gap in GAPS:
            room = self._room - self._gap * (len(needed) - 1)
            self._widths = fitted(needed, room)
            if sum(self._widths) <= room:
                self._first = 0
                break
        else:
            self._gap = GAPS[0]
        self._draw()

    def _draw(self) -> None:
        cells = [
            Cell(self._heading(index), "", width, width, "right" if self._is_number(index) else "left")
            for index, width in self._in_view()
        ]
        if self._room > 0:
            self._head.update(Content(" " * len(MARK)) + columns(self._room, cells, self._gap))
        self._rows.refresh()
        self.refresh_bindings()
        more = " · ←→ columns" if self._shifts else ""
        zoom = " · z zooms" if self.is_cut else ""
        self.footnote = f"{self.table.summary} · o sorts{more}{zoom}"

    def _in_view(self) -> Iterator[tuple[int, int]]:
        """The columns in view, and their widths; the last text may be cut at the side."""
        left = self._room
        for index in range(self._first, len(self._widths)):
            needed = self._widths[index]
            least = needed if self._is_number(index) else min(needed, _SHORT_CELL)
            if index > self._first and least > left:
                return
            yield index, min(needed, max(left, 1))
            left -= needed + self._gap

    @property
    def _shifts(self) -> bool:
        """True if columns are out of view; else the arrows are the parent's."""
        return self._can_shift(-1) or self._can_shift(1)

    def _can_shift(self, step: int) -> bool:
        if step == -1:
            return self._first > 0
        shown = list(self._in_view())
        return bool(shown) and (shown[-1][0] + 1 < len(self._widths) or shown[-1][1] < self._widths[shown[-1][0]])

    def _row(self, row: Mapping[str, Any], width: int) -> Content:
        names = self.table.columns
        return columns(width, [_cell(row.get(names[index], ""), size) for index, size in self._in_view()], self._gap)


def _measured(rows: Iterable[Mapping[str, Any]], column: str) -> int:
    return max((cell_len(_written(row.get(column, ""))) for row in rows), default=0)


def _cell(value: object, width: int) -> Cell:
    written = _written(value)
    if is_number(value):
        # No number is cut: its first digits would be another number.
        return Cell(written if len(written) <= width else "…", "", width, width, "right")
    return Cell(written, "dim" if value is None else "", width, width)


def _written(value: object) -> str:
    if is_number(value):
        return json.dumps(value)[:_CELL_WIDTH]
    # As much as the cell may show: this is written whenever its row is drawn.
    return show_line(value[:_READ] if isinstance(value, str) else json_start(value, _READ), _CELL_WIDTH)
