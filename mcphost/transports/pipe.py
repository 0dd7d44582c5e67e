"""One ordered channel in both directions with a table of pending requests: the shared part of stdio and old SSE.

A subclass writes the bytes, and feeds what it reads to `Pipe.received`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from mcphost.errors import ConnectionLost, MessageTooLarge, TransportError
from mcphost.protocol.display import size_text
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.wire.framing import Overlong
from mcphost.protocol.wire.jsonrpc import (
    Malformed,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    answered_by,
    decode,
    decode_in_steps,
    encode,
)
from mcphost.protocol.wire.strict_json import IN_STEPS
from mcphost.transports.base import Inbound, MessageObserver, TransportLimits
from mcphost.transports.response_picker import why_invalid


class Pipe(ABC):
    """The pending table and the reading side of a `Transport` whose responses come back on one shared channel."""

    own_stream = False
    handshake_only = False

    def __init__(self, limits: TransportLimits, observer: MessageObserver | None = None) -> None:
        self.limits = limits
        self.observer = observer
        """Called with what is received; the subclass calls it with what is sent."""
        self._bounds = _bounds(limits, batch_items=0)
        self._pending: dict[RequestId, asyncio.Future[Response]] = {}
        self._inbound: Inbound | None = None
        self._lost: TransportError | None = None

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        # Looked up once, not for each message: before Python 3.12 each look-up is a system call (getpid).
        return asyncio.get_running_loop()

    @property
    def pending(self) -> int:
        """The number of requests that wait for a response."""
        return len(self._pending)

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        self._check_open()
        answer: asyncio.Future[Response] = self.loop.create_future()
        self._pending[request.id] = answer
        try:
            await self.write_request(encode(request), answer)
            return await answer
        finally:
            del self._pending[request.id]
            if answer.done() and not answer.cancelled():
                answer.exception()  # seen: a failed write may have raised first

    def agreed(self, revision: Revision) -> None:
        self._bounds = _bounds(self.limits, batch_items=self.limits.batch_items if revision.batches else 0)

    async def send(self, message: Notification | Response) -> None:
        self._check_open()
        await self.write(encode(message))

    async def listen(self) -> None:  # noqa: B027 - complete as it is
        """Return at once: everything arrives on the one channel."""

    async def write_request(self, line: bytes, answer: asyncio.Future[Response]) -> None:
        """Write a request; return once it is written or answered. Raises as `write` does."""
        await self.write(line)

    @abstractmethod
    async def write(self, line: bytes) -> None:
        """Write one whole message. Raises ConnectionLost."""

    def received(self, line: bytes | Overlong, *, cut_off: bool = False) -> Generator[None, None, None] | None:
        """Decode one message and dispatch it. After `fail` this does nothing.

        A large message is decoded in steps, which are returned: run them all before the next call. ``cut_off``: the
        channel ended within this line, so that a broken response in it fails no request; `fail` does.
        """
        if self._lost is not None:
            return None
        if isinstance(line, Overlong):
            self._overlong(line)
            return None
        if not line or line.isspace():
            return None
        if self.observer is not None:
            self.observer.received(line)
        if len(line) >= IN_STEPS:
            return self._read_in_steps(line, cut_off)
        self._dispatch_all(decode(line, **self._bounds), cut_off)
        return None

    def _read_in_steps(self, line: bytes, cut_off: bool) -> Generator[None, None, None]:
        messages = yield from decode_in_steps(line, **self._bounds)
        if self._lost is None:
            self._dispatch_all(messages, cut_off)

    def fail(self, reason: TransportError) -> None:
        """End the channel: pending requests raise ``reason`` now, later calls when they are made."""
        if self._lost is not None:
            return
        self._lost = reason
        for answer in tuple(self._pending.values()):
            if not answer.done():
                answer.set_exception(reason)

    def _check_open(self) -> None:
        if self._lost is not None:
            raise self._lost
        if self._inbound is None:
            raise ConnectionLost("the connection is not open")

    def _dispatch_all(self, messages: Sequence[Message | Malformed], cut_off: bool) -> None:
        assert self._inbound is not None
        for message in messages:
            if isinstance(message, Response):
                self._answer(message)
            elif isinstance(message, Malformed):
                self._refuse(replace(message, answers=None) if cut_off else message)
            else:
                self._inbound.message(message)

    def _answer(self, response: Response) -> None:
        waiting = self._pending.get(response.id) if response.id is not None else None
        if waiting is None or waiting.done():
            assert self._inbound is not None
            self._inbound.unmatched(response)
        else:
            waiting.set_result(response)

    def _refuse(self, problem: Malformed) -> None:
        assert self._inbound is not None
        waiting = self._pending.get(problem.answers) if problem.answers is not None else None
        if waiting is not None and not waiting.done():
            waiting.set_exception(why_invalid(problem))
        self._inbound.malformed(problem)

    def _overlong(self, line: Overlong) -> None:
        # Its start may not tell whose response it is: then every pending request fails.
        limit = self.limits.message_bytes
        reason = f"a message over the limit of {size_text(limit)}"
        if self.observer is not None:
            self.observer.noted("malformed", f"{reason}: {line.start.decode('utf-8', 'replace')}…")
        problem = Malformed(reason, line.start, answers=answered_by(line.start), limit=limit)
        if problem.answers is None:
            for waiting in self._pending.values():
                if not waiting.done():
                    waiting.set_exception(MessageTooLarge(f"the server sent {reason}, perhaps this answer", limit))
        self._refuse(problem)


def _bounds(limits: TransportLimits, batch_items: int) -> dict[str, int]:
    return {"batch_items": batch_items, "max_items": limits.message_items, "max_depth": limits.json_depth}
