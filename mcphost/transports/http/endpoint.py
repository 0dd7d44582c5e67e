"""Sends single HTTP exchanges to one server, and turns refusals into exceptions.

The session id is added here, and never leaves `ServerEndpoint` except in a header.

Specification: basic/transports, Streamable HTTP: sending messages, session management, protocol version header.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final

import httpx

from mcphost.errors import (
    ConnectionClosed,
    ConnectionLost,
    HttpStatusError,
    InvalidResult,
    SessionExpired,
    TransportError,
)
from mcphost.lazy_dataclass import dataclass
from mcphost.net.client import RequestHook, new_client
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.jsonrpc import ErrorObject, Request, Response
from mcphost.redaction import MASK, is_secret_header, safe_url
from mcphost.transports.base import MessageObserver
from mcphost.transports.http import redirects, responses
from mcphost.transports.http.engine import AiohttpEngine
from mcphost.transports.http.failures import lost
from mcphost.transports.http.responses import MessageReader

POST: Final = {"Content-Type": responses.JSON, "Accept": f"{responses.JSON}, {responses.EVENTS}"}
GET: Final = {"Accept": responses.EVENTS}

SESSION_ID_LENGTH: Final = 1024
"""Characters of a session id, which every request carries."""

FAILURES: Final = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL)
"""Exceptions of an exchange for failures of the network."""

HEADERS: Final = 100
"""Headers of one head that are reported."""

HEADER_CHARACTERS: Final = 1000
"""Characters of one header value that are reported."""


@dataclass(frozen=True, slots=True)
class PhaseTimeouts:
    """Timeouts of the phases of an exchange, in seconds. The caller bounds the wait for a response."""

    connect: float = 10.0
    """For name lookup, connection and TLS, each."""
    headers: float = 30.0
    """For the response head of a POST that has no JSON-RPC response."""
    ending: float = 2.0
    """For closing, including the DELETE that ends the session."""


class ServerEndpoint:
    """The HTTP endpoint of one server. The old SSE transport replaces ``url`` once the server names its endpoint."""

    def __init__(
        self,
        url: str,
        incoming: MessageReader,
        *,
        headers: Mapping[str, str] | None = None,
        auth: httpx.Auth | None = None,
        timeouts: PhaseTimeouts | None = None,
        observer: MessageObserver | None = None,
    ) -> None:
        self.url = url
        self.timeouts = timeouts or PhaseTimeouts()
        self.version = ""
        """The negotiated revision; empty before."""
        self._incoming = incoming
        self._observer = observer
        self._headers = headers
        self._auth = auth
        self._session = ""
        self._renamed = False
        """True if an answer after that to ``initialize`` named a session."""
        self._client: httpx.AsyncClient | None = None
        self._closed = asyncio.Event()
        self._authorization: str | None = None
        """The ``Authorization`` header of the last request, empty if it had none; None before the first request."""
        self._authorization_changed: Callable[[], None] = lambda: None

    def open(self, authorization_changed: Callable[[], None]) -> None:
        """Create the client; the first exchange connects. Raises ConnectionLost for an unusable URL.

        ``authorization_changed`` is called before a request leaves with other credentials than the one before it.
        """
        self._authorization_changed = authorization_changed
        self._client = self._new_client()

    def start_session(self, response: httpx.Response) -> None:
        """Store the session id of this response. Raises InvalidResult for an id that no header may hold."""
        session = response.headers.get("mcp-session-id", "")
        if len(session) > SESSION_ID_LENGTH or any(not "\x21" <= letter <= "\x7e" for letter in session):
            raise InvalidResult("the server's session id is too long, or holds what no header may hold")
        self._session = session

    def drop_session(self) -> None:
        """Send no session id from now on."""
        self._session = ""

    def tags(self) -> dict[str, str]:
        """The headers that name the session and the revision."""
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
        """Send once, and return the response with its body unread: the caller closes it.

        ``seconds`` bounds each wait for bytes; None leaves that to the caller. ``about`` is a remark for the observer.
        Raises ConnectionLost, HttpStatusError.
        """
        client = self._client
        if client is None or self._closed.is_set():
            raise self.lost(ConnectionLost("the connection is not open"))
        connect = self.timeouts.connect
        timeout = httpx.Timeout(seconds, connect=connect, pool=connect)
        try:
            request = client.build_request(method, self.url, headers=headers, content=content, timeout=timeout)
            if self._observer is not None:
                self._record(self._observer, request, about)
            response = await redirects.send(client, request)
        except FAILURES as error:
            raise self.lost(error) from None
        if self.version and response.headers.get("mcp-session-id", self._session) != self._session:
            self._renamed = True
        if self._observer is not None:
            status, reason = response.status_code, response.reason_phrase
            self._observer.noted("http", response_head(status, reason, response.headers.multi_items()))
        return response

    def _record(self, observer: MessageObserver, request: httpx.Request, about: str) -> None:
        observer.noted(
            "http", request_head(request.method, str(request.url), request.headers.multi_items(), about=about)
        )
        if request.content:
            observer.sent(request.content)

    async def post(self, message: bytes, headers: Mapping[str, str], *, seconds: float | None) -> None:
        """POST a message whose response, if any, arrives elsewhere. Raises a TransportError if the server refuses it.

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
        """Open an event stream, which the caller reads and closes. Raises a TransportError for any other response."""
        response = await self.exchange("GET", {**GET, **headers}, about=about)
        if response.status_code == 200 and responses.media_type(response) == responses.EVENTS:
            return response
        async with aclosing(response):
            if not response.is_success:
                await self.refuse(response)
            raise await self.unexpected(response, reason="which is not an event stream")

    async def refusal(self, response: httpx.Response, request: Request | None) -> Response:
        """The JSON-RPC error in a refusal, as the response to ``request``. Raises what any other refusal means."""
        challenge = await responses.challenge_in(response)
        if challenge is not None:
            raise challenge
        try:
            found, body = await responses.read_refusal(response, self._incoming)
        except FAILURES as error:
            raise self.lost(error) from None
        words = found.error.message if found and found.error else responses.words_in(body)
        if self._is_session_lost(response, found, words, request):
            raise self.session_expired(words, response.status_code, refused=request is not None)
        if found is None:
            late = self._renamed and not self._session
            reason = "a later answer named a session, which only the answer to initialize may" if late else ""
            raise await self.unexpected(response, body, reason=reason)
        return Response(request.id if request else None, error=found.error)

    def _is_session_lost(
        self, response: httpx.Response, found: Response | None, words: str, request: Request | None
    ) -> bool:
        """True if the refusal says that the session is gone; certain only if it is not an error of this request."""
        if "mcp-session-id" not in response.request.headers:
            return False
        own = found is not None and request is not None and found.id == request.id
        if response.status_code == 404:
            return not (own and found and found.error and found.error.code == ErrorCode.METHOD_NOT_FOUND)
        # Many servers, such as the examples of the official SDKs, answer 400 with their own words instead of 404.
        return response.status_code in _SESSION_REFUSALS and not own and mentions_session(words)

    def session_expired(self, words: str, status: int, *, refused: bool) -> SessionExpired:
        """The exception for a session that the server no longer knows, in its ``words``."""
        said = responses.quoted(words, self._session)
        other = "; a later answer named another one, which only the answer to initialize may" if self._renamed else ""
        where = f"HTTP {status}: {said}" if said else f"HTTP {status}"
        return SessionExpired(f"the server no longer knows this session ({where}){other}", refused=refused)

    def may_have_lost_session(self, error: ErrorObject | None) -> bool:
        """True if this error may say that the session is gone, rather than something about the request."""
        return bool(self._session) and error is not None and mentions_session(error.message)

    async def refuse(self, response: httpx.Response) -> None:
        """Raise what a refusal means for a message without a response."""
        found = await self.refusal(response, None)
        assert found.error is not None
        raise responses.refused(response, found.error, hide=self._session)

    async def unexpected(
        self, response: httpx.Response, body: bytes | None = None, *, reason: str = ""
    ) -> HttpStatusError:
        """The exception for a response of the wrong status or type; None: its ``body`` is not read yet."""
        return await responses.unexpected(response, body, hide=self._session, reason=reason)

    def lost(self, error: BaseException) -> TransportError:
        """The exception for a failure of the network."""
        if self._closed.is_set():
            return ConnectionClosed()
        return error if isinstance(error, TransportError) else lost(error, httpx.URL(self.url))

    async def pause(self, seconds: float) -> None:
        """Wait; raise ConnectionLost if the endpoint is closed meanwhile."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()
        if self._closed.is_set():
            raise self.lost(ConnectionLost(""))

    async def aclose(self) -> None:
        """Close every exchange, then end the session with a DELETE. Bounded in time; never raises."""
        self._closed.set()
        with contextlib.suppress(TimeoutError, TransportError, *FAILURES):
            async with asyncio.timeout(self.timeouts.ending):
                if self._client is not None:
                    await self._client.aclose()
                if self._session:
                    await self._end_session()

    async def _end_session(self) -> None:
        async with self._new_client() as client:
            request = client.build_request("DELETE", self.url, headers=self.tags())
            response = await redirects.send(client, request)
            await response.aclose()  # whatever its status

    def _new_client(self) -> httpx.AsyncClient:
        return open_client(
            self.url, self.timeouts, headers=self._headers, auth=self._auth, on_request=self._watch_authorization
        )

    async def _watch_authorization(self, request: httpx.Request) -> None:
        given, before = request.headers.get("Authorization", ""), self._authorization
        self._authorization = given
        if before not in (None, given):
            self._authorization_changed()


_SESSION_REFUSALS: Final = (400, 410, 422)
"""Statuses with which servers refuse a session that they forgot, besides 404; 422 is a web framework's check."""


def mentions_session(words: str) -> bool:
    """True if a server's words name the session, or say that there was no handshake."""
    return re.search(r"(?i)session|not (?:been |yet )?initiali[sz]ed", words) is not None


def open_client(
    url: str,
    timeouts: PhaseTimeouts,
    *,
    headers: Mapping[str, str] | None = None,
    auth: httpx.Auth | None = None,
    on_request: RequestHook | None = None,
) -> httpx.AsyncClient:
    """As `new_client`. Raises ConnectionLost if the URL, the proxy or the certificates cannot be used."""
    try:
        target = httpx.URL(url)
        check_target(target)
        return new_client(
            target,
            connect=timeouts.connect,
            headers={"Accept-Encoding": "gzip, deflate", **(headers or {})},
            auth=auth,
            on_request=on_request,
            engine=AiohttpEngine,
        )
    except (httpx.InvalidURL, ValueError, OSError) as error:
        raise ConnectionLost(f"this URL cannot be used: {error}", lasting=True) from None


def check_target(url: httpx.URL) -> None:
    """Raise ValueError unless ``url`` is an http or https URL with a host."""
    if url.scheme not in ("http", "https"):
        raise ValueError("it must start with http:// or https://")
    if not url.host:
        raise ValueError("it names no host")


Headers = Iterable[tuple[str, str]]


def request_head(method: str, url: str, headers: Headers, *, about: str = "") -> str:
    """``POST https://…`` and its headers, one per line, secrets masked, for `MessageObserver.noted`.

    ``about`` is a remark at the end of the first line.
    """
    return "\n".join((f"{method} {safe_url(url)}{f'  ({about})' if about else ''}", *_lines(headers)))


def response_head(status: int, reason: str, headers: Headers) -> str:
    """``HTTP 200 OK`` and its headers, one per line, secrets masked, for `MessageObserver.noted`."""
    return "\n".join((f"HTTP {status} {reason}".rstrip(), *_lines(headers)))


def _lines(headers: Headers) -> Iterable[str]:
    for number, (name, value) in enumerate(headers):
        if number == HEADERS:
            yield "…"
            return
        yield f"{name}: {_shown(name, value)}"


def _shown(name: str, value: str) -> str:
    if is_secret_header(name):
        return MASK
    return safe_url(value if len(value) <= HEADER_CHARACTERS else f"{value[:HEADER_CHARACTERS]}…")
