"""An address on loopback that stands for another one: what comes is passed on unchanged, and copied to an observer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final, Protocol
from urllib.parse import urlsplit

from aiohttp import web

from mcphost.errors import McphostError
from mcphost.protocol.wire.event_stream import EventParser
from mcphost.transports.base import MessageObserver

BODY_BYTES: Final = 64 << 20
"""Bytes of a request's body, which is sent once it is whole: a message of the greatest size in plain ASCII."""

COPY_BYTES: Final = 4 << 20
"""Bytes of a response that are copied; the traffic book keeps no more of one message."""

CLOSE_SECONDS: Final = 1.0
"""For streams to end when the relay closes."""

HOP: Final = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
"""Headers of one connection, which are not passed on."""

OWN: Final = frozenset({"host", "origin", "content-length", "accept-encoding"})
"""Headers of a request that the relay sets itself. Answers come without compression, so that copies can be read."""

Headers = Sequence[tuple[str, str]]


class RelayedResponse(Protocol):
    status: int
    reason: str
    headers: Headers

    def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ConnectionLost."""


Exchange = Callable[[str, str, Headers, bytes], AbstractAsyncContextManager[RelayedResponse]]
"""Sends a request, with its method, path, headers and body. Raises ConnectionLost."""


class HttpRelay:
    """Relays for the programs of this machine. ``refused`` is called with each response that asks for a sign-in."""

    def __init__(self, exchange: Exchange, observer: MessageObserver, refused: Callable[[], None]) -> None:
        self._exchange, self._observer, self._refused = exchange, observer, refused
        self._hosts: frozenset[str] = frozenset()
        self._runner: web.AppRunner | None = None

    async def open(self, port: int = 0) -> int:
        """Listen on loopback; the port. Raises OSError."""
        application = web.Application(client_max_size=BODY_BYTES)
        application.router.add_route("*", "/{path:.*}", self._relay)
        self._runner = web.AppRunner(
            application, handler_cancellation=True, access_log=None, shutdown_timeout=CLOSE_SECONDS
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        bound: int = self._runner.addresses[0][1]
        self._hosts = frozenset(f"{host}:{bound}" for host in ("127.0.0.1", "localhost", "[::1]"))
        return bound

    async def aclose(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _relay(self, request: web.Request) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        if request.host not in self._hosts or (origin is not None and urlsplit(origin).netloc not in self._hosts):
            raise web.HTTPForbidden(text="This address serves programs on this machine, not web pages.")
        body = await request.read()
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in HOP | OWN]
        if body:
            self._observer.sent(body)
        try:
            async with self._exchange(request.method, request.raw_path, headers, body) as answer:
                return await self._answer(request, answer)
        except McphostError as error:
            raise web.HTTPBadGateway(text=f"mcphost tap: {error}") from None

    async def _answer(self, request: web.Request, answer: RelayedResponse) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, reason=answer.reason)
        for name, value in answer.headers:
            if name.lower() not in HOP:
                response.headers.add(name, value)
        if answer.status == 401:
            self._refused()
        await response.prepare(request)
        copy = _copier(response.headers, self._observer)
        try:
            async for piece in answer.pieces():
                await response.write(piece)
                copy.feed(piece)
        except McphostError:
            if request.transport is not None:
                request.transport.abort()  # so that the agent sees what the relay saw
            raise asyncio.CancelledError from None
        finally:
            copy.end()
        with suppress(ConnectionError):
            await response.write_eof()
        return response


class _Copier:
    """Copies no body."""

    def feed(self, piece: bytes) -> None:
        return

    def end(self) -> None:
        return


class _EventCopier(_Copier):
    """Copies the messages of an event stream."""

    def __init__(self, observer: MessageObserver) -> None:
        self._observer, self._parser = observer, EventParser(COPY_BYTES)

    def feed(self, piece: bytes) -> None:
        for event in self._parser.feed(piece):
            if isinstance(event.data, bytes):
                self._observer.received(event.data)
            else:
                self._observer.noted("malformed", f"an event of {event.data.size} bytes is not copied")


class _BodyCopier(_Copier):
    """Copies a body of JSON."""

    def __init__(self, observer: MessageObserver) -> None:
        self._observer, self._body = observer, bytearray()

    def feed(self, piece: bytes) -> None:
        self._body += piece[: COPY_BYTES - len(self._body)]

    def end(self) -> None:
        if self._body:
            self._observer.received(bytes(self._body))


def _copier(headers: Mapping[str, str], observer: MessageObserver) -> _Copier:
    media = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if media == "text/event-stream":
        return _EventCopier(observer)
    return _BodyCopier(observer) if media.endswith("json") else _Copier()
