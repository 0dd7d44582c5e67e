"""Streamable HTTP on loopback, for sessions of both eras. Nothing else that serves imports aiohttp.

A handshake session has an id of its own. A modern request is a session for as long as its response; what its client
keeps beyond that is found by its token and path.

Specification: basic/transports, Streamable HTTP, of every revision since 2025-03-26.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, Protocol

from aiohttp import web

from mcphost.errors import InvalidArguments, McphostError
from mcphost.json_values import as_dict, as_text
from mcphost.protocol.display import size_text
from mcphost.protocol.lifecycle.mirrors import VERSION_HEADER, mirrors_of
from mcphost.protocol.lifecycle.revisions import V2025_11_25, find_revision
from mcphost.protocol.limits import JSON_DEPTH, MESSAGE_BYTES, MESSAGE_ITEMS
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.headers import (
    InvalidAnnotation,
    decode_header_value,
    parameter_headers_of,
    read_annotations,
)
from mcphost.protocol.wire.jsonrpc import encode_value
from mcphost.protocol.wire.strict_json import IN_STEPS, Refused, parse, parse_in_steps
from mcphost.serving.client_state import ClientState
from mcphost.serving.event_streams import EventStore, EventStream
from mcphost.serving.negotiation import InvalidParamsError, RpcError, declaration_in, has_metadata
from mcphost.serving.served_request import Json, RequestKey
from mcphost.serving.session import ServedContent, ServerSession, SessionHandle
from mcphost.serving.time_limits import Expiry
from mcphost.time_slices import in_turns
from mcphost.transports.base import MessageObserver

PATH: Final = "/mcp"
SESSION_HEADER: Final = "Mcp-Session-Id"
LAST_EVENT_HEADER: Final = "Last-Event-ID"

SESSIONS: Final = 64
"""Handshake sessions of one client: the oldest ends, since few clients end theirs."""

SESSION_SECONDS: Final = 86_400.0
"""After which a handshake session ends that neither asks nor listens: its client is gone."""

CLIENT_SECONDS: Final = 600.0
"""After which what a modern client keeps is closed, if nothing waits for it."""

OPEN_REQUESTS: Final = 256
"""HTTP requests of one client that are answered at once: each takes a connection."""

CONNECTIONS: Final = 1_000
"""Of all clients, and of programs that only connect: each takes a file descriptor."""

JSON_SECONDS: Final = 0.5
"""After which a request without an answer gets an event stream: clients limit the time until the headers."""

CLOSE_SECONDS: Final = 1.0
"""For streams to end when the listener closes, and for the rest of a body that is not read."""

RETRY_MILLISECONDS: Final = 1_000
"""After which a client should resume a stream that broke off."""

_STATUS: Final[Mapping[int, int]] = {
    ErrorCode.METHOD_NOT_FOUND: 404,
    ErrorCode.PARSE_ERROR: 400,
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.HEADER_MISMATCH: 400,
    ErrorCode.MISSING_CLIENT_CAPABILITY: 400,
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION: 400,
}
"""The status of a modern response that is an error."""


class HttpContent(ServedContent, Protocol):
    """Content for HTTP, where headers repeat parts of messages."""

    def input_schema(self, tool: str) -> Mapping[str, Any]:
        """The schema of a tool's arguments, whose annotations name headers; empty for an unknown tool."""

    def attach(self, session: SessionHandle) -> None:
        """Use this session from now on."""
        return

    @property
    def observer(self) -> MessageObserver | None:
        """Takes each message from and to the client."""
        return None


class HttpClient(NamedTuple):
    token: str
    """The bearer; empty without one."""
    path: str
    """The rest of the path: empty, the name of a server, or that of a profile after ``@``."""


class _HandshakeSession:
    """A session with an id: its streams by the requests that they answer, and one for all else."""

    def __init__(self, client: HttpClient, content: HttpContent, end: Callable[[_HandshakeSession], None]) -> None:
        self.id = os.urandom(16).hex()
        self.client = client
        self.open_requests = 0
        self.listeners = 0
        self.store = EventStore()
        self.rest = self.store.open()
        self.answering: dict[RequestKey, EventStream] = {}
        self._post: EventStream | None = None
        self._observer = content.observer
        self.session = ServerSession(content, self._write, timers=asyncio.get_running_loop())
        self.session.on_disconnect = lambda: end(self)
        content.attach(self.session)

    @property
    def primes(self) -> bool:
        """True if each stream begins with an event without a message."""
        revision = self.session.revision
        return revision is not None and revision.version >= V2025_11_25.version

    def take(self, value: Any, body: bytes, stream: EventStream) -> None:
        """Take a message; errors that name no request go to this stream."""
        if self._observer is not None:
            self._observer.received(body)
        self._post = stream
        try:
            self.session.take(value)
        finally:
            self._post = None

    def end(self, key: Any) -> None:
        """End the stream of a request that gets no answer."""
        stream = self.answering.pop(key, None) if isinstance(key, int | str) else None
        if stream is not None and stream not in self.answering.values():
            stream.end()

    def close(self) -> None:
        self.session.close()
        for stream in (*self.answering.values(), self.rest):
            stream.end()

    def _write(self, message: Any, about: RequestKey | None) -> None:
        data = encode_value(message)
        if self._observer is not None:
            self._observer.sent(data)
        stream, is_answer = self.answering.get(about) if about is not None else None, _is_answer(message)
        if is_answer:
            stream = stream or self._post
            if isinstance(message, list):
                self.answering = {key: each for key, each in self.answering.items() if each is not stream}
            elif about is not None:
                self.answering.pop(about, None)
        if stream is not None:
            stream.put(data, answers=is_answer)
        elif not is_answer:
            self.rest.put(data, answers=False)


class _ModernClient:
    """A modern client, from request to request; a `SessionHandle` of all that are open."""

    def __init__(self, content: HttpContent, end: Callable[[_ModernClient], None]) -> None:
        self.content, self.observer = content, content.observer
        self.state = ClientState(asyncio.get_running_loop())
        self.sessions: set[ServerSession] = set()
        self._end = end
        content.attach(self)

    def log(self, level: LogLevel, data: Any, logger: str) -> None:
        return  # only requests have log messages

    def list_changed(self, kind: str) -> None:
        for session in tuple(self.sessions):
            session.list_changed(kind)

    def resource_updated(self, uri: str) -> None:
        for session in tuple(self.sessions):
            session.resource_updated(uri)

    def disconnect(self) -> None:
        self._end(self)

    def close(self) -> None:
        for session in tuple(self.sessions):
            session.close()
            session.on_disconnect()
        self.state.close()
        self.content.closed()


class HttpListener:
    """Serves the clients whose tokens ``admits`` admits.

    ``open_content`` opens what one is served: for each handshake session, and once for all its modern requests. None,
    or an McphostError, refuses the path. The token is empty if a request has none.
    """

    def __init__(
        self,
        open_content: Callable[[str, str], HttpContent | None],
        admits: Callable[[str], bool] = lambda token: True,
    ) -> None:
        self._open_content, self._admits = open_content, admits
        self._sessions: dict[str, _HandshakeSession] = {}
        self._modern: dict[HttpClient, _ModernClient] = {}
        self._open_requests: Counter[str] = Counter()
        self._hosts: frozenset[str] = frozenset()
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None

    @property
    def sessions(self) -> list[ServerSession]:
        """All open sessions, to announce changes to."""
        modern = (session for client in self._modern.values() for session in client.sessions)
        return [*(each.session for each in self._sessions.values()), *modern]

    async def open(self, port: int = 0) -> int:
        """Listen on loopback; the port. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._idle_sessions = Expiry(loop, SESSION_SECONDS, self._end_session)
        self._idle_clients = Expiry(loop, CLIENT_SECONDS, self._end_idle)
        application = web.Application(client_max_size=MESSAGE_BYTES)
        application.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(
            application,
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=CLOSE_SECONDS,
            lingering_time=CLOSE_SECONDS,
        )
        await self._runner.setup()
        self._server = await loop.create_server(self._protocol, "127.0.0.1", port)
        bound: int = self._server.sockets[0].getsockname()[1]
        self._hosts = frozenset(f"{host}:{bound}" for host in ("127.0.0.1", "localhost", "[::1]"))
        return bound

    def end_refused(self) -> None:
        """End everything that was opened with tokens which have been revoked."""
        clients = {*(each.client for each in self._sessions.values()), *self._modern}
        for token in {client.token for client in clients}:
            if not self._admits(token):
                self._end_client(token)

    def _end_client(self, token: str) -> None:
        for served in [each for each in self._sessions.values() if each.client.token == token]:
            self._end_session(served)
        for modern in [each for client, each in self._modern.items() if client.token == token]:
            self._end_modern(modern)

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
        for served in tuple(self._sessions.values()):
            self._end_session(served)
        for modern in tuple(self._modern.values()):
            self._end_modern(modern)
        if self._runner is not None:
            await self._runner.cleanup()

    def _protocol(self) -> asyncio.Protocol:
        server = self._runner.server if self._runner is not None else None
        if server is None or len(server.connections) >= CONNECTIONS:
            return _RefusedConnection()
        return server()

    # Checks before a message is read.

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self._check_origin(request)
        root, _, rest = request.path.removeprefix(PATH).partition("/")
        if root or not request.path.startswith(PATH):
            raise web.HTTPNotFound(text=f"Nothing is here. The address of mcphost ends with {PATH}.")
        client = HttpClient(_token_of(request), rest)
        if not self._admits(client.token):
            self._end_client(client.token)  # it was revoked
            raise web.HTTPUnauthorized(
                headers={"WWW-Authenticate": 'Bearer realm="mcphost"'},
                text="mcphost serves only agents that send the bearer token which it made for them.",
            )
        methods: Mapping[str, Callable[[web.Request, HttpClient], Awaitable[web.StreamResponse]]] = {
            "POST": self._post,
            "GET": self._get,
            "DELETE": self._delete,
        }
        if (serve := methods.get(request.method)) is None:
            raise web.HTTPMethodNotAllowed(request.method, methods)
        if self._open_requests[client.token] >= OPEN_REQUESTS:
            raise web.HTTPTooManyRequests(text=f"{OPEN_REQUESTS} requests of this agent are open.")
        self._open_requests[client.token] += 1
        try:
            return await serve(request, client)
        finally:
            self._open_requests[client.token] -= 1
            if not self._open_requests[client.token]:
                del self._open_requests[client.token]

    def _check_origin(self, request: web.Request) -> None:
        """Raises HTTPForbidden for the request of a web page."""
        # A name that resolves to loopback, or a page of another origin, must not reach the server through a browser.
        hosts = {each.lower() for each in request.headers.getall("Host", [""])}
        origins = {each.removeprefix("http://") for each in request.headers.getall("Origin", [])}
        fetched_by = {*request.headers.getall("Sec-Fetch-Site", [])}
        foreign = not (hosts | origins <= self._hosts and fetched_by <= {"none", "same-origin"})
        if foreign or request.method == "OPTIONS":
            raise web.HTTPForbidden(text="This address serves programs on this machine, not web pages.")

    def _opened(self, client: HttpClient) -> HttpContent:
        """New content for a client. Raises HTTPNotFound."""
        try:
            content = self._open_content(*client)
        except McphostError as error:
            raise web.HTTPNotFound(text=f"{error}") from None
        if content is None:
            raise web.HTTPNotFound(text="Nothing is served at this path.")
        return content

    def _session_of(self, request: web.Request, client: HttpClient) -> _HandshakeSession:
        """The session that the request names. Raises HTTPBadRequest, HTTPNotFound."""
        given = request.headers.get(SESSION_HEADER)
        if given is None:
            raise web.HTTPBadRequest(text=f"{SESSION_HEADER} is missing.")
        version = request.headers.get(VERSION_HEADER)
        if version is not None and find_revision(version) is None:
            raise web.HTTPBadRequest(text=f"{VERSION_HEADER} names no supported version.")
        found = self._sessions.get(given)
        if found is None or found.client != client:
            raise web.HTTPNotFound(text="There is no such session.")
        return found

    # Methods.

    async def _post(self, request: web.Request, client: HttpClient) -> web.StreamResponse:
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="A message is application/json.")
        if (size := request.content_length or 0) > MESSAGE_BYTES:
            raise web.HTTPRequestEntityTooLarge(
                MESSAGE_BYTES, size, text=f"A message has at most {size_text(MESSAGE_BYTES)}."
            )
        body = await request.read()
        try:
            value = await _parsed(body)
        except Refused as refused:
            return _failure(RpcError(ErrorCode.PARSE_ERROR, f"This body was not read: {refused}."))
        message = as_dict(value)
        header = find_revision(request.headers.get(VERSION_HEADER))
        try:
            if has_metadata(message):
                modern = self._modern_client(client)
                _check_mirrors(request.headers, message, modern.content)
                if declaration_in(as_dict(message.get("params"))) is not None:
                    return await self._serve_modern(request, modern, message, body)
            elif header is not None and header.modern:
                if "method" not in message:
                    raise RpcError(ErrorCode.INVALID_REQUEST, "This body is not a request.")
                raise InvalidParamsError("The request has no metadata.")
        except RpcError as error:
            return _failure(error, message.get("id"))
        return await self._serve_handshake(request, client, value, body)

    async def _serve_modern(
        self, request: web.Request, modern: _ModernClient, message: Json, body: bytes
    ) -> web.StreamResponse:
        stream, status = EventStore(replays=False).open(), 200

        def write(sent: Any, about: RequestKey | None) -> None:
            nonlocal status
            data = encode_value(sent)
            if modern.observer is not None:
                modern.observer.sent(data)
            answers = _is_answer(sent)
            if answers and "error" in sent:
                status = _STATUS.get(sent["error"]["code"], 200)
            stream.put(data, answers=answers)

        if modern.observer is not None:
            modern.observer.received(body)
        session = ServerSession(modern.content, write, modern.state)
        session.on_disconnect = stream.end
        modern.sessions.add(session)
        self._idle_clients.discard(modern)
        try:
            session.take(message)
            if "id" not in message:
                return web.Response(status=202)
            connection = stream.connect()
            if await _is_answered_soon(stream, connection):
                return _json_response(stream.events[0].data, status)
            return await _send(request, stream, connection, 0, with_ids=False)
        finally:  # the end of the response, or of the connection, is that of the request
            modern.sessions.discard(session)
            session.close()
            if not modern.sessions and modern in self._modern.values():
                self._idle_clients.add(modern)

    async def _serve_handshake(
        self, request: web.Request, client: HttpClient, value: Any, body: bytes
    ) -> web.StreamResponse:
        opens = as_dict(value).get("method") == "initialize" and SESSION_HEADER not in request.headers
        served = self._open_session(client) if opens else self._session_of(request, client)
        messages = [as_dict(each) for each in (value if isinstance(value, list) else [value])]
        keys = [each["id"] for each in messages if "method" in each and type(each.get("id")) in (int, str)]
        if taken := next((key for key in keys if key in served.answering), None):
            return _failure(RpcError(ErrorCode.INVALID_REQUEST, "A request with this id is open."), taken)
        stream = served.store.open()
        served.answering.update(dict.fromkeys(keys, stream))
        with self._using(served):
            served.take(value, body, stream)
            for each in messages:
                if each.get("method") == "notifications/cancelled":
                    served.end(as_dict(each.get("params")).get("requestId"))
            if not keys and not stream.events:
                served.store.forget(stream)
                return web.Response(status=202)
            headers = {SESSION_HEADER: served.id} if opens else {}
            connection = stream.connect()
            try:
                answered = await _is_answered_soon(stream, connection)
            except asyncio.CancelledError:
                if opens:  # no client knows the session
                    self._end_session(served)
                raise
            if answered:
                answer = stream.events[0].data
                served.store.forget(stream)
                if opens and served.session.revision is None:  # refused
                    self._end_session(served)
                    headers = {}
                return _json_response(answer, headers=headers)
            return await _send(request, stream, connection, 0, headers, primes=served.primes)

    async def _get(self, request: web.Request, client: HttpClient) -> web.StreamResponse:
        served = self._session_of(request, client)
        stream, after = served.rest, served.rest.sent
        if (last := request.headers.get(LAST_EVENT_HEADER)) is not None:
            if (found := served.store.find(last)) is None:
                raise web.HTTPBadRequest(text="This event is not known, or not any more.")
            stream, after = found
        elif served.listeners:
            raise web.HTTPConflict(text="This session has an open stream.")
        served.listeners += stream is served.rest
        try:
            with self._using(served):
                return await _send(request, stream, stream.connect(), after, primes=served.primes)
        finally:
            served.listeners -= stream is served.rest

    async def _delete(self, request: web.Request, client: HttpClient) -> web.StreamResponse:
        self._end_session(self._session_of(request, client))
        return web.Response(status=204)

    # Clients.

    def _open_session(self, client: HttpClient) -> _HandshakeSession:
        served = _HandshakeSession(client, self._opened(client), self._end_session)
        self._sessions[served.id] = served
        own = [each for each in self._sessions.values() if each.client.token == client.token]
        for oldest in own[: max(0, len(own) - SESSIONS)]:
            self._end_session(oldest)
        return served

    @contextmanager
    def _using(self, served: _HandshakeSession) -> Iterator[None]:
        """Let a session that a request belongs to not end as idle."""
        served.open_requests += 1
        self._idle_sessions.discard(served)
        try:
            yield
        finally:
            served.open_requests -= 1
            if not served.open_requests and served.id in self._sessions:
                self._idle_sessions.add(served)

    def _end_session(self, served: _HandshakeSession) -> None:
        if self._sessions.pop(served.id, None) is not None:
            self._idle_sessions.discard(served)
            served.close()

    def _modern_client(self, client: HttpClient) -> _ModernClient:
        if (found := self._modern.get(client)) is None:
            found = self._modern[client] = _ModernClient(self._opened(client), self._end_modern)
            self._idle_clients.add(found)
        return found

    def _end_idle(self, modern: _ModernClient) -> None:
        if modern.state.is_idle:
            self._end_modern(modern)
        else:
            self._idle_clients.add(modern)

    def _end_modern(self, modern: _ModernClient) -> None:
        for client in [client for client, each in self._modern.items() if each is modern]:
            del self._modern[client]
            self._idle_clients.discard(modern)
            modern.close()


class _RefusedConnection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _token_of(request: web.Request) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


async def _parsed(body: bytes) -> Any:
    """The value of a body. Raises Refused."""
    if len(body) < IN_STEPS:
        return parse(body, JSON_DEPTH)
    return await in_turns(parse_in_steps(body, MESSAGE_ITEMS, JSON_DEPTH))


def _check_mirrors(headers: Mapping[str, str], message: Json, content: HttpContent) -> None:
    """Raises RpcError if a header is missing, or differs from the part of the body that it repeats."""
    if "id" not in message:
        return
    wrong = [str(mirror) for mirror in mirrors_of(headers, message) if not mirror.agrees]
    params = as_dict(message.get("params"))
    if message.get("method") == "tools/call":
        schema = content.input_schema(as_text(params.get("name")))
        wrong += _wrong_parameters(headers, schema, as_dict(params.get("arguments")))
    if wrong:
        raise RpcError(ErrorCode.HEADER_MISMATCH, f"Headers and body differ: {wrong[0]}.")


def _wrong_parameters(headers: Mapping[str, str], schema: Mapping[str, Any], arguments: Json) -> list[str]:
    """The names of headers that do not repeat their arguments."""
    try:
        expected = parameter_headers_of(read_annotations(schema), arguments)
    except (InvalidAnnotation, InvalidArguments):
        return []  # no client can send such headers
    return [name for name, value in expected.items() if _decoded(headers.get(name)) != decode_header_value(value)]


def _decoded(value: str | None) -> str | None:
    try:
        return None if value is None else decode_header_value(value)
    except ValueError:
        return None


def _failure(error: RpcError, key: Any = None) -> web.Response:
    key = key if type(key) in (int, str) else None
    return _json_response(encode_value({"jsonrpc": "2.0", "id": key, "error": error.as_object()}), 400)


def _json_response(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)


async def _is_answered_soon(stream: EventStream, connection: int) -> bool:
    """True if the first message is the answer, and comes before an event stream must begin."""
    if not stream.events:
        with suppress(TimeoutError):
            async with asyncio.timeout(JSON_SECONDS):
                await stream.next(0, connection)
    return bool(stream.events) and stream.events[0].answers


async def _send(
    request: web.Request,
    stream: EventStream,
    connection: int,
    after: int,
    headers: Mapping[str, str] | None = None,
    *,
    with_ids: bool = True,
    primes: bool = False,
) -> web.StreamResponse:
    """Send the events after one, until the stream ends or another connection goes on with it."""
    response = web.StreamResponse(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", **(headers or {})})
    response.content_type = "text/event-stream"
    with suppress(ConnectionError):  # the client may come back for the rest
        await response.prepare(request)
        if primes:
            first = f"id: {stream.first_id(after, connection)}\nretry: {RETRY_MILLISECONDS}\ndata:\n\n"
            await response.write(first.encode())
        while event := await stream.next(after, connection):
            head = f"id: {stream.event_id(event)}\n" if with_ids else ""
            await response.write(f"{head}event: message\ndata: ".encode() + event.data + b"\n\n")
            after = event.number
            stream.was_sent(event)
        await response.write_eof()
    return response


def _is_answer(message: Any) -> bool:
    """True for a response, or a batch of them."""
    return isinstance(message, list) or "method" not in message
