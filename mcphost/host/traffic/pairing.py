"""Which response answers which request, in both directions, and which call a frame belongs to.

Knows ids, of one connection and one direction each. Refuses to keep frames: of a request it remembers a few words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mcphost.host.traffic.frames import Frame, FrameFacts, FrameKind
from mcphost.protocol.jsonrpc import RequestId

REMEMBERED: Final = 20_000
"""Requests that are remembered; the oldest are forgotten first, long after anybody waits for their answer."""


@dataclass(frozen=True, slots=True)
class PairedRequest:
    """A request that passed: ``at`` is seconds of the frames' monotonic clock."""

    number: int
    at: float
    method: str
    call: int | None


_Key = tuple[str, int, bool, type, RequestId]


class FramePairing:
    """Fed every frame in order, says what each belongs to."""

    def __init__(self) -> None:
        self._asked: dict[_Key, PairedRequest] = {}

    def add(self, frame: Frame) -> PairedRequest | None:
        """The request that this frame answers, or reports on; remembers it where it is a request itself."""
        facts = frame.facts
        found: PairedRequest | None = None
        for part in facts.parts or (facts,):
            if part.kind is FrameKind.REQUEST and part.id is not None:
                self._remember(frame, part, part.id)
            else:
                found = found or self._found(frame, part)
        return found

    def _remember(self, frame: Frame, part: FrameFacts, request_id: RequestId) -> None:
        if len(self._asked) >= REMEMBERED:
            del self._asked[next(iter(self._asked))]
        asked = PairedRequest(frame.number, frame.at, part.method, frame.call)
        self._asked[_key(frame, frame.sent, request_id)] = asked

    def _found(self, frame: Frame, part: FrameFacts) -> PairedRequest | None:
        if part.id is not None:
            return self._asked.get(_key(frame, not frame.sent, part.id))
        if part.about is None:
            return None
        # Progress comes from who answers, a cancel notice from who asked.
        asker = frame.sent if part.method == "notifications/cancelled" else not frame.sent
        return self._asked.get(_key(frame, asker, part.about))


def is_answer(frame: Frame) -> bool:
    """Does the frame end the waiting for a request?"""
    facts = frame.facts
    kinds = {part.kind for part in facts.parts} or {facts.kind}
    return bool(kinds & {FrameKind.RESPONSE, FrameKind.ERROR, FrameKind.MALFORMED}) and FrameKind.REQUEST not in kinds


def _key(frame: Frame, sent: bool, request_id: RequestId) -> _Key:
    return frame.server, frame.connection, sent, type(request_id), request_id
