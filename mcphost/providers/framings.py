"""Where the documents of an answer begin and end: as server-sent events, or one on each line.

Knows both framings and a size limit. Refuses to know what a document holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Final, Protocol

import httpx
from httpx_sse import EventSource

from mcphost.protocol.framing import LineFramer, Overlong


class StreamFraming(Protocol):
    """Cuts chunks of any size into documents; raises Oversized for one with more bytes than the limit.

    Never holds more than the limit and one chunk. Whoever made the generator of chunks closes it.
    """

    def __call__(self, chunks: AsyncGenerator[bytes, None], limit: int) -> AsyncGenerator[str | bytes, None]:
        """The documents, in order."""


# The byte order mark that a stream may begin with is dropped, and what is no UTF-8 is replaced.
_AS_EVENTS: Final = {"Content-Type": "text/event-stream; charset=utf-8-sig"}


_BLANK_LINES: Final = re.compile(rb"[\r\n]{4,}")
"""An end of a line and at least one blank line. Of a run of those, httpx-sse makes an event each."""


class Oversized(Exception):
    """A document is larger than the limit."""


async def events(chunks: AsyncGenerator[bytes, None], limit: int) -> AsyncGenerator[str | bytes, None]:
    """The data of server-sent events; see `StreamFraming`. An event that no blank line ends is none."""
    lines = _WholeLines(chunks, limit)
    source = EventSource(httpx.Response(200, headers=_AS_EVENTS, stream=lines))
    async with aclosing(source.aiter_sse()) as found:
        async for event in found:
            lines.event_ended()
            if event.data:
                yield event.data


class _WholeLines(httpx.AsyncByteStream):
    """Feeds httpx-sse, which has no limit of its own: whole lines only, and no more than ``limit`` bytes an event."""

    def __init__(self, chunks: AsyncGenerator[bytes, None], limit: int) -> None:
        self._chunks, self._limit = chunks, limit
        self._size = 0

    def event_ended(self) -> None:
        """What follows belongs to the next event."""
        self._size = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        line = bytearray()  # one growing buffer: httpx-sse keeps the pieces of a line as a list of strings
        async for chunk in self._chunks:
            self._size += len(chunk)
            if self._size > self._limit:
                raise Oversized
            end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
            line += chunk[:end] or chunk
            if end:
                yield _BLANK_LINES.sub(b"\n\n", line)
                line = bytearray(chunk[end:])


async def lines(chunks: AsyncGenerator[bytes, None], limit: int) -> AsyncGenerator[str | bytes, None]:
    """A document on each line; see `StreamFraming`. Blank lines are none; the last line may lack its end."""
    framer = LineFramer(limit)
    async for chunk in chunks:
        for line in framer.feed(chunk):
            if document := _checked(line).strip():
                yield document
    for line in framer.feed(b"\n"):
        if _is_whole(document := _checked(line)):
            yield document


def _checked(line: bytes | Overlong) -> bytes:
    if isinstance(line, Overlong):
        raise Oversized
    return line


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
