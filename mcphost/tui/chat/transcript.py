"""The transcript of a conversation: scrolls at once whatever its length, and grows without flicker.

Textual's MarkdownStream keeps a widget for each block: 50 turns take 2.2 to 2.7 seconds and 145 MB, and 1,000 turns of
this transcript 13 to 27 ms and 57 MB.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from mcphost.host.chat.turns import Turn
from mcphost.tui.chat.items import AnswerItem, Key, MessageItem, NoteItem, ThoughtItem, TranscriptItem, UseItem, note_of
from mcphost.tui.chat.markdown import legible
from mcphost.tui.kit.text_view import MATCHES, matches_in
from mcphost.tui.textual_private.corrections import ScrollbarsOnLayout, timer_without_skips

GUTTER: Final = 2
"""Cells before each row: the speaker's mark or the cursor, and a blank."""

NEXT_PIECE: Final = 0.01
"""Seconds until the next piece of a long item is laid out."""

PARTS: Final = (
    "heading", "strong", "em", "strike", "code", "link", "mark", "key", "string", "number", "constant", "match",
    "current", "user", "model", "use", "muted", "good", "warn", "bad", "label",
)  # fmt: skip


MUTED: Final = ("muted", "label")


class PartsView(ScrollView, ScrollbarsOnLayout, can_focus=True):
    """Draws transcript items. While ``following`` it stays at the end."""

    ALLOW_SELECT = False

    DEFAULT_CSS = """
    PartsView {
        height: 1fr; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1;
        scrollbar-background: $background;
        & > .chat--heading { color: $text-primary; text-style: bold; }
        & > .chat--strong { text-style: bold; }
        & > .chat--em { text-style: italic; }
        & > .chat--strike { text-style: strike; }
        & > .chat--code { background: $panel; color: $text-warning; }
        & > .chat--link { color: $text-accent; }
        & > .chat--mark { color: $text-primary; }
        & > .chat--key { color: $text-primary; }
        & > .chat--string { color: $text-success; }
        & > .chat--number { color: $text-warning; }
        & > .chat--constant { color: $text-accent; }
        & > .chat--match { background: $warning-muted; color: $text-warning; text-style: underline; }
        & > .chat--current { color: $text-warning; text-style: bold reverse; }
        & > .chat--user { color: $text-accent; text-style: bold; }
        & > .chat--model { color: $text-primary; }
        & > .chat--use { color: $text-secondary; }
        & > .chat--muted { color: $foreground-muted; }
        & > .chat--label { color: $foreground-muted; text-style: bold; }
        & > .chat--good { color: $text-success; }
        & > .chat--warn { color: $text-warning; }
        & > .chat--bad { color: $text-error; text-style: bold; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"chat--{part}" for part in PARTS}

    def __init__(self) -> None:
        super().__init__()
        self.following = True
        self._items: list[TranscriptItem] = []
        self._tops = [0]
        self._measured = 0
        """The number of items whose tops are exact."""
        self._cursor: TranscriptItem | None = None
        self._anchor = (0, 0)
        """The item at the top of the view, and how many of its rows are above; used while not following."""
        self._placing = self._behind = False
        self._next: Timer | None = None
        self._painted: dict[int, Strip] = {}
        """The rows of the view as Textual last asked for them."""
        self._base = Style()
        """The widget's own style, read once a frame: Textual computes it from all ancestors each time."""

    @property
    def item(self) -> TranscriptItem | None:
        """The item under the cursor; the last one until the cursor was moved."""
        return self._cursor if self._cursor is not None else (self._items[-1] if self._items else None)

    @property
    def items(self) -> Sequence[TranscriptItem]:
        return self._items

    def _lay_out_view(self) -> None:
        """Lay out the visible items, and scroll to where they belong."""
        width, height = self._room, self.scrollable_content_region.height
        if width <= 0 or height <= 0:
            return
        if self.following:
            self._fill(range(len(self._items) - 1, -1, -1), width, height)
        else:
            self._fill(range(min(self._anchor[0], len(self._items)), len(self._items)), width, height + self._anchor[1])
        self._measure(width)
        if self.following:
            top = self._tops[-1] - height
        else:
            number = min(self._anchor[0], max(0, len(self._items) - 1))
            top = self._tops[number] + self._anchor[1]
        self._place(max(0, top))
        self._repaint_changed(height)
        if self._behind and self._next is None:
            self._next = timer_without_skips(self.set_timer(NEXT_PIECE, self._go_on))

    def _go_on(self) -> None:
        self._next = None
        self._lay_out_view()

    @property
    def _room(self) -> int:
        return self.scrollable_content_region.width - GUTTER

    def _fill(self, numbers: Sequence[int], width: int, height: int) -> None:
        self._behind = False
        for number in numbers:
            if height <= 0:
                return
            self._lay_out(number, width)
            height -= self._items[number].height(width)

    def _lay_out(self, number: int, width: int) -> None:
        item = self._items[number]
        if not item.ready(width):
            item.lay_out(width)
            self._behind = self._behind or item.behind
            self._measured = min(self._measured, number)

    def _measure(self, width: int) -> None:
        del self._tops[self._measured + 1 :]
        for item in self._items[self._measured :]:
            self._tops.append(self._tops[-1] + item.height(width))
        self._measured = len(self._items)

    def _place(self, top: int) -> None:
        """Set the virtual height and scroll, without a new layout of the whole screen."""
        self._placing = True
        try:
            length = self._tops[-1]
            self.set_reactive(PartsView.virtual_size, Size(0, length))
            self.vertical_scrollbar.window_virtual_size = length
            self.vertical_scrollbar.window_size = self.scrollable_content_region.height
            self.scroll_y = min(top, self.max_scroll_y)
            self.scroll_target_y = self.scroll_y
        finally:
            self._placing = False

    def _repaint_changed(self, height: int) -> None:
        """Repaint the rows that differ from what is on screen."""
        # A word of a streaming answer changes a row or two; a repaint of the whole view would send 30 times as much.
        self._base = self.rich_style
        rows = [row for row in range(height) if self._strip(row) != self._painted.get(row)]
        if rows:
            width = self.scrollable_content_region.width
            self.refresh(*(Region(0, row, width, 1) for row in rows))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Stop following when the user scrolls back; follow again at the end."""
        super().watch_scroll_y(old_value, new_value)
        if not self._placing and self._room > 0:
            self._show_from(round(new_value))

    def _show_from(self, top: int) -> None:
        """Show what is at this row; the top item may turn out to be higher or lower than estimated."""
        if not self._items:
            return
        width, self.following = self._room, top >= self.max_scroll_y
        self._measure(width)
        number = min(bisect_right(self._tops, top) - 1, len(self._items) - 1)
        item, row = self._items[number], top - self._tops[number]
        before = item.height(width)
        self._lay_out(number, width)
        self._anchor = number, max(0, item.height(width) - (before - row))
        self._lay_out_view()

    def on_resize(self, event: events.Resize) -> None:
        self._measured = 0
        self._lay_out_view()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        for item in self._items:
            item.laid.strips.clear()

    def _at(self, row: int) -> int:
        return max(0, min(bisect_right(self._tops, row) - 1, len(self._items) - 1))

    def _number(self, item: TranscriptItem | None) -> int:
        return next((at for at in range(len(self._items) - 1, -1, -1) if self._items[at] is item), 0)

    def _go(self, top: int) -> None:
        self.scroll_to(y=max(0, min(top, self.max_scroll_y)), animate=False, force=True)

    def render_lines(self, crop: Region) -> list[Strip]:
        self._base = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        strip = self._painted[y] = self._strip(y)
        return strip

    def _strip(self, y: int) -> Strip:
        row, width = y + round(self.scroll_y), self.scrollable_content_region.width
        if not self._items or not 0 <= row < self._tops[-1]:
            return Strip.blank(width, self._base)
        number = self._at(row)
        item = self._items[number]
        inner = row - self._tops[number] - item.gap
        if inner < 0 or inner >= len(item.laid.rows):
            return Strip.blank(width, self._base)
        return Strip([self._mark(item, inner), *self._drawn(item, inner)]).adjust_cell_length(width, self._base)

    def _drawn(self, item: TranscriptItem, row: int) -> Strip:
        if row not in item.laid.strips:
            item.laid.strips[row] = Strip(self._segments(item, row))
        return item.laid.strips[row]

    def _segments(self, item: TranscriptItem, row: int) -> Iterator[Segment]:
        number, start, end = item.laid.rows[row]
        line = item.laid.lines[number]
        hang = line.hang if start else ""
        text = Text(hang + line.text[start:end], end="")
        for first, last, part in (*line.spans, *self.marks_of(item, number)):
            if part and first < end and last > start:
                text.stylize(self._style(part), len(hang) + max(0, first - start), len(hang) + min(last, end) - start)
        yield from Segment.apply_style(text.render(self.app.console), self._base)

    def _style(self, part: str) -> Style:
        # A muted colour is translucent and needs a background; the others are drawn over whatever is there.
        return self.get_component_rich_style(f"chat--{part}", partial=part not in MUTED)

    def _mark(self, item: TranscriptItem, row: int) -> Segment:
        mark, part = item.gutter
        if item is self.item and self.has_focus:
            return Segment(("▸" if row == 0 else mark) + " ", self._base + self._style("user"))
        return Segment(f"{mark} ", self._base + self._style(part))

    def marks_of(self, item: TranscriptItem, line: int) -> Iterator[tuple[int, int, str]]:
        """The spans of a line that are marked besides its own styles."""
        yield from ()


Place = tuple[TranscriptItem, int, int]
"""An item, a line of it and a column."""


def _key(keys: str, action: str, words: str, tooltip: str, *, show: bool = False) -> Binding:
    return Binding(keys, action, words, show=show, tooltip=tooltip, id=f"chat.{words.replace(' ', '-')}")


class Transcript(PartsView):
    """The conversation that `show_turns` is given, with the cursor on one item. At its end it follows what is added."""

    BINDINGS: ClassVar[list[BindingType]] = [
        _key("up,k", "step(-1)", "up", "To the previous part, or up in a long one"),
        _key("down,j", "step(1)", "down", "To the next part, or down in a long one"),
        _key("pageup", "page(-1)", "page up", "One page up"),
        _key("pagedown", "page(1)", "page down", "One page down"),
        _key("home", "first", "first", "To the beginning"),
        _key("end", "last", "last", "To the end, and follow what comes"),
        _key("enter,space", "fold", "unfold", "Unfold or fold a call or thoughts", show=True),
        _key("Z", "fold_all", "unfold all", "Unfold or fold all calls of the conversation"),
    ]
    HELP = "The conversation: ▌ you, │ the model, ┆ a tool. ▸ marks the part under the cursor."

    class Moved(Message):
        """The cursor moved to another item."""

    def __init__(self) -> None:
        super().__init__()
        self._starts: list[int] = []
        """The index of the first item of each turn."""
        self._ended = 0
        """The number of leading turns that had ended when they were last shown."""
        self._open: bool | None = None
        self._matches: dict[TranscriptItem, list[tuple[int, int, int]]] = {}
        self._match: Place | None = None

    @property
    def turn(self) -> int | None:
        """The number of the turn under the cursor."""
        return None if self.item is None else self.item.key[0]

    def forget(self) -> None:
        """Drop all items, before another conversation is shown."""
        self._items, self._starts, self._ended, self._tops, self._measured = [], [], 0, [0], 0
        self._cursor, self._anchor, self.following = None, (0, 0), True
        self._matches, self._match = {}, None

    def show_turns(self, turns: Sequence[Turn]) -> None:
        """Show these turns. Turns that had ended before are not looked at again, except the last."""
        first = min(self._ended, max(0, len(turns) - 1), len(self._starts))
        start = self._starts[first] if first < len(self._starts) else len(self._items)
        old = self._items[start:]
        known: Mapping[Key, TranscriptItem] = {item.key: item for item in old}
        del self._starts[first:], self._items[start:]
        for turn in turns[first:]:
            self._starts.append(len(self._items))
            self._items.extend(items_of(turn, known))
        self._ended = next((number for number in range(first, len(turns)) if not turns[number].state.ended), len(turns))
        changed = old != self._items[start:]
        for number in range(start, len(self._items)):
            changed = self._update_item(number, new=self._items[number].key not in known) or changed
        if changed:
            if self._cursor is not None and self._cursor not in self._items[start:] and self._cursor in old:
                self._cursor = None
            self._measured = min(self._measured, start)
            self._lay_out_view()

    def _update_item(self, number: int, *, new: bool) -> bool:
        item = self._items[number]
        beside = number > 0 and isinstance(item, UseItem) and isinstance(self._items[number - 1], UseItem)
        item.gap = 0 if number == 0 or beside else 1
        if new and item.folds and self._open is not None:
            item.folded = not self._open
        return item.refresh()

    # Keys and mouse.

    def action_step(self, direction: int) -> None:
        """Go to another item; scroll within an item that is taller than the view."""
        if not self._items:
            return
        height, number = self.scrollable_content_region.height, self._number(self.item)
        self._measure(self._room)
        top, bottom = self._tops[number], self._tops[number + 1]
        view = round(self.scroll_y)
        if direction > 0 and bottom > view + height:
            self._go(view + max(1, min(height // 2, bottom - view - height)))
        elif direction < 0 and top < view and self._cursor is not None:
            self._go(view - max(1, min(height // 2, view - top)))
        else:
            self._point(number if self._cursor is None and direction < 0 else number + direction)

    def action_page(self, direction: int) -> None:
        height = self.scrollable_content_region.height
        self._go(round(self.scroll_y) + direction * max(1, height - 1))
        if self._items:
            self._measure(self._room)
            row = round(self.scroll_y) + (height - 1 if direction > 0 else 0)
            self._cursor = self._items[self._at(row)]
            self._cursor_moved()

    def action_first(self) -> None:
        self._go(0)
        self._point(0)

    def action_last(self) -> None:
        """Go to the end, and follow."""
        self._cursor, self.following = None, True
        self._lay_out_view()
        self._cursor_moved()

    def action_fold(self) -> None:
        item = self.item
        if item is not None and item.folds:
            self._fold([item], not item.folded)

    def action_fold_all(self) -> None:
        folding = [item for item in self._items if item.folds]
        self._open = any(item.folded for item in folding)
        self._fold(folding, not self._open)

    def _fold(self, items: Sequence[TranscriptItem], folded: bool) -> None:
        """Fold or unfold, with the selected item staying where it is on the screen."""
        if not items:
            return
        self._measure(self._room)
        number = self._number(self.item)
        self._cursor, self.following = self.item, False
        self._anchor = number, min(round(self.scroll_y) - self._tops[number], 0)
        for item in items:
            item.folded = folded
            item.refresh()
        self._measured = 0
        self._lay_out_view()
        self.following = self.scroll_y >= self.max_scroll_y

    def on_click(self, event: events.Click) -> None:
        """Select on one click, fold or unfold on two."""
        offset = event.get_content_offset(self)
        if offset is None or not self._items or offset.y + round(self.scroll_y) >= self._tops[-1]:
            return
        self._cursor = self._items[self._at(offset.y + round(self.scroll_y))]
        self._cursor_moved()
        if event.chain == 2:
            self.action_fold()

    def _point(self, number: int) -> None:
        """Select an item, and scroll to it."""
        number = max(0, min(number, len(self._items) - 1))
        if not self._items:
            return
        self._cursor = self._items[number]
        self._lay_out(number, self._room)
        self._measure(self._room)
        height, view = self.scrollable_content_region.height, round(self.scroll_y)
        top, bottom = self._tops[number], self._tops[number + 1]
        if top < view:
            self._go(max(top, bottom - height) if bottom - height < top else bottom - height)
        elif bottom > view + height:
            self._go(min(top, bottom - height) if bottom - top <= height else top)
        self._cursor_moved()

    def _cursor_moved(self) -> None:
        self.refresh()
        self.post_message(self.Moved())

    # Searching; see `mcphost.tui.kit.search.SearchArea`.

    def find(self, query: str) -> list[Place]:
        """Mark the matches, `MATCHES` at most; an empty query removes the marks."""
        for item in self._matches:
            item.laid.strips.clear()
        self._matches, self._match = {}, None
        found = list(islice(self._find(query), MATCHES)) if query else []
        self._measured = 0
        for item, line, start, end in found:
            self._matches.setdefault(item, []).append((line, start, end))
            item.laid.strips.clear()
        self.refresh()
        return [(item, line, start) for item, line, start, _ in found]

    def go_to(self, place: Place | None) -> None:
        """Make this match the current one, in the middle of the view."""
        for each in (self._match, place):
            if each is not None:
                each[0].laid.strips.clear()
        self._match = place
        if place is not None:
            item, line, column = place
            number = self._number(item)
            self._lay_out(number, self._room)
            self._measure(self._room)
            row = self._tops[number] + item.gap + item.laid.row_of(line, column)
            self._cursor = item
            self._go(row - self.scrollable_content_region.height // 2)
            self._cursor_moved()
        self.refresh()

    def _find(self, query: str) -> Iterator[tuple[TranscriptItem, int, int, int]]:
        for item in self._items:
            if next(matches_in([legible(item.source)], query), None) is None:
                continue
            if item.folded and item.folds:
                item.folded = False
                item.refresh()
            item.write_lines()
            for place in matches_in((line.text for line in item.laid.lines), query):
                yield item, *place

    def marks_of(self, item: TranscriptItem, line: int) -> Iterator[tuple[int, int, str]]:
        for number, start, end in self._matches.get(item, ()):
            if number == line:
                yield start, end, "current" if self._match == (item, line, start) else "match"


def items_of(turn: Turn, known: Mapping[Key, TranscriptItem]) -> Iterator[TranscriptItem]:
    """The items of a turn in order; those ``known`` are reused."""
    yield known.get((turn.number, 0, "said")) or MessageItem((turn.number, 0, "said"), turn)
    for number, answer in enumerate(turn.rounds):
        if answer.thought:
            key = turn.number, number, "thought"
            yield known.get(key) or ThoughtItem(key, answer)
        if answer.size:
            key = turn.number, number, "answer"
            yield known.get(key) or AnswerItem(key, answer)
        for place, use in enumerate(answer.uses):
            key = turn.number, number, f"use {place}"
            yield known.get(key) or UseItem(key, use)
    if note_of(turn)[1]:
        key = turn.number, 0, "note"
        yield known.get(key) or NoteItem(key, turn)
