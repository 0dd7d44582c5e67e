"""Streamable HTTP on loopback, for sessions of both eras. Nothing else that serves imports aiohttp.

A handshake session has an id of its own. A modern request is a session for as long as its response; what its client
keeps beyond that is found by its token.

Specification: basic/transports, Streamable HTTP, of every revision since 2025-03-26.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol

from aiohttp import web

from mcphost.errors import InvalidArguments
from mcphost.json_values import as_dict, as_text
from mcphost.protocol.lifecycle.mirrors import VERSION_HEADER, mirrors_of
from mcphost.protocol.lifecycle.revisions import find_revision
from mcphost.protocol.limits import JSON_DEPTH, MESSAGE_BYTES, MESSAGE_ITEMS
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.headers import (
    InvalidAnnotation,
    decode_header_value,
    parameter_headers_of,
    read_annotations,
)
from mcphost.protocol.wire.strict_json import IN_STEPS, Refused, parse, parse_in_steps
from mcphost.serving.client_state import ClientState
from mcphost.serving.negotiation import InvalidParamsError, RpcError, declaration_in, has_metadata
from mcphost.serving.served_request import Json, RequestKey
from mcphost.serving.session import ServedContent, ServerSession, encoded
from mcphost.time_slices import in_turns

PATH: Final = "/mcp"
SESSION_HEADER: Final = "Mcp-Session-Id"

SESSIONS: Final = 64
"""Handshake sessions of one client: the oldest ends, since few clients end theirs."""

UNSENT: Final = 1_000
"""Messages that wait for the stream of a session; the oldest are dropped, since the client may open none."""

JSON_SECONDS: Final = 0.5
"""After which a request without an answer gets an event stream: clients limit the time until the headers."""

CLOSE_SECONDS: Final = 1.0
"""For streams to end when the listener closes."""

_STATUS: Final[Mapping[int, int]] = {
    ErrorCode.METHOD_NOT_FOUND: 404,
    ErrorCode.PARSE_ERROR: 400,
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.HEADER_MISMATCH: 400,
    ErrorCode.MISSING_CLIENT_CAPABILITY: 400,
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION: 400,
}
"""The status of a modern response that is an error."""


class _Stream:
    """Messages for one HTTP response, until ``None``."""

    def __init__(self) -> None:
        self._messages: deque[Any] = deque(maxlen=UNSENT)
        self._changed = asyncio.Event()

    @property
    def is_empty(self) -> bool:
        return not self._messages

    def put(self, message: Any) -> None:
        self._messages.append(message)
        self._changed.set()

    async def get(self) -> Any:
        while not self._messages:
            self._changed.clear()
            await self._changed.wait()
        return self._messages.popleft()


class _HandshakeSession:
    """A session with an id: its streams by the requests that they answer, and one for all else."""

    def __init__(self, content: ServedContent) -> None:
        self.id = os.urandom(16).hex()
        self.content = content
        self.session = ServerSession(content, self._write)
        self.streams: dict[RequestKey, _Stream] = {}
        self.rest = _Stream()
        self.listened = False
        self._post: _Stream | None = None

    @contextmanager
    def answering(self, stream: _Stream) -> Iterator[None]:
        """Errors that name no request belong to this stream in the meantime."""
        self._post = stream
        try:
            yield
        finally:
            self._post = None

    def end(self, key: Any) -> None:
        """End the stream of a request that gets no answer."""
        if isinstance(key, int | str) and (stream := self.streams.pop(key, None)):
            stream.put(None)

    def close(self) -> None:
        self.session.close()
        for stream in (*self.streams.values(), self.rest):
            stream.put(None)

    def _write(self, message: Any, about: RequestKey | None) -> None:
        is_answer = _is_answer(message)
        stream = self.streams.get(about) if about is not None else None
        if stream is None and is_answer:
            stream = self._post
        if stream is not None:
            stream.put(message)
        elif not is_answer:  # an answer whose stream has broken off is lost: it must not come on another
            self.rest.put(message)


class HttpContent(ServedContent, Protocol):
    """Content of which headers repeat parts."""

    def input_schema(self, tool: str) -> Mapping[str, Any]:
        """The schema of a tool's arguments, whose annotations name headers; empty for an unknown tool."""


class HttpListener:
    """Serves the client of each token.

    ``content_of`` returns the content for a token, which is empty if the request has none; or None to refuse it.
    """

    def __init__(self, content_of: Callable[[str], HttpContent | None]) -> None:
        self._content_of = content_of
        self._sessions: dict[str, _HandshakeSession] = {}
        self._states: dict[HttpContent, ClientState] = {}
        self._modern: set[ServerSession] = set()
        self._hosts: frozenset[str] = frozenset()
        self._runner: web.AppRunner | None = None

    @property
    def sessions(self) -> list[ServerSession]:
        """All open sessions, to announce changes to."""
        return [*(each.session for each in self._sessions.values()), *self._modern]

    async def open(self, port: int = 0) -> int:
        """Listen on loopback; the port. Raises OSError."""
        application = web.Application(client_max_size=MESSAGE_BYTES)
        application.router.add_post(PATH, self._post)
        application.router.add_get(PATH, self._get, allow_head=False)
        application.router.add_delete(PATH, self._delete)
        self._runner = web.AppRunner(
            application, handler_cancellation=True, access_log=None, shutdown_timeout=CLOSE_SECONDS
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        bound: int = self._runner.addresses[0][1]
        self._hosts = frozenset(f"{host}:{bound}" for host in ("127.0.0.1", "localhost", "[::1]"))
        return bound

    async def aclose(self) -> None:
        for each in list(self._sessions.values()):
            each.close()
        self._sessions.clear()
        for session in list(self._modern):
            session.close()
        for state in self._states.values():
            state.close()
        if self._runner is not None:
            await self._runner.cleanup()

    # Checks before a message is read.

    def _admitted(self, request: web.Request) -> HttpContent:
        """The content for the client that sent this. Raises HTTPForbidden for a page's request, HTTPUnauthorized."""
        headers = request.headers
        origin, fetched_by = headers.get("Origin"), headers.get("Sec-Fetch-Site", "none")
        foreign = origin is not None and origin.removeprefix("http://") not in self._hosts
        # A name that resolves to loopback, or a page of another origin, must not reach the server through a browser.
        if request.host not in self._hosts or foreign or fetched_by not in ("none", "same-origin"):
            raise web.HTTPForbidden(text="This address serves programs on this machine, not web pages.")
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        content = self._content_of(token.strip() if scheme.lower() == "bearer" else "")
        if content is None:
            raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Bearer"}, text="A bearer token is needed.")
        return content

    def _session_of(self, request: web.Request, content: HttpContent) -> _HandshakeSession:
        """The session that the request names. Raises HTTPBadRequest, HTTPNotFound."""
        given = request.headers.get(SESSION_HEADER)
        if given is None:
            raise web.HTTPBadRequest(text=f"{SESSION_HEADER} is missing.")
        version = request.headers.get(VERSION_HEADER)
        if version is not None and find_revision(version) is None:
            raise web.HTTPBadRequest(text=f"{VERSION_HEADER} names no supported version.")
        found = self._sessions.get(given)
        if found is None or found.content is not content:
            raise web.HTTPNotFound(text="There is no such session.")
        return found

    # Methods.

    async def _post(self, request: web.Request) -> web.StreamResponse:
        content = self._admitted(request)
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="A message is application/json.")
        try:
            value = await _read(await request.read())
        except Refused as refused:
            return _failure(RpcError(ErrorCode.PARSE_ERROR, f"This body was not read: {refused}."))
        message = as_dict(value)
        header = find_revision(request.headers.get(VERSION_HEADER))
        try:
            if header is not None and header.modern and not has_metadata(message):
                raise InvalidParamsError("The request has no metadata.")
            if has_metadata(message):
                _check_mirrors(request.headers, message, content)
            declaration = declaration_in(as_dict(message.get("params")))
        except RpcError as error:
            return _failure(error, message.get("id"))
        if declaration is not None:
            return await self._serve_modern(request, content, message)
        return await self._serve_handshake(request, content, value)

    async def _serve_modern(self, request: web.Request, content: HttpContent, message: Json) -> web.StreamResponse:
        stream = _Stream()
        state = self._states.setdefault(content, ClientState())
        session = ServerSession(content, lambda sent, about: stream.put(sent), state)
        self._modern.add(session)
        try:
            session.take(message)
            if "id" not in message:
                return web.Response(status=202)
            return await _respond(request, stream, modern=True)
        finally:  # the end of the response, or of the connection, is that of the request
            self._modern.discard(session)
            session.close()

    async def _serve_handshake(self, request: web.Request, content: HttpContent, value: Any) -> web.StreamResponse:
        opens = as_dict(value).get("method") == "initialize" and SESSION_HEADER not in request.headers
        served = _HandshakeSession(content) if opens else self._session_of(request, content)
        messages = [as_dict(each) for each in (value if isinstance(value, list) else [value])]
        keys = [each["id"] for each in messages if "method" in each and type(each.get("id")) in (int, str)]
        if taken := next((key for key in keys if key in served.streams), None):
            return _failure(RpcError(ErrorCode.INVALID_REQUEST, "A request with this id is open."), taken)
        stream = _Stream()
        served.streams.update(dict.fromkeys(keys, stream))
        try:
            with served.answering(stream):
                served.session.take(value)
            for each in messages:
                if each.get("method") == "notifications/cancelled":
                    served.end(as_dict(each.get("params")).get("requestId"))
            if not keys and stream.is_empty:
                return web.Response(status=202)
            headers = {SESSION_HEADER: served.id} if opens and self._keep(served) else {}
            return await _respond(request, stream, headers=headers)
        finally:
            for key in keys:
                if served.streams.get(key) is stream:
                    del served.streams[key]

    async def _get(self, request: web.Request) -> web.StreamResponse:
        served = self._session_of(request, self._admitted(request))
        if served.listened:
            raise web.HTTPConflict(text="This session has an open stream.")
        served.listened = True
        try:
            return await _stream(request, served.rest, {}, [], until_answer=False)
        finally:
            served.listened = False

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        served = self._session_of(request, self._admitted(request))
        del self._sessions[served.id]
        served.close()
        return web.Response(status=204)

    def _keep(self, served: _HandshakeSession) -> bool:
        self._sessions[served.id] = served
        own = [each for each in self._sessions.values() if each.content is served.content]
        for oldest in own[: max(0, len(own) - SESSIONS)]:
            del self._sessions[oldest.id]
            oldest.close()
        return True


async def _read(body: bytes) -> Any:
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
    return _json_response({"jsonrpc": "2.0", "id": key, "error": error.as_object()}, 400)


def _json_response(message: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=encoded(message), status=status, content_type="application/json", headers=headers)


async def _respond(
    request: web.Request, stream: _Stream, *, modern: bool = False, headers: Mapping[str, str] | None = None
) -> web.StreamResponse:
    """Send one JSON body if the answer comes soon and alone, else an event stream that ends with it."""
    try:
        first = [await asyncio.wait_for(stream.get(), JSON_SECONDS)]
    except TimeoutError:
        first = []
    if first and first[0] is not None and _is_answer(first[0]):
        code = as_dict(as_dict(first[0]).get("error")).get("code")
        return _json_response(first[0], _STATUS.get(code, 200) if modern and code is not None else 200, headers)
    return await _stream(request, stream, headers or {}, first, until_answer=True)


async def _stream(
    request: web.Request, stream: _Stream, headers: Mapping[str, str], first: list[Any], *, until_answer: bool
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", **headers})
    response.content_type = "text/event-stream"
    await response.prepare(request)
    message = first[0] if first else await stream.get()
    while message is not None:
        await response.write(b"event: message\ndata: " + encoded(message) + b"\n\n")
        if until_answer and _is_answer(message):
            break
        message = await stream.get()
    await response.write_eof()
    return response


def _is_answer(message: Any) -> bool:
    """True for a response, or a batch of them."""
    return isinstance(message, list) or "method" not in message
