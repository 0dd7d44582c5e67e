"""Frames of a traffic book as a list with a filter above it: followed, sorted, cleared.

Knows which frames are shown and what the list says of itself. Refuses to know what is done with one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.filter import EXAMPLES, parse_traffic_filter
from mcphost.host.traffic.frames import Frame
from mcphost.protocol.display import show_line
from mcphost.tui.ranking import Search
from mcphost.tui.widgets.filter_line import FilterLine
from mcphost.tui.widgets.rows import RowList
from mcphost.tui.widgets.traffic_feed import FrameOrder, TrafficFeed
from mcphost.tui.widgets.traffic_rows import TrafficRows

_NOTHING_YET: Final = (
    "No traffic yet.\n\nEvery message to and from every server appears here, with stderr and HTTP headers.\n"
    "Start a server (s), or call a tool (t)."
)
_NOTHING_PASSES: Final = "No frame passes.\n\n/ changes the filter · esc shows all"
_CLEARED: Final = "Cleared. X brings the earlier frames back."


def key(
    pressed: str, action: str, description: str, tooltip: str, *, show: bool = True, system: bool = False
) -> Binding:
    """A key of this pane; ``system`` keeps it out of the help."""
    name = f"traffic.{action}"
    return Binding(pressed, action, description, show=show, tooltip=tooltip, id=name, system=system)


class TrafficList(Vertical):
    """A view of a traffic book, kept up to date by ``refresh_traffic``; the parent acts on highlighted frames."""

    HELP = (
        "Every message to and from every server: → out, ← in; ✖ failed, ◆ pinned, ↗12 belongs to call 12.\n"
        f"A filter: {EXAMPLES}\nThe slowest: S, or /latency>1s. Secrets are masked here, in copies and in files."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape", "unfilter", "no filter", "Show all frames again"),
        key("slash", "filter", "filter", "Show only some frames"),
        key("S", "sort", "sort", "Sort by latency, by size, or by time"),
        key("f", "follow", "follow", "Follow the newest frame, or pause"),
        key("x", "clear", "clear", "Clear the view; pinned frames stay", show=False),
        key("X", "restore", "unclear", "Bring cleared frames back", show=False),
    ]
    DEFAULT_CSS = """
    TrafficList {
        height: 1fr; border: round $surface-lighten-2; border-title-color: $text-muted;
        &:focus-within { border: round $accent; border-title-color: $text; }
    }
    """

    @dataclass
    class Highlighted(Message):
        """Another frame is under the cursor, or none. Textual carries the rows' own word no further than its cause."""

        frame: Frame | None

    class Followed(Message):
        """The list began or ceased to follow the newest frame."""

    def __init__(self, book: TrafficBook) -> None:
        super().__init__()
        self.file = ""
        """The name of the file that is looked at; empty: it is the live traffic."""
        self._title = ""
        self.filter_line = FilterLine(parse_traffic_filter, EXAMPLES)
        self._look = TrafficRows(book)
        self.rows = RowList[Frame](lambda frame, width: self._look.row(frame, width), empty=_NOTHING_YET, tails=True)
        self.feed = TrafficFeed(self.rows, book)

    def compose(self) -> ComposeResult:
        """The filter line and the frames."""
        yield self.filter_line
        yield self.rows

    def refresh_traffic(self) -> bool:
        """Take in what came, at the cost of what came; False: there is so much that it should be called again soon."""
        done = self.feed.refresh()
        if done:
            self._settle()
        else:
            self._say("reading")
        return done

    def show_filtered(self, text: str) -> None:
        """Show the frames that pass this filter, and go there."""
        self.filter_line.show_filter(text)
        self._apply(text)
        self.rows.focus()

    def show_book(self, book: TrafficBook, file: str = "") -> None:
        """Show another book; ``file`` is where it comes from, if it is not live."""
        self.file, self._look = file, TrafficRows(book)
        self._look.search = Search(words=self.feed.filter.words)
        self.feed.show_book(book)
        self.rows.focus()

    def _settle(self) -> None:
        """Say what there is, after it changed."""
        self._look.name_servers(self.feed.servers)
        if not self.rows.items:
            self.rows.empty = _CLEARED if self.feed.cleared else _NOTHING_PASSES if self.feed.total else _NOTHING_YET
        self._say()

    def _say(self, state: str = "") -> None:
        """The title and the count."""
        if self.rows.following:
            self.feed.unseen = 0
        gone = sum(map(self.feed.book.evicted, self.feed.servers))
        words = [
            "Traffic",
            f"file {show_line(self.file, 40)}, read only" if self.file else "",
            "filtered" if self.feed.filter.tests else "",
            state or self._state,
            f"{gone:,} older gone" if gone else "",
        ]
        title = " · ".join(word for word in words if word)
        if title != self._title:
            self._title = title
            self.border_title = Content(title)
        self.filter_line.say_count(len(self.rows.items), self.feed.total)

    @property
    def _state(self) -> str:
        new = f" · {self.feed.unseen:,} new" if self.feed.unseen else ""
        if self.feed.order is not FrameOrder.TIME:
            return f"largest {self.feed.order.value} first{new}"
        return f"paused{new}" if not self.rows.following else "" if self.file else "following"

    def on_row_list_followed(self, event: RowList.Followed) -> None:
        """Say whether new frames come into view."""
        event.stop()
        self._say()
        self.post_message(self.Followed())

    def on_row_list_highlighted(self, event: RowList.Highlighted[Frame]) -> None:
        """See `Highlighted`."""
        event.stop()
        self.post_message(self.Highlighted(event.item))

    def action_filter(self) -> None:
        """Open the filter line."""
        self.filter_line.open()
        self.refresh_bindings()

    def on_filter_line_typed(self, event: FilterLine.Typed) -> None:
        """Filter as it is typed; the newest frame that passes, or the first in another order, is under the cursor."""
        event.stop()
        if event.text == self.filter_line.input.value:  # else a later one is on its way
            self._apply(event.text)
            if self.feed.filter.text:
                self.rows.highlighted = len(self.rows.items) - 1 if self.feed.order is FrameOrder.TIME else 0

    def _apply(self, text: str) -> None:
        if text.strip() != self.feed.filter.text:
            self.feed.filter = parse_traffic_filter(text)
            self._look.search = Search(words=self.feed.filter.words)
            self._rebuild()

    def _rebuild(self) -> None:
        self.feed.rebuild()
        self._settle()

    def on_filter_line_entered(self, event: FilterLine.Entered) -> None:
        """Go on to the frames that pass."""
        event.stop()
        if self.feed.filter.text:
            self.rows.focus()
        else:
            self.action_unfilter()

    def on_filter_line_left(self, event: FilterLine.Left) -> None:
        """Down is enough to go there."""
        event.stop()
        self.rows.focus()

    def action_unfilter(self) -> None:
        """Close the filter line and show all frames."""
        self.filter_line.close()
        self._apply("")
        self.rows.focus()
        self.refresh_bindings()

    def action_sort(self) -> None:
        """Latency, size, time: the largest first, under the cursor; by time the cursor stays on its frame."""
        self._sort(self.feed.order.next)

    def _sort(self, order: FrameOrder) -> None:
        self.feed.order = order
        self.rows.following, self.rows.tails = False, order is FrameOrder.TIME
        self._rebuild()
        if order is not FrameOrder.TIME:
            self.rows.highlighted = 0

    def action_follow(self) -> None:
        """Follow the newest frame, or pause; from another order go to the order of time, where the cursor is."""
        if self.feed.order is not FrameOrder.TIME:
            self._sort(FrameOrder.TIME)
            return
        self.rows.following = not self.rows.following

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A key works where it has something to work on."""
        if action == "unfilter":
            return self.filter_line.is_open
        if action == "filter":
            return not self.filter_line.input.has_focus
        return bool(self.feed.cleared) if action == "restore" else True

    def action_clear(self) -> None:
        """Begin with an empty view; the frames are still in the book, and pinned ones in the view."""
        self.feed.clear()
        self._settle()

    def action_restore(self) -> None:
        """Show the frames again that were cleared from the view."""
        self.feed.cleared = 0
        self._rebuild()
