"""The calls of a run: all that have not ended, and the last of those that have; and which were sent to which server."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from itertools import count
from typing import Final

from mcphost.host.tool_calls.call import CallRequest, ToolCall
from mcphost.protocol.json_size import json_size

KEPT_CALLS: Final = 200
"""Ended calls that are kept to look at again."""

MOST_UNCOUNTED: Final = 4
"""Calls that end before room is made for what they left: where calls end together, their results are large together."""

KEPT_BYTES: Final = 64 << 20
"""About how much of them is kept: a few of the largest results there may be."""


class CallRegistry:
    """Numbers calls and finds them again."""

    def __init__(self) -> None:
        self._calls: dict[int, ToolCall] = {}
        self._sent: dict[int, str] = {}
        self._numbers = count(1)
        self._just_ended: list[ToolCall] = []
        self._kept: deque[tuple[int, int]] = deque()
        """Number and bytes of each that ended, oldest first."""
        self._kept_bytes = 0

    @property
    def calls(self) -> Mapping[int, ToolCall]:
        """The kept calls by number, oldest first."""
        self.make_room()
        return self._calls

    def add(self, request: CallRequest) -> ToolCall:
        call = ToolCall(next(self._numbers), request, time.monotonic)
        self._calls[call.number] = call
        return call

    def next_number(self) -> int:
        """The number for a call that is kept elsewhere."""
        return next(self._numbers)

    def find(self, number: int) -> ToolCall:
        """Return the call with this number. Raises KeyError if it is no longer kept."""
        return self._calls[number]

    def get(self, number: int) -> ToolCall | None:
        """Return the call with this number; None if it is not kept."""
        return self._calls.get(number)

    def running(self, server: str | None = None) -> list[ToolCall]:
        """The calls that have not ended, oldest first."""
        return [call for call in self.calls.values() if not call.state.ended and server in (None, call.request.server)]

    def newest_sent(self, server: str) -> int | None:
        """The number of the call that was sent to this server last and has not ended."""
        return next((number for number, name in reversed(self._sent.items()) if name == server), None)

    def sent(self, server: str) -> list[ToolCall]:
        """The calls that were sent to this server and have not ended, in the order they were sent."""
        return [self._calls[number] for number, name in self._sent.items() if name == server]

    def mark_sent(self, call: ToolCall) -> None:
        """Note that its server has the call now."""
        self._sent[call.number] = call.request.server

    def unmark_sent(self, call: ToolCall) -> bool:
        """Note that its server is no longer at work on the call; return whether it was."""
        return self._sent.pop(call.number, None) is not None

    def ended(self, call: ToolCall) -> None:
        """Note that the call ended. `make_room`, or reading `calls`, makes room for it."""
        self._just_ended.append(call)
        if len(self._just_ended) >= MOST_UNCOUNTED:
            self.make_room()

    def forget(self, call: ToolCall) -> None:
        """Forget an ended call."""
        self.make_room()
        kept = [(number, size) for number, size in self._kept if number != call.number]
        self._kept, self._kept_bytes = deque(kept), sum(size for _, size in kept)
        self._calls.pop(call.number, None)

    def make_room(self) -> None:
        """Forget the oldest ended calls beyond `KEPT_CALLS` or `KEPT_BYTES`; always keep the last one."""
        for call in self._just_ended:
            size = json_size([call.request.arguments, call.outcome and call.outcome.raw])
            self._kept.append((call.number, size))
            self._kept_bytes += size
        self._just_ended.clear()
        while len(self._kept) > 1 and (len(self._kept) > KEPT_CALLS or self._kept_bytes > KEPT_BYTES):
            number, size = self._kept.popleft()
            self._kept_bytes -= size
            del self._calls[number]
