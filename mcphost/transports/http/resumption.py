"""Reads one logical event stream over as many connections as it takes: cursor, delays and duplicate removal.

Specification: basic/transports, resumability and redelivery.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterable, Callable
from typing import Final

from mcphost.protocol.display import show_line
from mcphost.protocol.wire.event_stream import EventParser, ServerSentEvent
from mcphost.protocol.wire.framing import Overlong
from mcphost.protocol.wire.jsonrpc import Malformed, Message
from mcphost.time_slices import TimeSlice
from mcphost.transports.http.responses import MessageReader

FIRST_WAIT: Final = 1.0
"""Seconds before reconnecting if the server sent no ``retry``; doubled after each fruitless connection."""

SHORTEST: Final = 0.5
LONGEST: Final = 60.0
"""Seconds; the bounds of every delay, whatever the server sent."""

MOST_FRUITLESS: Final = 10
"""Fruitless connections in a row. Those that moved the cursor at the delay the server set do not count."""

LIVELY: Final = 10.0
"""Seconds after which even a connection without messages counts as fruitful."""

REMEMBERED: Final = 1000
"""Event ids kept to recognize a replay; a server replays what it sent last."""

LONGEST_ID: Final = 1024
"""Bytes of an id that is sent in a header."""

Take = Callable[[Message | Malformed], None]


class ResumableStream:
    """Passes the messages of one stream to ``take``, each event once."""

    def __init__(self, incoming: MessageReader, take: Take) -> None:
        self._incoming = incoming
        self._take = take
        self._retry: int | None = None
        self._seen: deque[str] = deque(maxlen=REMEMBERED)
        self._seen_before: frozenset[str] = frozenset()
        self._tries = self._fruitless = 0
        self._fruitful = False
        self.overlong = False
        """True after an event over the limit that may have been any response."""
        self.last_id = ""
        """The cursor for resuming; empty if the server set none."""
        self.ignored = ""
        """A clause about data that was not taken for a message; empty without any."""

    async def read(self, pieces: AsyncIterable[bytes], enough: Callable[[], bool]) -> None:
        """Read one connection until it ends, or until ``enough()``."""
        self._tries += 1
        parser, time_slice = EventParser(self._incoming.limits.message_bytes), TimeSlice()
        came_from, began = self.last_id, time.monotonic()
        # Only ids of earlier connections mark a replay: messages of one connection are all new, whatever their ids.
        self._seen_before = frozenset(self._seen)
        self._fruitful = False
        try:
            async for piece in pieces:
                for event in parser.feed(piece):
                    await self._take_event(event)
                    await time_slice.pause_if_over()
                self._move(parser)
                if enough():
                    return
        finally:
            if parser.unfinished:
                self.ignored = "its last event has no empty line after it"
            lively = self._fruitful or time.monotonic() - began > LIVELY
            self._count(lively, moved=self.last_id != came_from)

    @property
    def exhausted(self) -> bool:
        """True after too many fruitless connections."""
        return self._fruitless > MOST_FRUITLESS

    def describe(self) -> str:
        """The number of the next connection, and of the fruitless ones; empty for the first."""
        if not self._tries:
            return ""
        fruitless = f"{self._fruitless} in a row brought nothing, {MOST_FRUITLESS} may"
        return f"connection {self._tries + 1} of this stream; {fruitless}"

    def failed(self) -> None:
        """Count a connection that could not be made."""
        self._tries += 1
        self._fruitless += 1

    def wait(self) -> float:
        """Seconds to wait before the next connection."""
        # The server's delay is used as it is, unless it is too short: then it grows as without one.
        growth = 2.0 ** max(self._fruitless - 1, 0)
        if self._retry is None:
            return min(FIRST_WAIT * growth, LONGEST)
        if self._paced_by_server:
            return min(self._retry / 1000, LONGEST)
        return min(SHORTEST * growth, LONGEST)

    @property
    def _paced_by_server(self) -> bool:
        return self._retry is not None and self._retry >= SHORTEST * 1000

    def _count(self, lively: bool, *, moved: bool) -> None:
        if lively:
            self._fruitless = 0
        elif not (moved and self._paced_by_server):
            self._fruitless += 1

    def _move(self, parser: EventParser) -> None:
        if parser.retry is not None:
            self._retry = parser.retry
        if parser.last_id is not None:
            self.last_id = parser.last_id if _fits_header(parser.last_id) else ""

    async def _take_event(self, event: ServerSentEvent) -> None:
        if event.id:
            if event.id in self._seen_before:
                return
            if len(event.id) <= LONGEST_ID:
                self._seen.append(event.id)
        if event.name == "message":
            self._fruitful = True
            await self._messages(event.data)
        else:
            self.ignored = f"an event called {show_line(event.name, 40)!r} is not a message"

    async def _messages(self, data: bytes | Overlong) -> None:
        if isinstance(data, Overlong):
            problem = self._incoming.too_large(data)
            self.overlong = self.overlong or problem.answers is None
            self._take(problem)
            return
        for message in await self._incoming.messages(data):
            self._take(message)


def _fits_header(event_id: str) -> bool:
    return event_id.isprintable() and event_id == event_id.strip() and len(event_id.encode()) <= LONGEST_ID
