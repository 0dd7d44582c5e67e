"""One server's place on the web: sends single HTTP exchanges there and tells what a refusal means.

Knows the headers that every exchange carries, the session's id among them, which leaves this class in a header only.
Refuses to know streams, answers and what happens after a failure.

Specification: basic/transports, Streamable HTTP: sending messages, session management, protocol version header.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Final

import httpx

from mcphost.errors import ConnectionLost, HttpStatusError, InvalidResult, SessionExpired, TransportError
from mcphost.protocol.wire.jsonrpc import ErrorCode, Request, Response
from mcphost.transports.http import redirects, responses
from mcphost.transports.http.client import FAILURES, Phases, open_client
from mcphost.transports.http.failures import lost
from mcphost.transports.http.responses import MessageReader
from mcphost.transports.tap import Tap, request_head, response_head

POST: Final = {"Content-Type": responses.JSON, "Accept": f"{responses.JSON}, {responses.EVENTS}"}
GET: Final = {"Accept": responses.EVENTS}

SESSION_ID_LENGTH: Final = 1024
"""Characters of a session id; it goes along with every request."""


class ServerEndpoint:
    """Where a server is spoken to. ``url`` may be moved once the server says where it takes messages."""

    def __init__(
        self,
        url: str,
        incoming: MessageReader,
        *,
        headers: Mapping[str, str] | None = None,
        auth: httpx.Auth | None = None,
        phases: Phases | None = None,
        tap: Tap | None = None,
    ) -> None:
        self.url = url
        self.phases = phases or Phases()
        self.version = ""
        """The agreed revision; empty until there is one."""
        self._incoming = incoming
        self._tap = tap
        self._headers = headers
        self._auth = auth
        self._session = ""
        self._client: httpx.AsyncClient | None = None
        self._closed = asyncio.Event()

    def open(self) -> None:
        """Get ready; the first exchange connects. Raises ConnectionLost for a URL that cannot be used."""
        self._client = self._new_client()

    def start_session(self, response: httpx.Response) -> None:
        """Keep the session id that this response gives. Raises InvalidResult for one that no header may hold."""
        session = response.headers.get("mcp-session-id", "")
        if len(session) > SESSION_ID_LENGTH or any(not "\x21" <= letter <= "\x7e" for letter in session):
            raise InvalidResult("the server's session id is too long, or holds what no header may hold")
        self._session = session

    def tags(self) -> dict[str, str]:
        """What tells the server which session a message belongs to, and which revision it follows."""
        session = {"Mcp-Session-Id": self._session} if self._session else {}
        return {**session, "MCP-Protocol-Version": self.version} if self.version else session

    async def exchange(
        self,
        method: str,
        headers: Mapping[str, Any],
        content: bytes | None = None,
        *,
        seconds: float | None = None,
        about: str = "",
    ) -> httpx.Response:
        """Send once; the answer's head is there, its body still to be read and closed.

        ``seconds`` bounds each wait for bytes; None leaves that to the caller. ``about`` is told with it, not sent.
        Raises ConnectionLost, HttpStatusError.
        """
        client = self._client
        if client is None or self._closed.is_set():
            raise self.lost(ConnectionLost("the connection is not open"))
        connect = self.phases.connect
        timeout = httpx.Timeout(seconds, connect=connect, pool=connect)
        try:
            request = client.build_request(method, self.url, headers=headers, content=content, timeout=timeout)
            if self._tap is not None:
                self._tell(self._tap, request, about)
            response = await redirects.send(client, request)
        except FAILURES as error:
            raise self.lost(error) from None
        if self._tap is not None:
            status, reason = response.status_code, response.reason_phrase
            self._tap.noted("http", response_head(status, reason, response.headers.multi_items()))
        return response

    def _tell(self, tap: Tap, request: httpx.Request, about: str) -> None:
        tap.noted("http", request_head(request.method, str(request.url), request.headers.multi_items(), about=about))
        if request.content:
            tap.sent(request.content)

    async def post(self, message: bytes, headers: Mapping[str, str], *, seconds: float | None) -> None:
        """Send what is answered elsewhere or not at all. Raises a TransportError where the server refuses it.

        ``seconds``: see `exchange`.
        """
        response = await self.exchange("POST", {**POST, **headers}, message, seconds=seconds)
        async with aclosing(response):
            if not response.is_success:
                await self.refuse(response)
            elif responses.media_type(response) != responses.EVENTS:
                with contextlib.suppress(*FAILURES):
                    await responses.skip_body(response)

    async def get_stream(self, headers: Mapping[str, Any], *, about: str = "") -> httpx.Response:
        """Open an event stream, still to be read and closed. Raises a TransportError where there is none."""
        response = await self.exchange("GET", {**GET, **headers}, about=about)
        if response.status_code == 200 and responses.media_type(response) == responses.EVENTS:
            return response
        async with aclosing(response):
            if not response.is_success:
                await self.refuse(response)
            raise await self.unexpected(response, reason="which is no event stream")

    async def refusal(self, response: httpx.Response, request: Request | None) -> Response:
        """The JSON-RPC error in a refusal, as the answer to ``request``. Raises whatever else it means."""
        challenge = responses.challenge_in(response)
        if challenge is not None:
            raise challenge
        try:
            found = await responses.error_in(response, self._incoming)
        except FAILURES as error:
            raise self.lost(error) from None
        in_session = "mcp-session-id" in response.request.headers
        if response.status_code == 404 and in_session and not _is_about(found, request):
            raise SessionExpired("the server no longer knows this session (HTTP 404)", refused=request is not None)
        problem = None if found else await self.unexpected(response)
        if response.status_code == 400 and in_session and _is_about_session(found, problem):
            raise SessionExpired("the server no longer knows this session (HTTP 400)", refused=request is not None)
        if problem is not None:
            raise problem
        assert found is not None
        return Response(request.id if request else None, error=found.error)

    async def refuse(self, response: httpx.Response) -> None:
        """Raise what a refusal means to a message that has no answer."""
        found = await self.refusal(response, None)
        assert found.error is not None
        raise responses.refused(response, found.error, hide=self._session)

    async def unexpected(self, response: httpx.Response, *, reason: str = "") -> HttpStatusError:
        """What to raise for an answer that is none."""
        return await responses.unexpected(response, hide=self._session, reason=reason)

    def lost(self, error: BaseException) -> TransportError:
        """What to raise for a failure of the wire."""
        if self._closed.is_set():
            return ConnectionLost("the connection was closed by mcphost")
        return error if isinstance(error, TransportError) else lost(error, httpx.URL(self.url))

    async def pause(self, seconds: float) -> None:
        """Wait, unless the endpoint is closed meanwhile: then raise ConnectionLost."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()
        if self._closed.is_set():
            raise self.lost(ConnectionLost(""))

    async def aclose(self) -> None:
        """Close every exchange, then tell the server that the session is over; bounded, and never raises."""
        self._closed.set()
        with contextlib.suppress(TimeoutError, TransportError, *FAILURES):
            async with asyncio.timeout(self.phases.ending):
                if self._client is not None:
                    await self._client.aclose()
                if self._session:
                    await self._farewell()

    async def _farewell(self) -> None:
        async with self._new_client() as client:
            request = client.build_request("DELETE", self.url, headers=self.tags())
            response = await redirects.send(client, request)
            await response.aclose()  # whatever the server says is right

    def _new_client(self) -> httpx.AsyncClient:
        return open_client(self.url, self.phases, headers=self._headers, auth=self._auth)


def _is_about_session(found: Response | None, problem: HttpStatusError | None) -> bool:
    """Many servers answer 400 where 404 is due, in words of their own: the examples of the official SDKs do."""
    if found is None:
        told = problem.start if problem else ""
    else:
        told = found.error.message if found.error and found.id is None else ""
    return "session" in told.lower()


def _is_about(found: Response | None, request: Request | None) -> bool:
    """Does an error answer this very request, and not just whatever was sent in this session?"""
    if found is None or found.error is None or request is None:
        return False
    return found.id == request.id and found.error.code == ErrorCode.METHOD_NOT_FOUND
