"""Which frames of a traffic book are in the list, and in what order; brought up to date at the cost of what is new.

Knows the filter, the order and how far the book was read. Refuses to know how a frame looks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from enum import Enum
from operator import attrgetter
from typing import Final

from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.filter import TrafficFilter
from mcphost.host.traffic.frames import Frame
from mcphost.tui.widgets.rows import RowList

SLICE: Final = 0.02
"""Seconds in which frames that passed unseen are paired before the screen gets its turn again."""

STALE_FRAMES: Final = 2_000
STALE_BYTES: Final = 32 << 20
"""What the list may hold beyond what the book still keeps: reading all again costs more the more often it is done."""

_NUMBER: Final = attrgetter("number")


class FrameOrder(Enum):
    """How frames are sorted: as they passed, or the largest first."""

    TIME = "time"
    LATENCY = "latency"
    SIZE = "size"

    @property
    def next(self) -> FrameOrder:
        """The order after this one; after the last comes the first."""
        orders = list(FrameOrder)
        return orders[(orders.index(self) + 1) % len(orders)]


_LARGEST: Final[dict[FrameOrder, Callable[[Frame], tuple[float, int]]]] = {
    FrameOrder.LATENCY: lambda frame: (1.0 if frame.latency is None else -frame.latency, frame.number),
    FrameOrder.SIZE: lambda frame: (-float(frame.size), frame.number),
}


class TrafficFeed:
    """Feeds ``rows``. Sorted by anything but time the list stands still, and what comes is counted."""

    def __init__(self, rows: RowList[Frame], book: TrafficBook) -> None:
        self._rows, self.book = rows, book
        self.filter, self.order = TrafficFilter(), FrameOrder.TIME
        self.servers: set[str] = set()
        self.total = self.unseen = self.cleared = 0
        self._seen = self._evicted = self._added_bytes = 0

    def show_book(self, book: TrafficBook) -> None:
        """Read another book from its beginning."""
        self.book, self.servers, self.cleared, self._seen = book, set(), 0, 0
        self._rows.set_items(())

    def passes(self, frame: Frame) -> bool:
        """Is this frame shown?"""
        kept = frame.number > self.cleared or self.book.is_pinned(frame)
        return kept and self.filter.passes(frame)

    def refresh(self) -> bool:
        """Take in what came; False: there is so much that it should be called again soon."""
        if not self.book.pair(SLICE):
            return False
        if not self._seen or self._stale():
            self.rebuild()
            return True
        fresh = self.book.since(self._seen)
        if fresh:
            self._take(fresh)
        return True

    def rebuild(self) -> None:
        """Read all that is kept: at the beginning, and when it has changed what passes, or in which order."""
        kept = self.book.since(0)
        self._note(kept)
        self.total, self.unseen, self._added_bytes = len(kept), 0, 0
        self._evicted = self._evictions()
        shown = [frame for frame in kept if self.passes(frame)]
        if self.order is not FrameOrder.TIME:
            shown.sort(key=_LARGEST[self.order])
        self._rows.set_items(shown, keep=_NUMBER)

    def clear(self) -> None:
        """Begin with an empty view; the book keeps what it has."""
        self.cleared = self._seen
        self.rebuild()

    def place_of(self, frame: Frame) -> int | None:
        """The row of a frame, if it is shown."""
        if self.order is FrameOrder.TIME:
            place = self._place(frame)
            return place if self._has(place, frame) else None
        return next((place for place, each in enumerate(self._rows.items) if each.number == frame.number), None)

    def _take(self, fresh: list[Frame]) -> None:
        self._note(fresh)
        self.total += len(fresh)
        shown = [frame for frame in fresh if self.passes(frame)]
        if not self._rows.following:
            self.unseen += len(shown)
        if self.order is FrameOrder.TIME:
            self._added_bytes += sum(len(frame.data) for frame in shown)
            self._amend(fresh)
            self._rows.append(shown)

    def _amend(self, fresh: list[Frame]) -> None:
        """An answer changes of what kind its request is: it may pass now, or pass no longer."""
        if not self.filter.tests:
            return
        answered = {frame.partner for frame in fresh if frame.partner is not None and frame.partner < fresh[0].number}
        requests = [frame for number in answered if (frame := self.book.frame(number))]
        changed = [each for each in requests if self._has(self._place(each), each) != self.passes(each)]
        if changed:
            self._rows.set_items(_toggled(self._rows.items, changed))

    def _place(self, frame: Frame) -> int:
        return bisect_left(self._rows.items, frame.number, key=_NUMBER)

    def _has(self, place: int, frame: Frame) -> bool:
        return place < len(self._rows.items) and self._rows.items[place].number == frame.number

    def _note(self, frames: list[Frame]) -> None:
        if frames:
            self._seen = frames[-1].number
            self.servers |= {frame.server for frame in frames}

    def _stale(self) -> bool:
        """Does the list hold much that the book let go of?"""
        if self.order is not FrameOrder.TIME:
            return False
        gone = self._evictions() - self._evicted
        lost_track = self.book.frame(self._seen) is None
        many = gone > max(STALE_FRAMES, len(self._rows.items) // 4)
        return lost_track or many or bool(gone and self._added_bytes > STALE_BYTES)

    def _evictions(self) -> int:
        return sum(map(self.book.evicted, self.servers))


def _toggled(items: Iterable[Frame], changed: Iterable[Frame]) -> list[Frame]:
    """The items in order, with those of ``changed`` that were missing and without those that were there."""
    found = {frame.number: frame for frame in items}
    for frame in changed:
        if found.pop(frame.number, None) is None:
            found[frame.number] = frame
    return sorted(found.values(), key=_NUMBER)
