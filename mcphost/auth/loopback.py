"""Listens on the loopback interface for the browser's redirect at the end of a sign-in.

Specification: OAuth 2.1 section 8.4.2, loopback interface redirection.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from mcphost.auth.flow.callback import read_redirect, why_turned_away
from mcphost.auth.flow.steps import ListenForCallback, PendingAuthorization
from mcphost.errors import SignInFailed

HOST: Final = "127.0.0.1"
HOST_V6: Final = "::1"
REQUEST_SECONDS: Final = 5.0
LONGEST_REQUEST: Final = 32_768
MOST_REPORTS: Final = 5
"""Reasons for rejected redirects that are reported; any program on this machine can send them."""

DONE: Final = "You are back from the sign-in. Close this page and go on in mcphost.\n"
WRONG: Final = "This is not the answer that mcphost waits for.\n"


def _page(status: str, text: str) -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(text)}\r\n"
        "Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n"
        f"X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{text}"
    ).encode("ascii")


DONE_PAGE: Final = _page("200 OK", DONE)
WRONG_PAGE: Final = _page("400 Bad Request", WRONG)

Parameters = Mapping[str, tuple[str, ...]]


class Loopback:
    """The listener of one sign-in. Always close it.

    ``turned_away`` is called with the reason why a redirect was rejected, once for each reason.
    """

    def __init__(self, turned_away: Callable[[str], None]) -> None:
        self._turned_away = turned_away
        self._reported: set[str] = set()
        self._server: asyncio.Server | None = None
        self._second: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._hosts: frozenset[str] = frozenset()
        self._path = ""
        self._pending: PendingAuthorization | None = None
        self._callback: asyncio.Future[Parameters] = asyncio.get_running_loop().create_future()

    async def open(self, step: ListenForCallback) -> str:
        """Listen, and return the redirect URI. Raises SignInFailed if the port is taken and no other is allowed."""
        self._server = await self._bound(step)
        port = self._server.sockets[0].getsockname()[1]
        self._path, self._hosts = step.path, frozenset({f"{HOST}:{port}", f"localhost:{port}"})
        if step.host != HOST:  # a browser may try the name's other address first
            with suppress(OSError):
                self._second = await self._serve(port, HOST_V6)
        return f"http://{step.host}:{port}{step.path}"

    async def callback(self, pending: PendingAuthorization) -> Parameters:
        """Wait for the redirect that answers ``pending`` and return its parameters; any other is rejected."""
        self._pending = pending
        return await self._callback

    async def aclose(self) -> None:
        """Stop listening and drop open connections."""
        servers = [server for server in (self._server, self._second) if server is not None]
        self._server = self._second = None
        for server in servers:
            server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for server in servers:
            await server.wait_closed()

    async def _bound(self, step: ListenForCallback) -> asyncio.Server:
        try:
            return await self._serve(step.port)
        except OSError as error:
            if not step.port or step.insist:
                raise SignInFailed(
                    f"the browser cannot come back to port {step.port} of this machine: "
                    f"{os.strerror(error.errno or 0).lower()}; free it, or set another oauth.redirect_port"
                ) from None
        return await self._serve(0)

    async def _serve(self, port: int, host: str = HOST) -> asyncio.Server:
        return await asyncio.start_server(self._receive, host, port, limit=LONGEST_REQUEST, backlog=64)

    def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._answer(reader, writer), name="answer a browser")
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parameters: Parameters | None = None
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(REQUEST_SECONDS):
                    parameters = self._taken(await _head(reader))
                    writer.write(WRONG_PAGE if parameters is None else DONE_PAGE)
                    await writer.drain()
        finally:
            writer.close()
            if parameters is not None and not self._callback.done():  # last: the waiter closes everything
                self._callback.set_result(parameters)

    def _taken(self, head: str) -> Parameters | None:
        """The parameters of the awaited redirect, which is accepted once."""
        first, *lines = head.split("\r\n")
        method, _, rest = first.partition(" ")
        path, _, query = rest.rpartition(" ")[0].partition("?")
        hosts = [line.partition(":")[2].strip().lower() for line in lines if line.lower().startswith("host:")]
        if method != "GET" or path != self._path or len(hosts) != 1 or hosts[0] not in self._hosts:
            return None
        return self._matching(query)

    def _matching(self, query: str) -> Parameters | None:
        try:
            parameters = read_redirect(f"?{query}")
        except SignInFailed:
            return None
        if self._pending is None:
            return None
        if not self._pending.is_answered_by(parameters):
            self._report(why_turned_away(self._pending, parameters))
            return None
        self._pending = None
        return parameters

    def _report(self, problem: str) -> None:
        if problem not in self._reported and len(self._reported) < MOST_REPORTS:
            self._reported.add(problem)
            self._turned_away(problem)


async def _head(reader: asyncio.StreamReader) -> str:
    """The head of a request; empty if it is longer than `LONGEST_REQUEST`."""
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError:
        return ""
