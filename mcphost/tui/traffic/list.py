"""The list of messages: filtered, followed, sorted, cleared."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from operator import attrgetter
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.filter import EXAMPLES, TrafficFilter, parse_traffic_filter
from mcphost.host.traffic.message import TrafficMessage
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.kit.clock import file_stamp
from mcphost.tui.kit.export import recording_name, save_as
from mcphost.tui.kit.followed_list import FollowedList, list_keys
from mcphost.tui.kit.rows import RowList
from mcphost.tui.traffic.rows import TrafficRows

SLICE: Final = 0.02
"""Seconds for which unseen messages are paired before the screen gets its turn."""

STALE_MESSAGES: Final = 2_000
STALE_BYTES: Final = 32 << 20
"""Limits of what the list may hold after the book has evicted it; reading everything again is slow."""

_NUMBER: Final = attrgetter("number")


class MessageOrder(Enum):
    """Messages as they passed, or the largest first."""

    TIME = "time"
    LATENCY = "latency"
    SIZE = "size"

    @property
    def next(self) -> MessageOrder:
        """The next order, in a circle."""
        orders = list(MessageOrder)
        return orders[(orders.index(self) + 1) % len(orders)]


_ORDER_WORDS: Final = {MessageOrder.LATENCY: "slowest first", MessageOrder.SIZE: "largest first"}

_LARGEST: Final[dict[MessageOrder, Callable[[TrafficMessage], tuple[float, int]]]] = {
    MessageOrder.LATENCY: lambda message: (1.0 if message.latency is None else -message.latency, message.number),
    MessageOrder.SIZE: lambda message: (-float(message.size), message.number),
}


class TrafficList(FollowedList[TrafficMessage]):
    """Shows a traffic book; call `refresh_traffic` to update it.

    Sorted by anything but time the list does not change, and new messages are counted.
    """

    EMPTY = (
        "No traffic yet.\n\nEvery message to and from every server appears here, with stderr and HTTP headers.\n"
        "Start a server (s), or call a tool (t)."
    )
    NO_MATCH = "No messages match.\n\n/ changes the filter · esc shows all"
    CLEARED = "Cleared. X restores the earlier messages."
    HELP = (
        "Every message to and from every server: → out, ← in, dashed where a gate wrote it; ✖ failed, ◆ pinned, "
        "↗12 part of call 12.\n"
        f"Filter: {EXAMPLES}\nSecrets are masked here, in copies and in files."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        *list_keys("traffic", "message", "messages", clear="Clear the list; pinned messages stay"),
        Binding("S", "sort", "sort", id="traffic.sort", tooltip="Sort by latency, by size, or by time"),
    ]

    @dataclass
    class Highlighted(Message):
        """The cursor is on another message, or on none."""

        message: TrafficMessage | None

    class Followed(Message):
        """The list started or stopped following the newest message."""

    def __init__(self, book: TrafficBook) -> None:
        self._drawer = TrafficRows(book)
        super().__init__(parse_traffic_filter, EXAMPLES)
        self.filter: TrafficFilter
        self.book = book
        self.file = ""
        """The name of the imported file; empty for live traffic."""
        self.order = MessageOrder.TIME
        self._reading = False
        self._servers: set[str] = set()
        self._evicted = self._added_bytes = self._disconnects = 0

    def row(self, item: TrafficMessage, width: int) -> Content:
        return self._drawer.row(item, width, self.search, ids=self.filter.names_id)

    def head(self, width: int) -> Content:
        return self._drawer.head(width, ids=self.filter.names_id)

    def show_book(self, book: TrafficBook, file: str = "") -> None:
        """Show another book, imported from ``file`` unless it is live."""
        self.book, self.file, self._drawer = book, file, TrafficRows(book)
        self._servers, self.cleared, self.last_number, self.paused_at = set(), 0, 0, 0
        self.rows.set_items(())
        self.rows.focus()

    def refresh_traffic(self) -> bool:
        """Show new messages; return False if there are so many that it should be called again soon."""
        self._reading = not self.book.pair(SLICE)
        if self._reading:
            self.update_title()
            return False
        if not self.last_number or self._outdated() or self._stale():
            self.rebuild()
        elif fresh := self.book.since(self.last_number):
            self._add(fresh)
        self.update_title()
        return True

    def rebuild(self) -> None:
        kept = self.book.since(0)
        self._remember(kept)
        self._added_bytes, self._evicted = 0, self._evictions()
        self.total = len([each for each in kept if self._is_left(each)])
        shown = [each for each in kept if self.passes(each)]
        if self.order is not MessageOrder.TIME:
            shown.sort(key=_LARGEST[self.order])
            self.paused_at = self.last_number
        self.list_items(shown)
        self.update_title()

    def passes(self, message: TrafficMessage) -> bool:
        return self._is_left(message) and self.filter.passes(message)

    def _is_left(self, message: TrafficMessage) -> bool:
        """True if the user has not cleared it."""
        return message.number > self.cleared or self.book.is_pinned(message)

    def place_of(self, message: TrafficMessage) -> int | None:
        if self.order is MessageOrder.TIME:
            place = self._place(message)
            return place if self._has(place, message) else None
        return next((place for place, each in enumerate(self.rows.items) if each.number == message.number), None)

    def _add(self, fresh: list[TrafficMessage]) -> None:
        self._remember(fresh)
        self.total += len(fresh)
        shown = [each for each in fresh if self.passes(each)]
        self.unseen += len(shown)
        if self.order is MessageOrder.TIME:
            self._added_bytes += sum(len(each.data) for each in shown)
            self._update_requests(fresh)
            self.rows.append(shown)

    def _update_requests(self, fresh: list[TrafficMessage]) -> None:
        """Add or remove requests whose kind has changed by their response."""
        if not self.filter.tests:
            return
        answered = {each.partner for each in fresh if each.partner is not None and each.partner < fresh[0].number}
        requests = [request for number in answered if (request := self.book.message(number))]
        changed = [each for each in requests if self._has(self._place(each), each) != self.passes(each)]
        if changed:
            self.rows.set_items(_toggled(self.rows.items, changed))

    def _place(self, message: TrafficMessage) -> int:
        return bisect_left(self.rows.items, message.number, key=_NUMBER)

    def _has(self, place: int, message: TrafficMessage) -> bool:
        return place < len(self.rows.items) and self.rows.items[place].number == message.number

    def _remember(self, messages: list[TrafficMessage]) -> None:
        if messages:
            self.last_number = messages[-1].number
            self._servers |= {each.place for each in messages}
            self._drawer.name_servers(self._servers)
            self._drawer.name_methods(messages)

    def _outdated(self) -> bool:
        """True if a connection has ended, so that the kind of its requests has changed."""
        ended = self._disconnects != self.book.disconnects
        self._disconnects = self.book.disconnects
        if ended:
            self.rows.refresh()
        return ended and bool(self.filter.tests)

    def _stale(self) -> bool:
        """True if the list holds too much that the book has evicted."""
        if self.order is not MessageOrder.TIME:
            return False
        gone = self._evictions() - self._evicted
        lost_track = self.book.message(self.last_number) is None
        many = gone > max(STALE_MESSAGES, len(self.rows.items) // 4)
        return lost_track or many or bool(gone and self._added_bytes > STALE_BYTES)

    def _evictions(self) -> int:
        return sum(map(self.book.evicted, self._servers))

    def title_words(self) -> Iterable[str]:
        gone = self._evictions()
        return (
            "Traffic",
            f"file {show_line(self.file, 40)}, read only" if self.file else "",
            "filtered" if self.filter.tests else "",
            self._state,
            f"{gone:,} older dropped" if gone else "",
        )

    @property
    def _state(self) -> str:
        if self._reading:
            return "reading"
        if self.order is not MessageOrder.TIME:
            return f"{_ORDER_WORDS[self.order]}{f' · {self.unseen:,} new' if self.unseen else ''}"
        return "" if self.file and self.rows.following else self.following_words

    def on_row_list_followed(self, event: RowList.Followed) -> None:
        self.post_message(self.Followed())

    def on_row_list_highlighted(self, event: RowList.Highlighted[TrafficMessage]) -> None:
        event.stop()
        self.post_message(self.Highlighted(event.item))

    @property
    def newest(self) -> int:
        """The row of the newest message, or of the first in another order."""
        return super().newest if self.order is MessageOrder.TIME else 0

    def action_sort(self) -> None:
        """Sort by the next of latency, size and time; select the largest, or by time the same message as before."""
        self._sort(self.order.next)

    def _sort(self, order: MessageOrder) -> None:
        self.order = order
        self.rows.following, self.rows.tails = False, order is MessageOrder.TIME
        self.rebuild()
        if order is not MessageOrder.TIME:
            self.rows.highlighted = 0

    def action_follow(self) -> None:
        """Follow the newest message, or pause; in another order, return to the order of time."""
        if self.order is not MessageOrder.TIME:
            self._sort(MessageOrder.TIME)
        else:
            super().action_follow()

    async def exported(self, items: Sequence[TrafficMessage]) -> tuple[str, bytes]:
        # In a thread: masking the secrets of thousands of messages is slow.
        content = await asyncio.to_thread(self.book.export, items)
        return recording_name("mcphost-traffic", file_stamp()), content

    def save_session(self, message: TrafficMessage) -> None:
        """Save all messages of the connection of this one."""
        self.run_worker(self._save_session(message), group="export", exclusive=True)

    async def _save_session(self, message: TrafficMessage) -> None:
        _, content = await self.exported(self.book.session_of(message))
        save_as(self.app, recording_name(message.server, file_stamp()), content)


def _toggled(items: Iterable[TrafficMessage], changed: Iterable[TrafficMessage]) -> list[TrafficMessage]:
    """The items in order, with those of ``changed`` added if missing and removed if present."""
    found = {each.number: each for each in items}
    for each in changed:
        if found.pop(each.number, None) is None:
            found[each.number] = each
    return sorted(found.values(), key=_NUMBER)
