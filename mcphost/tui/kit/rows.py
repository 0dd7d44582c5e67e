"""A list of any length with one line a row; only visible rows are drawn.

Textual's OptionList and DataTable prepare every row at once: 20,000 log lines or messages would hold the event loop
for seconds.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final, Generic, Literal, NamedTuple, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content, Span
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from mcphost.lazy_dataclass import dataclass
from mcphost.tui.textual_private.corrections import ScrollbarsOnLayout

Item = TypeVar("Item")
Held = TypeVar("Held")

MARK: Final = "▸ "
"""Two cells before the row under the cursor, which is thus seen without colours."""


def _key(keys: str, name: str, tooltip: str, *, show: bool = False) -> Binding:
    return Binding(keys, name, name.replace("_", " "), show=show, tooltip=tooltip, id=f"rows.{name}")


def even_if_reversed(strip: Strip) -> Strip:
    """A reversed row without its colours, which would be patches in the bar; any other row as it is."""
    if not any(segment.style and segment.style.reverse for segment in strip):
        return strip
    plain = (Segment(text, style and style.without_color, control) for text, style, control in strip)
    return Strip(plain, strip.cell_length)


class RowList(ScrollView, ScrollbarsOnLayout, Generic[Item], can_focus=True):
    """``render(item, width)`` returns a line of at most ``width`` cells; foreign text in it has passed ``show_line``.

    ``empty`` is shown without items. With ``tails`` the list follows its newest item, the last one, until the user
    moves away; End, or moving down past the end, follows again.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"row-list--cursor", "row-list--empty"}
    BINDINGS: ClassVar[list[BindingType]] = [
        _key("up,k", "up", "To the row above"),
        _key("down,j", "down", "To the row below"),
        _key("pageup", "page_up", "One page up"),
        _key("pagedown", "page_down", "One page down"),
        _key("home", "first", "To the first row"),
        _key("end", "last", "To the last row"),
        _key("enter", "open", "Open the row under the cursor, as a double click does", show=True),
    ]
    DEFAULT_CSS = """
    RowList {
        height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1;
        & > .row-list--cursor { background: $block-cursor-blurred-background; }
        & > .row-list--empty { color: $foreground-muted; }
        &:focus > .row-list--cursor { background: $block-cursor-background; text-style: $block-cursor-text-style; }
    }
    """

    following: reactive[bool] = reactive(False, repaint=False, init=False)
    """True if the cursor stays on the last row when rows are added; only with ``tails``."""
    shows_cursor: reactive[bool] = reactive(True)
    """True if the row under the cursor is marked."""

    class _ListMessage(Message):
        row_list: RowList[Any]

        @property
        def control(self) -> RowList[Any]:
            """The list, for ``@on`` selectors."""
            return self.row_list

    @dataclass
    class Highlighted(_ListMessage, Generic[Held]):
        """The cursor is on another item; None: the list became empty."""

        row_list: RowList[Any]
        item: Held | None

    @dataclass
    class Selected(_ListMessage, Generic[Held]):
        """The user opened this item: Enter, or a double click."""

        row_list: RowList[Any]
        item: Held

    @dataclass
    class Followed(_ListMessage):
        """The list started or stopped following its newest row."""

        row_list: RowList[Any]
        following: bool

    def __init__(
        self,
        render: Callable[[Item, int], Text | Content],
        *,
        empty: str = "",
        tails: bool = False,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._render_row = render
        self._items: list[Item] = []
        self._cursor: int | None = None
        self._announced: object = None
        self._moved = False
        self._parsed_styles: dict[str, Style] = {}
        self._keep: Callable[[Item], object] = lambda item: item
        self._empty = empty
        self.tails = tails
        self.set_reactive(RowList.following, tails)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """An empty list has nothing to open."""
        return action != "open" or self._cursor is not None

    @property
    def items(self) -> Sequence[Item]:
        """The items in order; change them only by methods."""
        return self._items

    @property
    def highlighted(self) -> int | None:
        """The index of the row under the cursor; None without rows. Setting it scrolls there."""
        return self._cursor

    @highlighted.setter
    def highlighted(self, index: int | None) -> None:
        if index is not None and self._items:
            self._moved = True
            self._place(index)
            self._reveal()

    @property
    def item(self) -> Item | None:
        """The item under the cursor."""
        return None if self._cursor is None else self._items[self._cursor]

    @property
    def empty(self) -> str:
        """The text that is shown without rows."""
        return self._empty

    @empty.setter
    def empty(self, text: str) -> None:
        self._empty = text
        self.refresh(layout=self.styles.is_auto_height)

    def set_items(
        self, items: Iterable[Item], keep: Callable[[Item], object] | None = None, *, rest: int | None = None
    ) -> None:
        """Replace all items. The cursor stays on the item with the same ``keep(item)``, else on the same row number.

        The row under the cursor keeps its place on the screen; a list at its top stays there. With ``rest`` the
        cursor stays on the row of this number until something moves it.
        """
        self._keep = keep or self._keep
        before, top = self._cursor, round(self.scroll_y)
        on_screen = before is not None and top <= before < top + max(1, self.size.height)
        kept = None if self.item is None else self._keep(self.item)
        self._items = list(items)
        self._resize()
        unmoved = rest is not None and not self._moved
        after = self._find(kept) if before is not None and not unmoved else None
        if unmoved or before is None:
            self._place(rest or 0)
        else:
            self._place(before if after is None else after)
        if top and on_screen and before is not None and after is not None:
            self._scroll(top + after - before)
        if self.following:
            self._place(len(self._items) - 1)
        if on_screen or self.following:
            self._reveal()
        self.refresh()

    def append(self, items: Sequence[Item], limit: int | None = None) -> None:
        """Add items at the end, and drop the oldest above ``limit``. The cost does not depend on the list's length."""
        self._items.extend(items)
        over = 0 if limit is None else max(0, len(self._items) - limit)
        self.drop_first(over)

    def drop_first(self, count: int) -> None:
        """Remove ``count`` items at the top; what is in view stays in view."""
        count = min(count, len(self._items))
        del self._items[:count]
        top = round(self.scroll_y)
        self._resize()
        self._place(len(self._items) - 1 if self.following else max(0, (self._cursor or 0) - count))
        if self.following:
            self._reveal()
        elif count:
            self._scroll(max(0, top - count))
        self.refresh()

    # Keys and mouse.

    def action_up(self) -> None:
        self._move(-1)

    def action_down(self) -> None:
        """Move down; past the end, follow."""
        if self.tails and self._cursor == len(self._items) - 1:
            self.following = True
        self._move(1)

    def action_page_up(self) -> None:
        self._move(1 - self.size.height)

    def action_page_down(self) -> None:
        self._move(self.size.height - 1)

    def action_first(self) -> None:
        self._move(-len(self._items))

    def action_last(self) -> None:
        """Go to the last row, and follow."""
        self.following = self.tails
        self._move(len(self._items))

    def action_open(self) -> None:
        self._moved = True
        if self._cursor is not None:
            self.post_message(self.Selected(self, self._items[self._cursor]).set_sender(self))

    def on_click(self, event: events.Click) -> None:
        """Select on one click, open on two."""
        offset = event.get_content_offset(self)
        index = -1 if offset is None else offset.y + self.scroll_offset.y
        if 0 <= index < len(self._items):
            self._move(index - (self._cursor or 0))
            if event.chain == 2:
                self.action_open()

    def on_mouse_scroll_down(self) -> None:
        if self.tails and self.scroll_y >= self.max_scroll_y:
            self.following = True

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Stop following when the user scrolls back."""
        super().watch_scroll_y(old_value, new_value)
        if self.following and new_value < min(old_value, self.max_scroll_y):
            self.following = False

    def watch_following(self, following: bool) -> None:
        if following and self._items:
            self._place(len(self._items) - 1)
            self._scroll(self.max_scroll_y)
        self.post_message(self.Followed(self, following))

    def on_resize(self) -> None:
        if self.following:
            self._reveal()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._parsed_styles.clear()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The rows, with ``height: auto``; without any, the lines of `empty`."""
        return len(self._items) or len(self._empty_lines(width))

    # Drawing.

    def render_line(self, y: int) -> Strip:
        width, index = self.scrollable_content_region.width, self.scroll_offset.y + y
        if not self._items:
            return self._empty_line(y, width)
        if index >= len(self._items):
            return Strip.blank(width, self.get_visual_style().rich_style)
        under_cursor = index == self._cursor and self.shows_cursor
        style = self._cursor_style() if under_cursor else self.get_visual_style()
        line = self._render_row(self._items[index], max(1, width - len(MARK)))
        content = line if isinstance(line, Content) else Content.from_rich_text(line)
        segments = [Segment(MARK if under_cursor else " " * len(MARK), style.rich_style)]
        for text, text_style in content.first_line.render(style, end="", parse_style=self._parse_style):
            segments.append(Segment(text, text_style.rich_style))
        return even_if_reversed(Strip(segments).adjust_cell_length(width, style.rich_style))

    def _cursor_style(self) -> Style:
        """The style of the row under the cursor. Textual leaves out ``reverse``, all that marks it in 16 colours."""
        text_style = self.get_component_styles("row-list--cursor").text_style
        return self.get_visual_style("row-list--cursor") + Style(reverse=text_style.reverse)

    def _parse_style(self, style: str | Style) -> Style:
        if isinstance(style, Style):
            return style
        if style not in self._parsed_styles:
            self._parsed_styles[style] = Style.parse(style)
        return self._parsed_styles[style]

    def _empty_line(self, y: int, width: int) -> Strip:
        lines = self._empty_lines(width)
        left = " " * ((width - max(map(cell_len, lines), default=0)) // 2)
        row = y - max(0, self.size.height - len(lines)) // 2
        style = self.get_visual_style("row-list--empty").rich_style
        text = left + lines[row] if 0 <= row < len(lines) else ""
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)

    def _empty_lines(self, width: int) -> list[str]:
        wrap = textwrap.TextWrapper(max(1, width - 4), break_on_hyphens=False).wrap
        return [line for words in self._empty.splitlines() for line in wrap(words) or [""]]

    # Cursor and scroll position.

    def _move(self, distance: int) -> None:
        """Move the cursor for the user."""
        self._moved = True
        if self._cursor is None:
            return
        self._place(self._cursor + distance)
        if self._cursor != len(self._items) - 1:
            self.following = False
        self._reveal()

    def _place(self, index: int) -> None:
        """Put the cursor on a row without scrolling; post `Highlighted` if the item is another."""
        before = self._cursor
        self._cursor = min(max(0, index), len(self._items) - 1) if self._items else None
        item = self.item
        now = None if item is None else self._keep(item)
        if now != self._announced:
            self._announced = now
            # Textual stops a message at the parent of its widget if it was posted while that one handled a message.
            self.post_message(self.Highlighted(self, item).set_sender(self))
        if (before is None) != (self._cursor is None):
            self.refresh_bindings()
        for row in (before, self._cursor):
            if row is not None:
                self.refresh_line(row)

    def _reveal(self) -> None:
        if self._cursor is not None and self.size.height:
            lowest = self._cursor - self.size.height + 1
            self._scroll(min(max(round(self.scroll_y), lowest), self._cursor))

    def _scroll(self, top: float) -> None:
        self.scroll_to(y=top, animate=False, force=True)

    def _find(self, key: object) -> int | None:
        return next((index for index, item in enumerate(self._items) if self._keep(item) == key), None)

    def _resize(self) -> None:
        """Set the virtual height; lay out the whole screen only if that can change something on it."""
        length = len(self._items)
        scrolls = length > self.size.height
        if self.size and self.show_vertical_scrollbar is scrolls and not self.styles.is_auto_height:
            # ``set_reactive`` skips the watchers, and with them a layout; so the scrollbar is updated here.
            self.set_reactive(RowList.virtual_size, Size(0, length))
            if scrolls:
                self.vertical_scrollbar.window_virtual_size = length
            self.scroll_y = min(self.scroll_y, self.max_scroll_y)
        else:
            self.virtual_size = Size(0, length)


class ColumnHeads(Widget):
    """The names of a list's columns, in a line above it; ``draw(width)`` places them as the list places its cells.

    The list keeps the room of its scrollbar (``scrollbar-gutter: stable``), so that the columns never move.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    ColumnHeads { height: 1; color: $foreground-muted; text-style: underline; }
    """

    def __init__(self, draw: Callable[[int], Content]) -> None:
        super().__init__()
        self._draw, self._drawn = draw, ""

    def render(self) -> Content:
        heads = self._heads()
        self._drawn = heads.plain
        return heads

    def update_heads(self) -> None:
        """Draw them again if the columns have moved."""
        if self.is_attached and self._heads().plain != self._drawn:
            self.refresh()

    def _heads(self) -> Content:
        return Content.assemble(" " * len(MARK), self._draw(max(1, self.size.width - len(MARK) - 1)))


def rows_around(cursor: int, count: int, height: int) -> range:
    """The rows of a list of ``count`` that ``height`` rows show, with the cursor in the middle as far as possible."""
    top = max(0, min(cursor - height // 2, count - height))
    return range(top, min(top + height, count))


class Cell(NamedTuple):
    """A column of a row. Widths are in cells and independent of the text, so that rows line up."""

    text: str | Content
    style: str = ""
    """A Textual style, never foreign text, such as ``$text-warning``."""
    min: int = 0
    max: int | None = None
    """None: an even share of what the other columns leave."""
    align: Literal["left", "right"] = "left"
    keep: Literal["start", "end"] = "start"
    """Which end of a text stays if it is too long; paths and URIs differ at their end."""


def columns(width: int, cells: Sequence[Cell], gap: int = 1) -> Content:
    """One line of exactly ``width`` cells; longer text ends in ``…``, and columns on the right go first."""
    line, spans, used = "", list[Span](), 0
    for cell, size in zip(cells, widths(width, tuple((cell.min, cell.max) for cell in cells), gap), strict=False):
        if not size:
            continue
        if used:
            line, used = line + " " * gap, used + gap
        text, inner = _fit(cell, size)
        start = len(line)
        if cell.style:
            spans.append(Span(start, start + len(text), cell.style))
        spans.extend(Span(start + left, start + right, style) for left, right, style in inner)
        line, used = line + text, used + size
    return Content(line + " " * (width - used), spans, width)


@lru_cache(maxsize=256)
def widths(width: int, bounds: tuple[tuple[int, int | None], ...], gap: int = 1) -> tuple[int, ...]:
    """The width of each column for its (minimum, maximum), as far from the left as the minimums fit.

    What is left goes first to the columns with a maximum, from the left, then evenly to the others.
    """
    lowest = [min(low, width) for low, _ in bounds]
    fitting = next((count for count in range(len(bounds), 1, -1) if _taken(lowest[:count], gap) <= width), 1)
    sizes = lowest[:fitting]
    for index, (_, high) in enumerate(bounds[:fitting]):
        if high is not None:
            _grow(sizes, index, min(width - _taken(sizes, gap), high - sizes[index]), gap)
    flexible = [index for index, (_, high) in enumerate(bounds[:fitting]) if high is None]
    for position, index in enumerate(flexible):
        _grow(sizes, index, (width - _taken(sizes, gap)) // (len(flexible) - position), gap)
    return tuple(sizes)


def _taken(sizes: Sequence[int], gap: int) -> int:
    shown = [size for size in sizes if size]
    return sum(shown) + gap * max(0, len(shown) - 1)


def _grow(sizes: list[int], index: int, amount: int, gap: int) -> None:
    """Widen a column by ``amount`` cells, less the gap that a column needs if it was empty."""
    opening = gap if not sizes[index] and any(sizes) else 0
    sizes[index] += max(0, amount - opening)


def _fit(cell: Cell, width: int) -> tuple[str, list[Span]]:
    """The text and the spans of a cell, in exactly ``width`` cells."""
    plain, spans = (cell.text, []) if isinstance(cell.text, str) else (cell.text.plain, list(cell.text.spans))
    length = cell_len(plain)
    if length > width and cell.keep == "end":
        kept = set_cell_size(plain[::-1], width - 1).rstrip()[::-1]
        gone = len(plain) - len(kept) - 1
        plain = "…" + kept
        spans = [Span(max(0, start - gone), end - gone, style) for start, end, style in spans if end - gone > 1]
        length = cell_len(plain)
    elif length > width:
        plain = set_cell_size(plain, width - 1).rstrip() + "…"  # half of a wide character is left out
        spans = [Span(start, min(end, len(plain)), style) for start, end, style in spans if start < len(plain)]
        length = cell_len(plain)
    padding = " " * (width - length)
    if cell.align == "left":
        return plain + padding, spans
    return padding + plain, [Span(start + len(padding), end + len(padding), style) for start, end, style in spans]
