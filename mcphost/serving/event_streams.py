"""The event streams of an HTTP session: what waits for a connection, and what one may have missed.

Specification: basic/transports, Streamable HTTP, Resumability and Redelivery, of 2025-03-26 to 2025-11-25.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from typing import Final, NamedTuple

from mcphost.protocol.limits import MESSAGE_BYTES

KEPT_EVENTS: Final = 1_000
"""Events of a session that are kept; the oldest are dropped, since the client may never listen."""

KEPT_BYTES: Final = 2 * MESSAGE_BYTES
"""Bytes of those events: two of the largest messages."""

KEPT_STREAMS: Final = 32
"""Ended streams of a session that can still be resumed."""

_EVENT_ID: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})(?:\.[0-9]{1,9})?", re.ASCII)


class Event(NamedTuple):
    number: int
    """Unique among all streams of the session, and growing."""
    data: bytes
    answers: bool
    """True for the message that a stream ends with."""


class EventStore:
    """The streams of one session. Without ``replays``, an event is dropped once it was sent."""

    def __init__(self, *, replays: bool = True) -> None:
        self.replays = replays
        self._streams: dict[int, EventStream] = {}
        self._opened = self._added = self._bytes = self._events = 0

    def open(self) -> EventStream:
        ended = [stream for stream in self._streams.values() if stream.ended]
        for stream in ended[: max(0, len(ended) - KEPT_STREAMS + 1)]:
            self.forget(stream)
        self._opened += 1
        stream = EventStream(self, self._opened)
        self._streams[self._opened] = stream
        return stream

    def find(self, event_id: str) -> tuple[EventStream, int] | None:
        """The stream that an event belongs to, and the event's number; None if it is not kept."""
        match = _EVENT_ID.fullmatch(event_id)
        stream = self._streams.get(int(match[1])) if match else None
        return None if match is None or stream is None else (stream, int(match[2]))

    def forget(self, stream: EventStream) -> None:
        """Drop a stream, which nothing resumes any more."""
        if self._streams.pop(stream.number, None) is not None:
            while stream.events:
                self.drop(stream)

    def added(self, stream: EventStream, data: bytes, answers: bool) -> Event:
        """A new event of a stream. The oldest others are dropped if there is too much."""
        self._added += 1
        self._bytes += len(data)
        self._events += 1
        while (self._bytes > KEPT_BYTES or self._events > KEPT_EVENTS) and self._events > 1:
            with_events = (each for each in self._streams.values() if each.events)
            self.drop(min(with_events, key=lambda each: each.events[0].number))
        return Event(self._added, data, answers)

    def drop(self, stream: EventStream) -> None:
        """Drop the oldest event of a stream."""
        event = stream.events.popleft()
        self._bytes -= len(event.data)
        self._events -= 1
        if event.number > stream.sent:
            stream.has_gap = True


class EventStream:
    """Messages for one HTTP response, and for those that resume it."""

    def __init__(self, store: EventStore, number: int) -> None:
        self.number = number
        self.events: deque[Event] = deque()
        self.sent = 0
        """The number of the last event that was sent."""
        self.ended = False
        self.has_gap = False
        """True once an event was dropped before it was sent."""
        self._store = store
        self._connections = 0
        self._changed = asyncio.Event()

    def put(self, data: bytes, *, answers: bool) -> None:
        """Add a message. ``answers``: it is the last one."""
        if not self.ended:
            self.events.append(self._store.added(self, data, answers))
            self.ended = answers
            self._changed.set()

    def end(self) -> None:
        self.ended = True
        self._changed.set()

    def connect(self) -> int:
        """Begin to send on a connection, which ends the one before; its number."""
        self._connections += 1
        self._changed.set()
        return self._connections

    def is_current(self, connection: int) -> bool:
        return connection == self._connections

    async def next(self, after: int, connection: int) -> Event | None:
        """The first event after this one; None at the end of the stream, or of this connection."""
        while self.is_current(connection):
            if self.has_gap and not self._store.replays:
                return None
            event = None
            for each in reversed(self.events):  # the next one is among the last
                if each.number <= after:
                    break
                event = each
            if event is not None or self.ended:
                return event
            self._changed.clear()
            await self._changed.wait()
        return None

    def was_sent(self, event: Event) -> None:
        self.sent = max(self.sent, event.number)
        if not self._store.replays:
            while self.events and self.events[0].number <= self.sent:
                self._store.drop(self)

    def event_id(self, event: Event) -> str:
        return f"{self.number}.{event.number}"

    def first_id(self, after: int, connection: int) -> str:
        """An id for the event without a message that a connection begins with."""
        return f"{self.number}.{after}.{connection}"
