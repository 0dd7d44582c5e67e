"""Everything that passed over every wire, as bounded memory: a budget for each server, and one for all.

What passes is only put aside, in a few microseconds; it is read when somebody looks. What is told of a frame's text
here has its secrets masked, `Frame.data` has not.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count, takewhile
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Final

from mcphost.config.files import read_regular
from mcphost.errors import NotDone
from mcphost.host.traffic.frames import Frame, FramePairing, is_answer, pretty
from mcphost.host.traffic.redaction import Mask, redacted

current_call: Final[ContextVar[int | None]] = ContextVar("current_call", default=None)
"""The host's call that runs in this task: what is sent in it belongs to that call."""

START: Final = 64 << 10
"""Bytes kept of a frame that is too large to be kept whole."""

WINDOW: Final = 500
"""Frames that are paired in one go, in some milliseconds."""

PINS: Final = 500
"""Frames that may be pinned at once."""

IMPORT_BYTES: Final = 256 << 20
"""Bytes of a file of exported traffic that is read."""


@dataclass(frozen=True, slots=True)
class TrafficBudget:
    """What is kept: so many frames, and so many bytes of them."""

    frames: int = 20_000
    bytes: int = 16_000_000


EVERYTHING: Final = TrafficBudget(200_000, 256 << 20)
"""What is kept of all servers together; whoever has most gives way first."""


class _Share:
    """What is kept of one server."""

    __slots__ = ("budget", "bytes", "connections", "evicted", "frames", "longest", "server")

    def __init__(self, server: str, budget: TrafficBudget) -> None:
        self.server = server
        self.frames: deque[Frame] = deque()
        self.bytes, self.evicted, self.connections = 0, 0, 0
        self.bound(budget)

    def bound(self, budget: TrafficBudget) -> None:
        self.budget = budget
        # A frame that filled the whole share would leave nothing of what led to it.
        self.longest = max(budget.bytes // 4, 1)

    def since(self, number: int) -> Iterator[Frame]:
        return takewhile(lambda frame: frame.number > number, reversed(self.frames))

    def first_after(self, number: int) -> Frame | None:
        place = bisect_right(self.frames, number, key=attrgetter("number"))
        return self.frames[place] if place < len(self.frames) else None

    def between(self, number: int, last: int) -> Iterator[Frame]:
        """The frames after ``number``, up to ``last``."""
        first, end = (bisect_right(self.frames, bound, key=attrgetter("number")) for bound in (number, last))
        return (self.frames[place] for place in range(first, end))

    def find(self, number: int) -> Frame | None:
        found = self.first_after(number - 1)
        return found if found is not None and found.number == number else None


class ServerTap:
    """A `mcphost.transports.tap.Tap` that puts what one connection tells into the book."""

    __slots__ = ("_book", "_connection", "_share")

    def __init__(self, book: TrafficBook, share: _Share) -> None:
        share.connections += 1
        self._book, self._share, self._connection = book, share, share.connections

    def sent(self, data: bytes) -> None:
        self._book.take(self._share, self._connection, True, "", data, current_call.get())

    def received(self, data: bytes) -> None:
        self._book.take(self._share, self._connection, False, "", data, None)

    def noted(self, kind: str, text: str) -> None:
        sent = kind == "http" and not text.startswith("HTTP ")
        call = current_call.get() if kind == "http" else None
        self._book.take(self._share, self._connection, sent, kind, text.encode("utf-8", "replace"), call)


class TrafficBook:
    """The traffic of all servers, in one order.

    ``mask`` takes secrets out of a text; ``nudge`` is called when frames came after the last ones were read.
    """

    def __init__(
        self,
        mask: Mask = lambda text: text,
        nudge: Callable[[], None] = lambda: None,
        *,
        total: TrafficBudget = EVERYTHING,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.nudge = nudge
        self.sink: Callable[[Frame], None] | None = None
        """Given every frame as it comes, for a file."""
        self.read_only = False
        """Was it read from a file? Then there is no server to send anything to."""
        self._mask, self._clock, self._monotonic = mask, clock, monotonic
        self._total = total
        self._shares: dict[str, _Share] = {}
        self._pinned: dict[int, Frame] = {}
        self._pairing = FramePairing()
        self._numbers = count(1)
        self._frames = self._bytes = self._paired = 0
        self._nudged = False

    # What comes in.

    def tap(self, server: str) -> ServerTap:
        """The tap for a new connection to this server."""
        return ServerTap(self, self._share(server))

    def set_budget(self, server: str, budget: TrafficBudget) -> None:
        """Bound what is kept of this server from now on."""
        self._share(server).bound(budget)

    def take(
        self, share: _Share, connection: int, sent: bool, note: str, data: bytes, call: int | None
    ) -> None:  # for `ServerTap`; by position, since it is called for each message
        now, at = self._clock(), self._monotonic()
        self._keep(
            share, Frame(next(self._numbers), now, at, share.server, connection, sent, note, data, len(data), call)
        )
        if not self._nudged:
            self._nudged = True
            self.nudge()

    # What there is.

    def pair(self, seconds: float = inf) -> bool:
        """Find out what came since the last time and what belongs together; True once that is done.

        The other methods do so by themselves. Where many frames may wait, call it with few ``seconds``, again and
        again, so that the screen stays alive.
        """
        end = time.perf_counter() + seconds
        while window := self._window():
            for frame in window:
                self._pair_one(frame)
            self._paired = window[-1].number
            if time.perf_counter() > end:
                return False
        return True

    def since(self, number: int) -> list[Frame]:
        """The frames after this number, oldest first, as far as they are still kept; paired with one another."""
        self.pair()
        self._nudged = False
        found = [frame for share in self._shares.values() for frame in share.since(number)]
        found += (frame for frame in self._pinned.values() if frame.number > number)
        found.sort(key=attrgetter("number"))
        return found

    def frame(self, number: int) -> Frame | None:
        """The frame of this number, if it is still kept."""
        self.pair()
        return self._find(number)

    def partner(self, frame: Frame) -> Frame | None:
        """The answer to a request, the request of an answer, progress or cancel notice, if it is still kept."""
        self.pair()
        return None if frame.partner is None else self._find(frame.partner)

    def evicted(self, server: str) -> int:
        """How many frames of this server made way for newer ones."""
        return self._share(server).evicted

    def raw(self, frame: Frame) -> str:
        """The text as it stood on the wire, but for its secrets."""
        return redacted(frame.raw(), self._mask)

    def pretty(self, frame: Frame) -> str:
        """The same, JSON over several lines."""
        return pretty(self.raw(frame))

    # What somebody wants kept, or gone.

    def pin(self, frame: Frame) -> None:
        """Keep this frame whatever else comes. Raises NotDone when too many are."""
        if len(self._pinned) >= PINS and frame.number not in self._pinned:
            raise NotDone(f"{PINS} frames are pinned already; unpin some first")
        self.pair()
        if self._find(frame.number) is frame and frame.number not in self._pinned:
            self._pinned[frame.number] = frame
            self._drop(frame)

    def unpin(self, frame: Frame) -> None:
        """Keep it no longer than others of its age."""
        if self._pinned.pop(frame.number, None) is not None:
            share = self._share(frame.server)
            share.frames.insert(bisect_left(share.frames, frame.number, key=attrgetter("number")), frame)
            self._count(share, 1, len(frame.data))
            self._make_room(share)

    def is_pinned(self, frame: Frame) -> bool:
        return frame.number in self._pinned

    def clear(self) -> None:
        """Forget every frame that is not pinned."""
        self.pair()
        for share in self._shares.values():
            share.frames.clear()
            share.bytes = 0
        self._frames = self._bytes = 0

    # Files.

    def export(self, frames: Iterable[Frame]) -> bytes:
        """These frames as lines of JSON, without secrets. See `mcphost.host.traffic.file`."""
        from mcphost.host.traffic.file import lines_of  # late: few runs write traffic to a file

        return b"".join(lines_of(frames, self._mask))

    # Inside.

    def _share(self, server: str) -> _Share:
        share = self._shares.get(server)
        if share is None:
            share = self._shares[server] = _Share(server, TrafficBudget())
        return share

    def _keep(self, share: _Share, frame: Frame) -> None:
        if frame.size > share.longest:
            frame.keep_start(min(START, share.longest))
        share.frames.append(frame)
        self._count(share, 1, len(frame.data))
        if self.sink is not None:
            self.sink(frame)
        self._make_room(share)

    def _count(self, share: _Share, frames: int, size: int) -> None:
        share.bytes += size
        self._bytes += size
        self._frames += frames

    def _make_room(self, share: _Share) -> None:
        while len(share.frames) > share.budget.frames or share.bytes > share.budget.bytes:
            self._evict(share)
        while self._bytes > self._total.bytes:
            self._evict(max(self._shares.values(), key=attrgetter("bytes")))
        while self._frames > self._total.frames:
            self._evict(max(self._shares.values(), key=lambda each: len(each.frames)))

    def _evict(self, share: _Share) -> None:
        frame = share.frames.popleft()
        share.evicted += 1
        self._count(share, -1, -len(frame.data))

    def _drop(self, frame: Frame) -> None:
        share = self._share(frame.server)
        share.frames.remove(frame)
        self._count(share, -1, -len(frame.data))

    def _find(self, number: int) -> Frame | None:
        if number in self._pinned:
            return self._pinned[number]
        return next((found for share in self._shares.values() if (found := share.find(number))), None)

    def _window(self) -> list[Frame]:
        """The next frames to pair, in order; only so many, since a flood may have passed unseen."""
        fresh = [first for share in self._shares.values() if (first := share.first_after(self._paired))]
        if not fresh:
            return []
        last = min(frame.number for frame in fresh) + WINDOW
        found = [frame for share in self._shares.values() for frame in share.between(self._paired, last)]
        return sorted(found, key=attrgetter("number"))

    def _pair_one(self, frame: Frame) -> None:
        asked = self._pairing.add(frame)
        if asked is None:
            return
        frame.partner, frame.asked = asked.number, asked.method
        frame.call = asked.call if frame.call is None else frame.call
        if is_answer(frame):
            frame.latency = frame.at - asked.at
            request = self._find(asked.number)
            if request is not None and request.partner is None:
                request.partner, request.latency = frame.number, frame.latency


def read_traffic(path: Path) -> TrafficBook:
    """A read-only book of exported traffic. Waits for the disk: call it in a thread.

    Raises NotDone for a line that is no frame, ConfigError for what cannot be read, FileNotFoundError.
    """
    from mcphost.host.traffic.file import read_lines

    book = TrafficBook(total=TrafficBudget(1_000_000, IMPORT_BYTES))
    for told in read_lines(read_regular(path, IMPORT_BYTES), path.name):
        share = book._share(told.server)
        share.bound(TrafficBudget(1_000_000, IMPORT_BYTES))
        number = next(book._numbers)
        frame = Frame(
            number,
            told.time,
            told.time,
            told.server,
            told.connection,
            told.sent,
            told.note,
            told.data,
            told.size,
            told.call,
        )
        book._keep(share, frame)
    book.read_only = True
    return book
