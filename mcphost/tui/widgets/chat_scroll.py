"""Parts of a conversation one below the other, of any number: only those in view are laid out and drawn.

Knows where parts stand and which are in view; the height of what nobody looked at yet is a guess, which is mended
before it is seen. Refuses to know what a part says, and what keys do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from mcphost.tui.timers import unskipped
from mcphost.tui.widgets.chat_items import TranscriptItem

GUTTER: Final = 2
"""Cells before each row: the cursor or whose words these are, and a blank."""

NEXT: Final = 0.01
"""Seconds until the next piece of a part that is too long to be laid out at once."""

PARTS: Final = (
    "heading", "strong", "em", "strike", "code", "link", "mark", "key", "string", "number", "constant", "match",
    "current", "user", "model", "use", "muted", "good", "warn", "bad", "label",
)  # fmt: skip


MUTED: Final = ("muted", "label")


class PartsView(ScrollView, can_focus=True):
    """Draws ``_items``. While it is ``following`` it stays at its end."""

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
        & > .chat--current { background: $warning; color: $background; text-style: bold underline; }
        & > .chat--user { color: $accent; text-style: bold; }
        & > .chat--model { color: $primary; }
        & > .chat--use { color: $secondary; }
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
        self._sure = 0
        """Items whose tops are right."""
        self._cursor: TranscriptItem | None = None
        self._anchor = (0, 0)
        """What stands at the top while it does not follow: an item, and how many of its rows are above."""
        self._placing = self._behind = False
        self._next: Timer | None = None

    @property
    def item(self) -> TranscriptItem | None:
        """The part under the cursor; the last one, as long as nobody moved it."""
        return self._cursor if self._cursor is not None else (self._items[-1] if self._items else None)

    @property
    def items(self) -> Sequence[TranscriptItem]:
        """All parts."""
        return self._items

    def _settle(self) -> None:
        """Lay out what is in view, and put it where it belongs."""
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
        self.refresh()
        if self._behind and self._next is None:
            self._next = unskipped(self.set_timer(NEXT, self._go_on))

    def _go_on(self) -> None:
        self._next = None
        self._settle()

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
            self._sure = min(self._sure, number)

    def _measure(self, width: int) -> None:
        del self._tops[self._sure + 1 :]
        for item in self._items[self._sure :]:
            self._tops.append(self._tops[-1] + item.height(width))
        self._sure = len(self._items)

    def _place(self, top: int) -> None:
        """Say how long it is and scroll there; the whole screen is not laid out again for it."""
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

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Looking back stops following; the end starts it again."""
        super().watch_scroll_y(old_value, new_value)
        if not self._placing and self._room > 0:
            self._look_from(round(new_value))

    def _look_from(self, top: int) -> None:
        """Show what stands at this row; the first part in view may turn out to be of another height than guessed."""
        if not self._items:
            return
        width, self.following = self._room, top >= self.max_scroll_y
        self._measure(width)
        number = min(bisect_right(self._tops, top) - 1, len(self._items) - 1)
        item, row = self._items[number], top - self._tops[number]
        before = item.height(width)
        self._lay_out(number, width)
        self._anchor = number, max(0, item.height(width) - (before - row))
        self._settle()

    def on_resize(self, event: events.Resize) -> None:
        """Wrap what is in view for the new width."""
        self._sure = 0
        self._settle()

    def notify_style_update(self) -> None:
        """Draw in the colours of another theme."""
        super().notify_style_update()
        for item in self._items:
            item.laid.strips.clear()

    def _at(self, row: int) -> int:
        return max(0, min(bisect_right(self._tops, row) - 1, len(self._items) - 1))

    def _number(self, item: TranscriptItem | None) -> int:
        return next((at for at in range(len(self._items) - 1, -1, -1) if self._items[at] is item), 0)

    def _go(self, top: int) -> None:
        self.scroll_to(y=max(0, min(top, self.max_scroll_y)), animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        """One row of what is in view."""
        row, width = y + round(self.scroll_y), self.scrollable_content_region.width
        if not self._items or not 0 <= row < self._tops[-1]:
            return Strip.blank(width, self.rich_style)
        number = self._at(row)
        item = self._items[number]
        inner = row - self._tops[number] - item.gap
        if inner < 0 or inner >= len(item.laid.rows):
            return Strip.blank(width, self.rich_style)
        return Strip([self._mark(item, inner), *self._drawn(item, inner)]).adjust_cell_length(width, self.rich_style)

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
        yield from Segment.apply_style(text.render(self.app.console), self.rich_style)

    def _style(self, part: str) -> Style:
        # A muted colour lets the background through, so it needs one; the others go over whatever is there.
        return self.get_component_rich_style(f"chat--{part}", partial=part not in MUTED)

    def _mark(self, item: TranscriptItem, row: int) -> Segment:
        mark, part = item.gutter
        if item is self.item and self.has_focus:
            return Segment(("▸" if row == 0 else mark) + " ", self.rich_style + self._style("user"))
        return Segment(f"{mark} ", self.rich_style + self._style(part))

    def marks_of(self, item: TranscriptItem, line: int) -> Iterator[tuple[int, int, str]]:
        """What of a line has a style besides its own."""
        yield from ()
