"""Parses server-sent events: bytes in, complete events out, within a size limit.

httpx-sse reads the streams of models only: servers' streams are resumed, which needs ids and retry delays apart from
events, and this takes half the time.

Specification: the WHATWG event stream format; basic/transports names the events.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mcphost.protocol.wire.framing import QUOTED, EventLineFramer, Overlong

COMMENT: Final = ord(":")
"""A line that begins with it means nothing; servers send such lines to keep a connection open."""

FIELD_SLACK: Final = 16
"""Bytes of a line beyond its data: field name, colon and space."""

RETRY_DIGITS: Final = 15
"""Digits of a valid ``retry``."""


class ServerSentEvent(NamedTuple):
    """One event with data. ``id`` is the one sent with it, if any."""

    data: bytes | Overlong
    name: str = "message"
    id: str | None = None


class EventParser:
    r"""Takes chunks of any size, and returns the events they complete. Lines end in ``\n``, ``\r\n`` or ``\r``.

    An event with more than ``limit`` bytes of data is returned at once as `Overlong`, and its rest skipped: the buffer
    never exceeds the limit by more than one chunk. An event without data is not returned, but its id counts.
    """

    def __init__(self, limit: int) -> None:
        self.last_id: str | None = None
        """The id of the latest complete event; empty if the server reset it."""
        self.retry: int | None = None
        """The reconnection delay in milliseconds, as last sent."""
        self._limit = limit
        self._lines = EventLineFramer(limit + FIELD_SLACK)
        self._data: bytearray | bytes | None = None
        self._name = ""
        self._id: str | None = None
        self._given_up = False

    @property
    def unfinished(self) -> bool:
        """True if there is data whose event has not ended."""
        return bool(self._data) or self._lines.starts_with(b"data")

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take a chunk; return the events it completed, in order."""
        events: list[ServerSentEvent] = []
        for line in self._lines.feed(chunk):
            if not line:
                self._close(events)
            elif isinstance(line, Overlong):
                self._skip(line, events)
            elif line[0] != COMMENT:
                self._field(line, events)
        return events

    def _skip(self, line: Overlong, events: list[ServerSentEvent]) -> None:
        """End the event of an overlong data line; any other line is dropped."""
        if line.start.startswith(b"data"):
            self._give_up(line.start[5:].removeprefix(b" "), line.size, events)

    def _field(self, line: bytes, events: list[ServerSentEvent]) -> None:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._add(value, events)
        elif name == b"event":
            self._name = value[:QUOTED].decode("utf-8", "replace")
        elif name == b"id":
            self._id = self._id if b"\0" in value else value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= RETRY_DIGITS:
            self.retry = int(value)

    def _add(self, value: bytes, events: list[ServerSentEvent]) -> None:
        if self._given_up:
            return
        if self._data is None:
            self._data = value
        else:
            self._data = self._data if isinstance(self._data, bytearray) else bytearray(self._data)
            self._data += b"\n" + value
        if len(self._data) > self._limit:
            self._give_up(bytes(self._data[:QUOTED]), len(self._data), events)

    def _give_up(self, start: bytes, size: int, events: list[ServerSentEvent]) -> None:
        if not self._given_up:
            start = bytes((self._data or b"")[:QUOTED]) or start
            events.append(
                ServerSentEvent(Overlong(start, size + len(self._data or b"")), self._name or "message", self._id)
            )
        self._data = None
        self._given_up = True

    def _close(self, events: list[ServerSentEvent]) -> None:
        if self._id is not None:
            self.last_id = self._id
        if self._data:
            events.append(ServerSentEvent(bytes(self._data), self._name or "message", self._id))
        self._data, self._name, self._id, self._given_up = None, "", None, False
