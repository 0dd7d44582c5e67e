"""A JSON value whose objects and lists fold. Only the unfolded part is written, so that its size does not matter.

Textual's Tree opens 20,000 nodes in 1.0 second, this view in 45 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.strip import Strip

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line
from mcphost.tui.kit.json_text import json_spans, scalar_text
from mcphost.tui.kit.text_view import TextView

ROWS: Final = 2_000
"""Rows that are unfolded at first, level by level."""

CHUNK: Final = 1_000
"""Members of an object or a list that are shown at once."""

SEARCHED: Final = 10_000
"""Rows that a search unfolds."""

DEEPEST: Final = 100
"""Levels that are unfolded at once."""


@dataclass(frozen=True, slots=True)
class JsonRow:
    """A row. ``value`` is what it unfolds or folds: a container, or the rest of one from member ``first`` on."""

    depth: int
    kind: str
    """``open``, ``folded``, ``close``, ``plain`` or ``rest``."""
    label: str
    after: str
    value: Any = None
    first: int = 0

    @property
    def text(self) -> str:
        mark = {"open": "▾ ", "folded": "▸ ", "rest": "▸ "}.get(self.kind, "  ")
        return f"{'  ' * self.depth}{mark}{self.label}{self._body}{self.after}"

    @property
    def _body(self) -> str:
        opening, closing = "{}" if isinstance(self.value, dict) else "[]"
        match self.kind:
            case "open":
                return opening
            case "close":
                return closing
            case "folded":
                return f"{opening} {_inside(self.value)} {closing}"
            case "rest":
                return f"… {len(self.value) - self.first:,} more"
        return show(scalar_text(self.value), joiners=True)


NAMES: Final = 5
"""Members that a folded object names."""


def _inside(value: Any) -> str:
    """Summarize a folded container: the first names of an object, the number of a list's items."""
    if not isinstance(value, dict):
        return f"{len(value):,} item{'' if len(value) == 1 else 's'}"
    names = [show_line(str(name), 20) for name in islice(value, NAMES)]
    return ", ".join([*names, *([f"{len(value) - NAMES:,} more"] if len(value) > NAMES else [])])


def _is_container(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _rows(value: Any, label: str, after: str, depth: int, levels: int) -> Iterator[JsonRow]:
    """The rows of a value, unfolded to ``levels`` levels."""
    if not _is_container(value):
        yield JsonRow(depth, "plain", label, after, value)
    elif levels <= 0:
        yield JsonRow(depth, "folded", label, after, value)
    else:
        yield JsonRow(depth, "open", label, "", value)
        yield from _members(value, 0, depth + 1, levels - 1)
        yield JsonRow(depth, "close", "", after, value)


def _members(value: Any, first: int, depth: int, levels: int) -> Iterator[JsonRow]:
    """The rows of `CHUNK` members from ``first`` on, and one for the rest."""
    last = len(value) - 1
    pairs = (
        ((f"{scalar_text(str(name))}: ", item) for name, item in value.items())
        if isinstance(value, dict)
        else (("", item) for item in value)
    )
    for number, (label, item) in enumerate(islice(pairs, first, first + CHUNK), first):
        yield from _rows(item, show(label), "," if number < last else "", depth, levels)
    if first + CHUNK <= last:
        yield JsonRow(depth, "rest", "", "", value, first + CHUNK)


def _unfolded(value: Any, label: str, after: str, depth: int, most: int) -> list[JsonRow]:
    """The rows of a value, with as many levels as ``most`` rows hold; one level in any case."""
    found = list(_rows(value, label, after, depth, 1))
    for levels in range(2, DEEPEST):
        deeper = list(islice(_rows(value, label, after, depth, levels), most + 1))
        if len(deeper) > most or len(deeper) == len(found):
            break
        found = deeper
    return found


class JsonView(TextView):
    DEFAULT_CSS = """
    JsonView { height: 1fr; }
    JsonView > .json-view--cursor { background: $block-cursor-blurred-background; }
    JsonView:focus > .json-view--cursor { background: $block-cursor-background; text-style: $block-cursor-text-style; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"json-view--cursor"}
    HELP = "JSON. A search also finds what is folded."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "fold", "fold", id="json.fold", tooltip="Fold or unfold it"),
        Binding("left", "fold_out", "fold", id="json.out", tooltip="Fold it, or go to what is around it", show=False),
        Binding("right", "unfold", "unfold", id="json.in", tooltip="Unfold it", show=False),
        Binding("Z", "fold_all", "fold all", id="json.all", tooltip="Fold or unfold everything"),
    ]

    def __init__(self, value: Any) -> None:
        self._value = value
        self._json_rows = _unfolded(value, "", "", 0, ROWS)
        self._at = 0
        super().__init__([row.text for row in self._json_rows], spans=json_spans)

    # Folding.

    def _show(self, rows: list[JsonRow], at: int) -> None:
        self._json_rows, self._at = rows, min(max(at, 0), len(rows) - 1)
        self.load([row.text for row in rows], home=False)
        self._reveal()

    def _end(self, number: int) -> int:
        """The row that closes what this row opens."""
        depth = self._json_rows[number].depth
        after = range(number + 1, len(self._json_rows))
        return next(each for each in after if self._json_rows[each].depth == depth)

    def action_fold(self) -> None:
        rows, at = self._json_rows, self._at
        row = rows[at]
        match row.kind:
            case "open":
                last = self._end(at)
                folded = JsonRow(row.depth, "folded", row.label, rows[last].after, row.value)
                self._show([*rows[:at], folded, *rows[last + 1 :]], at)
            case "folded":
                inner = _unfolded(row.value, row.label, row.after, row.depth, CHUNK)
                self._show([*rows[:at], *inner, *rows[at + 1 :]], at)
            case "rest":
                inner = list(_members(row.value, row.first, row.depth, 0))
                self._show([*rows[:at], *inner, *rows[at + 1 :]], at)
            case "close":
                self._at = self._around(at)
                self.action_fold()

    def _around(self, number: int) -> int:
        """The row that opens what is around this row; 0 for the first."""
        depth = self._json_rows[number].depth - (self._json_rows[number].kind != "close")
        before = range(number - 1, -1, -1)
        kinds = ("open",)
        return next((n for n in before if self._json_rows[n].depth == depth and self._json_rows[n].kind in kinds), 0)

    def action_fold_out(self) -> None:
        """Fold what is open, else go to what is around it; at the first row, the key is the tab strip's."""
        if self._at == 0:
            raise SkipAction
        if self._json_rows[self._at].kind == "open":
            self.action_fold()
        else:
            self._go(self._around(self._at))

    def action_unfold(self) -> None:
        if self._json_rows[self._at].kind not in ("folded", "rest"):
            raise SkipAction
        self.action_fold()

    def action_fold_all(self) -> None:
        """Fold everything below the first level; unfold as much as at first if that is done."""
        folded = list(_rows(self._value, "", "", 0, 1))
        self._show(_unfolded(self._value, "", "", 0, ROWS) if self._json_rows == folded else folded, 0)

    def find(self, query: str) -> list[tuple[int, int]]:
        if query:
            rows = list(islice(_rows(self._value, "", "", 0, DEEPEST), SEARCHED))
            self._show(rows, 0)
        return super().find(query)

    def go_to(self, match: tuple[int, int] | None) -> None:
        if match is not None:
            self._at = match[0]
        super().go_to(match)

    # The cursor.

    def _go(self, number: int) -> None:
        self._at = min(max(number, 0), len(self._json_rows) - 1)
        self._reveal()
        self.refresh()

    def _reveal(self) -> None:
        region = Region(self.scroll_offset.x, self._row_of((self._at, 0)), 1, 1)
        self.scroll_to_region(region, animate=False, immediate=True, x_axis=False)

    def action_scroll_up(self) -> None:
        self._go(self._at - 1)

    def action_scroll_down(self) -> None:
        self._go(self._at + 1)

    def action_page_up(self) -> None:
        self._go(self._at - max(1, self.size.height - 1))

    def action_page_down(self) -> None:
        self._go(self._at + max(1, self.size.height - 1))

    def action_scroll_home(self) -> None:
        self._go(0)

    def action_scroll_end(self) -> None:
        self._go(len(self._json_rows) - 1)

    def on_click(self, event: events.Click) -> None:
        """Select on one click, fold on two."""
        offset = event.get_content_offset(self)
        line = None if offset is None else self._line_at(offset.y)
        if line is not None:
            self._go(line)
            if event.chain == 2:
                self.action_fold()

    def _line_at(self, y: int) -> int | None:
        row = self.scroll_offset.y + y
        if not 0 <= row < self._row_count:
            return None
        return self._rows[row][0] if self.wraps else row

    def hang_of(self, number: int) -> str:
        return " " * (2 * self._json_rows[number].depth + 4)

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        if self._line_at(y) != self._at:
            return strip
        style = self.get_component_rich_style("json-view--cursor", partial=True)
        return Strip(Segment.apply_style(strip, post_style=style), strip.cell_length)
