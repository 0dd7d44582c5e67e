"""A server at an address, for a gate: the lines of a program's streams on one side, a transport on the other.

Sessions, streams and their resumption stay within the transport. A session that the server forgot is opened again as
the agent opened it, since an agent knows of no sessions of programs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from mcphost.errors import (
    AuthorizationRequired,
    ConnectionLost,
    HttpStatusError,
    InvalidArguments,
    McphostError,
    SessionExpired,
)
from mcphost.json_values import as_dict, as_text, dicts_in
from mcphost.protocol.lifecycle.revisions import META_PREFIX, NEWEST_HANDSHAKE, NEWEST_MODERN, Revision, find_revision
from mcphost.protocol.lifecycle.session import modern_headers
from mcphost.protocol.limits import BATCH_ITEMS
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.headers import InvalidAnnotation, ParameterHeader, read_annotations
from mcphost.protocol.wire.jsonrpc import (
    ErrorObject,
    Malformed,
    Message,
    Notification,
    Request,
    RequestId,
    Response,
    decode,
    decode_in_steps,
    encode,
)
from mcphost.serving.gate_answers import failure, refusal
from mcphost.serving.gate_lines import encode as encode_line
from mcphost.serving.gate_lines import id_of
from mcphost.time_slices import in_turns
from mcphost.transports.base import Transport

LINE_BYTES: Final = 64 << 20
"""Bytes of a line that a gate writes: a message of the greatest size may be three times as long in plain ASCII."""

LISTENS: Final = 3
"""Streams for what the server says unasked that may break off in one session."""

MOST_REQUESTS: Final = 256
"""Requests that the server has not answered, each with a connection of its own: an agent has a few dozen at most."""

FORGOTTEN: Final = (
    "The server had forgotten its session, so this call has not run. mcphost opened another session; call again."
)

LISTEN: Final = "subscriptions/listen"
CANCELLED: Final = "notifications/cancelled"

_MODERN_ERRORS: Final = (
    ErrorCode.HEADER_MISMATCH,
    ErrorCode.MISSING_CLIENT_CAPABILITY,
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
)


class RemoteServer:
    """Sends what a gate writes to a server, and writes what comes back.

    ``connection`` makes a transport, for each session another. ``write`` takes a line with its newline and never waits,
    ``note`` a sentence for the agent's log. ``advice`` returns what to do about a demand for a sign-in, and may block;
    ``mask`` removes secrets from the words of a failure.
    """

    def __init__(
        self,
        connection: Callable[[], Transport],
        write: Callable[[bytes], None],
        note: Callable[[str], None],
        *,
        advice: Callable[[], str] = str,
        mask: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._connection, self._transport = connection, connection()
        self._write, self._note, self._advice, self._mask = write, note, advice, mask
        self._era = ""
        self._parameters: dict[str, tuple[ParameterHeader, ...]] = {}
        """The arguments that headers repeat, by tool, of the tools that were listed."""
        self._requests: dict[RequestId, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Task[None] | None = None
        self._handshake: Request | None = None
        """The agent's ``initialize``."""
        self._reopening = asyncio.Lock()
        self._over = asyncio.Event()
        self.lost: Exception | None = None
        """Why the session ended by itself."""

    async def run(self, lines: asyncio.StreamReader) -> None:
        """Serve until the lines end and all requests are answered, or until the session is lost."""
        reading = asyncio.create_task(self._read(lines), name="read the agent")
        ending = asyncio.create_task(self._over.wait(), name="end of the session")
        try:
            await self._transport.open(self)
            await asyncio.wait((reading, ending), return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
        except McphostError as error:
            self.closed(error)
        finally:
            left = [reading, ending, *self._requests.values(), *self._others]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await self._transport.aclose()

    # `mcphost.transports.base.Inbound`.

    def message(self, message: Request | Notification) -> None:
        self._say(message)

    def malformed(self, problem: Malformed) -> None:
        self._note(f"the server sent something that was not passed on: {self._mask(problem.reason)}")
        if problem.asks is not None and self._era == "legacy":
            refusal = Response(problem.asks, error=ErrorObject(problem.code, problem.reason))
            self._start(self._send(refusal))

    def unmatched(self, response: Response) -> None:
        self._note("the server answered a request that it did not get, or had answered; the answer was not passed on")

    def stderr(self, text: str) -> None:
        return  # a server at an address has none

    def authorization_changed(self) -> None:
        return  # the headers are those of the command line

    def closed(self, reason: Exception) -> None:
        """End the session, which cannot go on."""
        if not self._over.is_set():
            self.lost = reason
            self._note(f"the connection to the server ended: {self._mask(str(reason))}")
            self._over.set()

    # From the agent.

    async def _read(self, lines: asyncio.StreamReader) -> None:
        try:
            while line := await lines.readline():
                messages = await in_turns(decode_in_steps(line, batch_items=BATCH_ITEMS))
                for message in messages:
                    if not isinstance(message, Malformed):
                        await self._take(message)
                if any(isinstance(each, Malformed) for each in messages):
                    self._refuse(line)
        except ValueError:
            raise ConnectionLost(f"a message of the agent is longer than {LINE_BYTES} bytes") from None
        for request_id, task in self._requests.items():
            if task.get_name() == LISTEN:
                self._requests[request_id].cancel()
        await asyncio.gather(*self._requests.values(), return_exceptions=True)

    async def _take(self, message: Message) -> None:
        match message:
            case Request() if len(self._requests) >= MOST_REQUESTS:
                words = "Too many requests have no answer."
                self._say(Response(message.id, error=ErrorObject(ErrorCode.INTERNAL_ERROR, words)))
            case Request():
                task = asyncio.create_task(self._answer(message), name=message.method)
                self._requests[message.id] = task
                task.add_done_callback(lambda _: self._forget(message.id, task))
                if message.method == "initialize":  # all that follows carries the session and the revision it brings
                    await asyncio.wait((task,))
            case Notification(method) if method == CANCELLED:
                self._cancel(message)
            case Notification() | Response():
                await self._send(message)
                if getattr(message, "method", "") == "notifications/initialized" and self._listening is None:
                    self._listening = self._start(self._listen())

    def _forget(self, request_id: RequestId, task: asyncio.Task[None]) -> None:
        if self._requests.get(request_id) is task:
            del self._requests[request_id]

    def _refuse(self, line: bytes) -> None:
        """Answer the requests that HTTP cannot carry although a pipe could, such as those with a fraction as id."""
        self._note("the agent wrote a message that was not passed on: it breaks JSON-RPC")
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
            for each in value if isinstance(value, list) else [value]:
                (problem,) = decode(encode_line(each))
                if isinstance(problem, Malformed) and "method" in each and (given := id_of(each.get("id"))) is not None:
                    self._write(encode_line(failure(given, ErrorCode.INVALID_REQUEST, problem.reason)))

    def _cancel(self, message: Notification) -> None:
        cancelled = as_dict(message.params).get("requestId")
        task = self._requests.get(cancelled) if isinstance(cancelled, int | str) else None
        if task is not None:
            task.cancel()
        if self._era != "modern" or not self._transport.own_stream:  # else the end of the stream says it
            self._start(self._send(message))

    async def _send(self, message: Notification | Response, *, again: bool = True) -> None:
        transport = self._transport
        try:
            await transport.send(message)
        except SessionExpired as gone:
            if again and await self._is_reopened(transport, gone):
                await self._send(message, again=False)
        except McphostError as error:
            self._note(f"the server did not take a message: {self._words(error)}")

    async def _answer(self, request: Request, *, again: bool = True) -> None:
        """Send a request, and write its answer."""
        transport = self._transport
        try:
            response = self._read_answer(request, await transport.request(request, self._headers(request)))
        except SessionExpired as gone:
            if again and await self._is_reopened(transport, gone):
                await self._answer_again(request)
                return
            response = Response(request.id, error=self._failure(request, gone))
        except McphostError as error:
            response = Response(request.id, error=self._failure(request, error))
        self._say(Response(request.id, response.result, response.error))

    async def _answer_again(self, request: Request) -> None:
        """Send a request to the new session, unless it is a call: that was allowed as the server listed its tools."""
        if request.method == "tools/call":
            self._write(encode_line(refusal(request.id, FORGOTTEN, modern=False)))
        else:
            await self._answer(request, again=False)

    async def _is_reopened(self, transport: Transport, gone: SessionExpired) -> bool:
        """Open another session in place of the one that the server forgot; False if that ended the connection."""
        async with self._reopening:
            if self._transport is not transport:
                return True
            if self._handshake is None or self._over.is_set():
                self.closed(gone)
                return False
            new = self._connection()
            try:
                await new.open(self)
                result = (await new.request(self._handshake, {})).result
                if result is None:
                    raise gone
                new.agreed(_revision_of(result))
                await new.send(Notification("notifications/initialized"))
            except McphostError:
                await new.aclose()
                self.closed(gone)
                return False
            self._transport = new
        self._note("the server had forgotten the session; it was opened again")
        self._start(transport.aclose())
        if self._listening is not None:
            self._listening.cancel()
            self._listening = self._start(self._listen())
        self._say(Notification("notifications/tools/list_changed"))  # it may be another version
        return True

    def _headers(self, request: Request) -> Mapping[str, str]:
        """The headers that the request's revision demands. Raises InvalidArguments."""
        version = as_text(as_dict(as_dict(request.params).get("_meta")).get(f"{META_PREFIX}protocolVersion"))
        if not version or self._era == "legacy" or request.method == "initialize":
            return {}
        if request.method != "server/discover":  # an older server may refuse that, and another era begin
            self._agree_modern(version)
        try:
            headers = modern_headers(request, version, self._parameters)
        except ValueError:  # lone surrogates
            raise InvalidArguments([("name", "no header can repeat it")]) from None
        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            raise InvalidArguments([("method", "no header can repeat it")])
        return headers

    def _agree_modern(self, version: str) -> None:
        if self._era != "modern":
            self._era = "modern"
            self._transport.agreed(find_revision(version) or NEWEST_MODERN)

    def _read_answer(self, request: Request, response: Response) -> Response:
        result = response.result
        if result is None:
            return self._as_refused(request, response)
        if request.method == "initialize":
            self._era = "legacy"
            self._transport.agreed(_revision_of(result))
            self._handshake = request
        elif request.method == "server/discover" and self._era != "legacy":
            self._agree_modern(NEWEST_MODERN.version)
        elif request.method == "tools/list" and self._era == "modern" and self._transport.own_stream:
            return Response(response.id, {**result, "tools": self._callable(dicts_in(result.get("tools")))})
        return response

    def _as_refused(self, request: Request, response: Response) -> Response:
        """An error; one that refuses the probe of a newer agent says so in the way that agents expect of a program."""
        error = response.error
        if request.method != "server/discover" or error is None or error.code in _MODERN_ERRORS:
            return response
        return Response(response.id, error=ErrorObject(ErrorCode.METHOD_NOT_FOUND, error.message))

    def _callable(self, tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The tools that may be called over HTTP: those whose annotations of headers are right."""
        kept = []
        for tool in tools:
            name = as_text(tool.get("name"))
            try:
                headers = read_annotations(tool.get("inputSchema"))
            except InvalidAnnotation as invalid:
                self._note(f"the server's tool {name[:100]!a} cannot be called over HTTP: {invalid}")
                continue
            self._parameters[name] = headers
            kept.append(tool)
        return kept

    def _failure(self, request: Request, error: McphostError) -> ErrorObject:
        words = self._words(error)
        if isinstance(error, InvalidArguments):
            return ErrorObject(ErrorCode.INVALID_PARAMS, words)
        if request.method == "server/discover" and isinstance(error, HttpStatusError):
            return ErrorObject(ErrorCode.METHOD_NOT_FOUND, words)
        self._note(f"the server did not answer {request.method[:100]!a}: {words}")
        return ErrorObject(ErrorCode.INTERNAL_ERROR, words)

    def _words(self, error: McphostError) -> str:
        words = self._mask(str(error))
        return f"{words}; {self._advice()}" if isinstance(error, AuthorizationRequired) else words

    # To the agent.

    def _say(self, message: Message) -> None:
        self._write(encode(message) + b"\n")

    async def _listen(self) -> None:
        """Keep the stream open on which the server says what answers no request."""
        transport = self._transport
        for _ in range(LISTENS):
            try:
                await transport.listen()
                return
            except SessionExpired as gone:
                await self._is_reopened(transport, gone)
                return
            except McphostError as error:
                self._note(f"the stream for what the server says unasked has ended: {self._words(error)}")
                if not isinstance(error, ConnectionLost):
                    return

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        """Run work of its own beside the requests; what a flood wants is left out."""
        if len(self._others) >= MOST_REQUESTS:
            work.close()
            return None
        task = asyncio.create_task(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)
        return task


def _revision_of(result: Mapping[str, Any]) -> Revision:
    """The revision of a handshake."""
    return find_revision(result.get("protocolVersion")) or NEWEST_HANDSHAKE
