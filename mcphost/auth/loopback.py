"""Waits on this machine for the browser to come back, once.

Knows one path, one pending sign-in, and a plain page to say thanks with. Answers nothing else, and nothing twice.

Specification: OAuth 2.1 section 8.4.2, loopback interface redirection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from mcphost.auth.callback import read_redirect
from mcphost.auth.wire import Listen, Pending
from mcphost.errors import SignInFailed

HOST: Final = "127.0.0.1"
REQUEST_SECONDS: Final = 5.0
LONGEST_REQUEST: Final = 32_768

DONE: Final = "You are back from the sign-in. Close this page and go on in mcphost."
WRONG: Final = "This is not the answer that mcphost waits for."

_PAGE: Final = (
    "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n"
    "Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{text}"
)

Parameters = Mapping[str, tuple[str, ...]]


class Loopback:
    """One listener for one sign-in; close it in any case."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._hosts: frozenset[str] = frozenset()
        self._path = ""
        self._pending: Pending | None = None
        self._callback: asyncio.Future[Parameters] | None = None

    async def open(self, wanted: Listen) -> str:
        """Listen, and return the redirect URI. Raises SignInFailed where the port is taken and no other will do."""
        self._server = await self._bound(wanted)
        port = self._server.sockets[0].getsockname()[1]
        self._path, self._hosts = wanted.path, frozenset({f"{HOST}:{port}", f"localhost:{port}"})
        return f"http://{HOST}:{port}{wanted.path}"

    async def callback(self, pending: Pending) -> Parameters:
        """The parameters of the one redirect that answers ``pending``; every other is turned away."""
        self._callback = asyncio.get_running_loop().create_future()
        self._pending = pending
        return await self._callback

    async def aclose(self) -> None:
        """Stop listening."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            await server.wait_closed()

    async def _bound(self, wanted: Listen) -> asyncio.Server:
        try:
            return await self._serve(wanted.port)
        except OSError as error:
            if not wanted.port or wanted.insist:
                raise SignInFailed(
                    f"the browser cannot come back to port {wanted.port} of this machine: {error.strerror}; "
                    "free it, or set another oauth.redirect_port"
                ) from None
        return await self._serve(0)

    async def _serve(self, port: int) -> asyncio.Server:
        return await asyncio.start_server(self._answer, HOST, port, limit=LONGEST_REQUEST, backlog=8)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(REQUEST_SECONDS):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                status, text = ("200 OK", DONE) if self._take(head) else ("400 Bad Request", WRONG)
                writer.write(_PAGE.format(status=status, length=len(text.encode()), text=text).encode())
                await writer.drain()
        writer.close()

    def _take(self, head: str) -> bool:
        """Is this the redirect that is waited for? It is handed on once."""
        first, *lines = head.split("\r\n")
        method, _, rest = first.partition(" ")
        path, _, query = rest.rpartition(" ")[0].partition("?")
        hosts = [line.partition(":")[2].strip().lower() for line in lines if line.lower().startswith("host:")]
        if method != "GET" or path != self._path or len(hosts) != 1 or hosts[0] not in self._hosts:
            return False
        return self._matches(query)

    def _matches(self, query: str) -> bool:
        waiting, pending = self._callback, self._pending
        if waiting is None or waiting.done() or pending is None:
            return False
        try:
            parameters = read_redirect(f"?{query}")
        except SignInFailed:
            return False
        if not pending.is_answered_by(parameters):
            return False
        waiting.set_result(parameters)
        return True
