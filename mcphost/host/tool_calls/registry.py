"""The calls of a run: all that have not ended, and the last of those that have; and which were sent to which server."""

from __future__ import annotations

import time
from collections import deque
from itertools import count
from typing import Final

from mcphost.host.tool_calls.call import CallRequest, ToolCall
from mcphost.protocol.json_size import json_size

KEPT_CALLS: Final = 200
"""Ended calls that are kept to look at again."""

KEPT_BYTES: Final = 64 << 20
"""About how much of them is kept: a few of the largest results there may be."""


class CallRegistry:
    """Numbers calls and finds them again."""

    def __init__(self) -> None:
        self.calls: dict[int, ToolCall] = {}
        """By number, oldest first."""
        self._sent: dict[int, str] = {}
        self._numbers = count(1)
        self._ended: deque[tuple[int, int]] = deque()
        self._kept_bytes = 0

    def add(self, request: CallRequest) -> ToolCall:
        """Return a new call for this request."""
        call = ToolCall(next(self._numbers), request, time.monotonic)
        self.calls[call.number] = call
        return call

    def running(self, server: str | None = None) -> list[ToolCall]:
        """The calls that have not ended, oldest first."""
        return [call for call in self.calls.values() if not call.state.ended and server in (None, call.request.server)]

    def newest_sent(self, server: str) -> int | None:
        """The number of the call that was sent to this server last and has not ended."""
        return next((number for number, name in reversed(self._sent.items()) if name == server), None)

    def sent(self, server: str) -> list[ToolCall]:
        """The calls that were sent to this server and have not ended, in the order they were sent."""
        return [self.calls[number] for number, name in self._sent.items() if name == server]

    def mark_sent(self, call: ToolCall) -> None:
        """Note that its server has the call now."""
        self._sent[call.number] = call.request.server

    def unmark_sent(self, call: ToolCall) -> bool:
        """Note that its server is no longer at work on the call; return whether it was."""
        return self._sent.pop(call.number, None) is not None

    def ended(self, call: ToolCall) -> None:
        """Forget the oldest of those that ended, to make room for what this one left; itself it is kept in any case."""
        size = json_size([call.request.arguments, call.outcome and call.outcome.raw])
        self._ended.append((call.number, size))
        self._kept_bytes += size
        while len(self._ended) > 1 and (len(self._ended) > KEPT_CALLS or self._kept_bytes > KEPT_BYTES):
            number, size = self._ended.popleft()
            self._kept_bytes -= size
            del self.calls[number]
