"""One stream of messages, over as many connections as it takes: its cursor, its pace, and what it already gave.

Knows events, ids and waiting times. Refuses to know how a connection is made.

Specification: basic/transports, resumability and redelivery.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterable, Callable
from typing import Final

from mcphost.protocol.wire.event_stream import EventParser, ServerSentEvent
from mcphost.protocol.wire.framing import Overlong
from mcphost.protocol.wire.jsonrpc import Malformed, Message
from mcphost.transports.http.responses import MessageReader
from mcphost.transports.time_slices import Pace

FIRST_WAIT: Final = 1.0
"""Seconds before coming back where the server named no time; doubled each time in vain."""

SHORTEST: Final = 0.5
LONGEST: Final = 60.0
"""Seconds between which every wait lies, whatever the server said: less is a storm, more is for ever."""

IN_VAIN: Final = 10
"""Connections in a row that may bring nothing. Where the server names the pace and moves the cursor, none counts."""

LIVELY: Final = 10.0
"""Seconds after which a connection that brought nothing was still a good one."""

REMEMBERED: Final = 1000
"""Event ids kept to know a replay by; a server replays what it sent last."""

LONGEST_ID: Final = 1024
"""Bytes of an id that may travel in a header."""

Take = Callable[[Message | Malformed], None]


class ResumableStream:
    """Gives the messages of one stream to ``take``, each event once."""

    def __init__(self, incoming: MessageReader, take: Take) -> None:
        self._incoming = incoming
        self._take = take
        self._retry: int | None = None
        self._given: deque[str] = deque(maxlen=REMEMBERED)
        self._given_before: frozenset[str] = frozenset()
        self._tries = self._in_vain = 0
        self._brought_something = False
        self.overlong = False
        """Came there an event over the limit that may have been any answer?"""
        self.last_id = ""
        """Where to go on; empty where the server named no place."""

    async def read(self, pieces: AsyncIterable[bytes], enough: Callable[[], bool]) -> None:
        """Take what one connection brings, until it ends or there is ``enough``."""
        self._tries += 1
        parser, pace = EventParser(self._incoming.limits.message_bytes), Pace()
        came_from, began = self.last_id, time.monotonic()
        self._given_before = frozenset(self._given)
        self._brought_something = False
        try:
            async for piece in pieces:
                for event in parser.feed(piece):
                    await self._give(event)
                    await pace.keep()
                self._move(parser)
                if enough():
                    return
        finally:
            lively = self._brought_something or time.monotonic() - began > LIVELY
            self._count(lively, moved=self.last_id != came_from)

    @property
    def exhausted(self) -> bool:
        """Did too many connections bring nothing?"""
        return self._in_vain > IN_VAIN

    @property
    def told(self) -> str:
        """The next connection's number, and how near the end of patience is; empty for the first."""
        if not self._tries:
            return ""
        return f"connection {self._tries + 1} of this stream; {self._in_vain} in a row brought nothing, {IN_VAIN} may"

    def failed(self) -> None:
        """A connection could not be made at all."""
        self._tries += 1
        self._in_vain += 1

    def wait(self) -> float:
        """Seconds to wait from the end of one connection to the next."""
        growth = 2.0 ** max(self._in_vain - 1, 0)
        if self._retry is None:
            return min(FIRST_WAIT * growth, LONGEST)
        if self._ordinary:
            return min(self._retry / 1000, LONGEST)
        return min(SHORTEST * growth, LONGEST)

    @property
    def _ordinary(self) -> bool:
        return self._retry is not None and self._retry >= SHORTEST * 1000

    def _count(self, lively: bool, *, moved: bool) -> None:
        if lively:
            self._in_vain = 0
        elif not (moved and self._ordinary):
            self._in_vain += 1

    def _move(self, parser: EventParser) -> None:
        if parser.retry is not None:
            self._retry = parser.retry
        if parser.last_id is not None:
            self.last_id = parser.last_id if _fits_header(parser.last_id) else ""

    async def _give(self, event: ServerSentEvent) -> None:
        if event.id:
            if event.id in self._given_before:
                return
            if len(event.id) <= LONGEST_ID:
                self._given.append(event.id)
        if event.name == "message":
            self._brought_something = True
            await self._messages(event.data)

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
