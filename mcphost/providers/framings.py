"""Where the documents of an answer begin and end: as server-sent events, or one on each line.

Knows both framings and a size limit. Refuses to know what a document holds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from mcphost.protocol.event_stream import EventParser
from mcphost.protocol.framing import LineFramer, Overlong


class Framing(Protocol):
    """Fed chunks of any size, gives the documents they complete; one over the limit comes out as `Overlong`."""

    def feed(self, chunk: bytes) -> Sequence[bytes | Overlong]:
        """Take a chunk; return what it completed, in order."""

    def rest(self) -> Sequence[bytes | Overlong]:
        """No chunk follows: what is complete although nothing says so."""


class Events:
    """Server-sent events. One that no blank line ends is none."""

    def __init__(self, limit: int) -> None:
        self._parser = EventParser(limit)

    def feed(self, chunk: bytes) -> Sequence[bytes | Overlong]:
        """See `Framing.feed`."""
        return [event.data for event in self._parser.feed(chunk)]

    def rest(self) -> Sequence[bytes | Overlong]:
        """See `Framing.rest`."""
        return ()


class Lines:
    """A document on each line; blank lines are none. The last may lack its newline, but not a part of itself."""

    def __init__(self, limit: int) -> None:
        self._framer = LineFramer(limit)

    def feed(self, chunk: bytes) -> Sequence[bytes | Overlong]:
        """See `Framing.feed`."""
        return [line for line in self._framer.feed(chunk) if isinstance(line, Overlong) or line.strip()]

    def rest(self) -> Sequence[bytes | Overlong]:
        """See `Framing.rest`."""
        return [line for line in self.feed(b"\n") if isinstance(line, Overlong) or _is_whole(line)]


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
