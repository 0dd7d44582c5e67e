"""HTTP+SSE of 2024-11-05: one event stream for all that the server sends, and POSTs to the endpoint that it names.

Specification: basic/transports of 2024-11-05, HTTP with SSE.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import httpx

from mcphost.errors import ConnectionClosed, ConnectionLost, HttpStatusError, McphostError, TransportError
from mcphost.protocol.lifecycle.revisions import V2024_11_05, Revision
from mcphost.protocol.wire.event_stream import EventParser, ServerSentEvent
from mcphost.protocol.wire.jsonrpc import Response
from mcphost.time_slices import TimeSlice, in_turns
from mcphost.transports.base import Inbound, MessageObserver, ProcessReport, TransportLimits
from mcphost.transports.http import responses
from mcphost.transports.http.endpoint import FAILURES, PhaseTimeouts, ServerEndpoint
from mcphost.transports.http.redirects import same_origin
from mcphost.transports.http.responses import MessageReader
from mcphost.transports.pipe import Pipe

ENDPOINT_SECONDS: Final = 10.0
"""Seconds that the server may take to send its ``endpoint`` event."""


class SseTransport(Pipe):
    """A `Transport` over the HTTP transport of 2024-11-05."""

    handshake_only = True

    def __init__(
        self,
        url: str,
        limits: TransportLimits,
        *,
        headers: Mapping[str, str] | None = None,
        auth: httpx.Auth | None = None,
        timeouts: PhaseTimeouts | None = None,
        observer: MessageObserver | None = None,
        endpoint_seconds: float = ENDPOINT_SECONDS,
    ) -> None:
        super().__init__(limits, observer)
        incoming = MessageReader(limits, observer)
        self._endpoint = ServerEndpoint(url, incoming, headers=headers, auth=auth, timeouts=timeouts, observer=observer)
        self._endpoint_seconds = endpoint_seconds
        self._address: asyncio.Future[str] | None = None
        self._posting: set[asyncio.Task[None]] = set()
        self._reader: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def open(self, inbound: Inbound) -> None:
        """Open the stream and wait for its ``endpoint`` event.

        Raises ConnectionLost, AuthorizationRequired, and HttpStatusError, also for a stream without that event.
        """
        self._inbound = inbound
        self._endpoint.open(inbound.authorization_changed)
        response = await self._first_answer()
        self._address = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read(response, inbound), name="read event stream")
        try:
            async with asyncio.timeout(self._endpoint_seconds):
                address = await asyncio.shield(self._address)
        except TimeoutError:
            raise _no_endpoint(f"in {self._endpoint_seconds:g} s") from None
        self._endpoint.url = self._resolved(response.url, address)

    def agreed(self, revision: Revision) -> None:
        super().agreed(revision)
        # Later revisions than this transport's own must be named in a header.
        self._endpoint.version = "" if revision is V2024_11_05 else revision.version

    async def write(self, line: bytes) -> None:
        """POST one message. Raises a TransportError if the server refuses it."""
        await self._endpoint.post(line, self._endpoint.tags(), seconds=self._endpoint.timeouts.headers)

    async def write_request(self, line: bytes, answer: asyncio.Future[Response]) -> None:
        # Some servers answer the POST only after the work is done: the caller bounds that time.
        posting = asyncio.create_task(self._endpoint.post(line, self._endpoint.tags(), seconds=None), name="post")
        self._posting.add(posting)
        posting.add_done_callback(self._posted)
        try:
            await asyncio.wait((posting, answer), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            posting.cancel()
            raise
        if not answer.done():
            posting.result()
        elif not posting.done():  # its response is not needed, but a finished POST leaves its connection usable
            asyncio.get_running_loop().call_later(self._endpoint.timeouts.headers, posting.cancel)

    def _posted(self, posting: asyncio.Task[None]) -> None:
        self._posting.discard(posting)
        if not posting.cancelled():
            posting.exception()  # retrieved: the response may have come before it

    async def aclose(self) -> None:
        """Close the stream, which ends the session."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._end(), name="close event stream")
        await asyncio.shield(self._closing)

    def report(self) -> ProcessReport:
        return ProcessReport()

    async def _first_answer(self) -> httpx.Response:
        try:
            async with asyncio.timeout(self._endpoint.timeouts.headers):
                return await self._endpoint.get_stream({})
        except TimeoutError:
            raise ConnectionLost(
                f"the server opened no event stream in {self._endpoint.timeouts.headers:g} s"
            ) from None

    def _resolved(self, base: httpx.URL, address: str) -> str:
        try:
            url = base.join(address)
        except (httpx.InvalidURL, ValueError):
            reason = "the server wants its messages sent to something that is not a URL"
            raise ConnectionLost(reason, lasting=True) from None
        if "\\" in address or not address.isprintable() or not same_origin(base, url):
            reason = "the server wants its messages sent to another origin than its own; nothing was sent"
            raise ConnectionLost(reason, lasting=True)
        return str(url)

    async def _read(self, response: httpx.Response, inbound: Inbound) -> None:
        reason = await self._read_all(response)
        self.fail(reason)
        assert self._address is not None
        if self._address.done():
            inbound.closed(reason)
        else:
            self._address.set_exception(reason)
            self._address.exception()  # retrieved: `open` may have stopped waiting

    async def _read_all(self, response: httpx.Response) -> TransportError:
        """Take events until the stream ends; return why it ended."""
        parser, time_slice = EventParser(self.limits.message_bytes), TimeSlice()
        try:
            async for piece in responses.chunks(response):
                for event in parser.feed(piece):
                    await self._take(event)
                    await time_slice.pause_if_over()
        except FAILURES as error:
            return self._endpoint.lost(error)
        except McphostError as error:
            return ConnectionLost(str(error))
        finally:
            await response.aclose()
        if self._address is not None and not self._address.done():
            return _no_endpoint("before it closed its event stream")
        return ConnectionLost("the server closed its event stream, which ends the session")

    async def _take(self, event: ServerSentEvent) -> None:
        if event.name == "message":
            if steps := self.received(event.data):
                await in_turns(steps)
        elif event.name == "endpoint" and self._address is not None and not self._address.done():
            self._address.set_result(event.data.decode("utf-8", "replace") if isinstance(event.data, bytes) else "")

    async def _end(self) -> None:
        self.fail(ConnectionClosed())
        for task in (*self._posting, *filter(None, [self._reader])):
            task.cancel()
        if self._reader is not None:
            await asyncio.wait([self._reader])
        await self._endpoint.aclose()


def _no_endpoint(when: str) -> HttpStatusError:
    # Not lasting: a server that is starting or stopping also opens streams without the event.
    error = HttpStatusError(200, responses.EVENTS, reason=f"it did not say where it takes messages {when}")
    error.lasting = False
    return error
