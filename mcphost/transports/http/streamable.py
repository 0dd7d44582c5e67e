"""Streamable HTTP: each message is its own POST, each response a JSON body or an event stream.

A broken stream is resumed, but nothing is ever sent twice, and no new session is opened: the caller decides that.

Specification: basic/transports, Streamable HTTP, of 2025-03-26 to 2026-07-28. Since 2026-07-28 there are no sessions,
and no stream is resumed: a broken one is a lost request.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final

import httpx

from mcphost.errors import (
    ConnectionLost,
    HttpStatusError,
    InvalidResult,
    McphostError,
    MessageTooLarge,
    SessionExpired,
    TransportError,
)
from mcphost.protocol.display import size_text
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.wire.jsonrpc import Notification, Request, Response, encode
from mcphost.transports.base import Inbound, MessageObserver, ProcessReport, TransportLimits
from mcphost.transports.http import responses
from mcphost.transports.http.endpoint import FAILURES, POST, PhaseTimeouts, ServerEndpoint
from mcphost.transports.http.responses import MessageReader
from mcphost.transports.http.resumption import ResumableStream
from mcphost.transports.response_picker import ResponsePicker

UNREACHED: Final = 2
"""Failed connections in a row after which the GET stream is given up; the caller then checks the server."""

LINGER: Final = 0.25
"""Seconds a stream may take to end after its response, so that its connection can be reused."""

GARBLED: Final = 5.0
"""Seconds to wait for another message after a broken one that can only have been the response."""

SESSION_CHECK: Final = 5.0
"""Seconds for the ping that shows whether an error is about the session."""


class HttpTransport:
    """A `Transport` over Streamable HTTP. It never calls ``inbound.closed``: only requests fail."""

    own_stream = True
    handshake_only = False

    def __init__(
        self,
        url: str,
        limits: TransportLimits,
        *,
        headers: Mapping[str, str] | None = None,
        auth: httpx.Auth | None = None,
        timeouts: PhaseTimeouts | None = None,
        observer: MessageObserver | None = None,
    ) -> None:
        self.limits = limits
        self._incoming = MessageReader(limits, observer)
        self._endpoint = ServerEndpoint(
            url, self._incoming, headers=headers, auth=auth, timeouts=timeouts, observer=observer
        )
        self._inbound: Inbound | None = None
        self._agreed = False
        self._background: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None

    async def open(self, inbound: Inbound) -> None:
        """Create the client; the first request connects. Raises ConnectionLost for an unusable URL."""
        self._inbound = inbound
        self._endpoint.open(inbound.authorization_changed)

    def agreed(self, revision: Revision) -> None:
        self._agreed = True
        if revision.modern:
            self._endpoint.drop_session()  # of an initialize that the answer to server/discover overtook
        self._endpoint.version = revision.version
        self._incoming.agreed(revision)

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        """Send, and return the response. Cancelling the await closes its stream.

        Raises ConnectionLost, HttpStatusError, SessionExpired, AuthorizationRequired, InvalidResult, MessageTooLarge.
        """
        response = await self._exchange(request, headers)
        if self._endpoint.may_have_lost_session(response.error) and not await self._session_lives():
            assert response.error is not None
            raise self._endpoint.session_expired(response.error.message, 200, refused=True)
        return response

    async def _session_lives(self) -> bool:
        """Ask with a ping: an error that names a session may be about something else of that name."""
        try:
            async with asyncio.timeout(SESSION_CHECK):
                answer = await self._exchange(Request("session", "ping"), {})
        except SessionExpired:
            return False
        except (TimeoutError, McphostError):
            return True
        return not self._endpoint.may_have_lost_session(answer.error)

    async def _exchange(self, request: Request, headers: Mapping[str, str]) -> Response:
        answer = ResponsePicker(request.id, self._required_inbound())
        tags = self._endpoint.tags() if self._agreed else {}
        response = await self._endpoint.exchange("POST", {**headers, **POST, **tags}, encode(request))
        if response.status_code == 200 and responses.media_type(response) == responses.EVENTS:
            await self._answer_from_stream(request, response, answer, resumes=not headers)
            return answer.response()
        async with aclosing(response):
            if not response.is_success:
                return await self._endpoint.refusal(response, request)
            await self._answer_from_body(request, response, answer)
        return answer.response()

    async def send(self, message: Notification | Response) -> None:
        await self._endpoint.post(encode(message), self._endpoint.tags(), seconds=self._endpoint.timeouts.headers)

    async def listen(self) -> None:
        """Read the GET stream, over as many connections as it takes; return if the server offers none.

        A response on it completes no request: servers must not send one there. Raises a TransportError if the stream
        was lost for good, ConnectionLost if the server is unreachable, InvalidResult if it cannot be read.
        """
        picker = ResponsePicker(None, self._required_inbound())
        stream = ResumableStream(self._incoming, picker.take)
        try:
            response = await self._first_stream(stream)
            while response is not None:
                await self._read(response, stream, picker)
                response = await self._resumed(stream, UNREACHED)
        except HttpStatusError as error:
            if error.status != 405:
                raise

    async def aclose(self) -> None:
        """Fail pending requests, close every stream, and end the session within two seconds."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._end(), name="close HTTP session")
        await asyncio.shield(self._closing)

    def report(self) -> ProcessReport:
        return ProcessReport()

    async def _end(self) -> None:
        for task in self._background:
            task.cancel()
        await self._endpoint.aclose()

    def _required_inbound(self) -> Inbound:
        if self._inbound is None:
            raise ConnectionLost("the connection is not open")
        return self._inbound

    # Responses.

    def _begin_session(self, request: Request, response: httpx.Response) -> None:
        if request.method == "initialize" and not self._agreed:
            self._endpoint.start_session(response)

    async def _answer_from_body(self, request: Request, response: httpx.Response, answer: ResponsePicker) -> None:
        if response.status_code != 200 or responses.media_type(response) != responses.JSON:
            reason = "the server took the request and will not answer it" if response.status_code != 200 else ""
            raise await self._endpoint.unexpected(response, reason=reason)
        self._begin_session(request, response)
        try:
            body = await responses.read_body(response, self.limits.message_bytes)
        except FAILURES as error:
            raise self._endpoint.lost(error) from None
        answer.take_body(await self._incoming.messages(body))

    async def _answer_from_stream(
        self, request: Request, response: httpx.Response, answer: ResponsePicker, *, resumes: bool
    ) -> None:
        stream = ResumableStream(self._incoming, answer.take)
        try:
            self._begin_session(request, response)
        except InvalidResult:
            await response.aclose()
            raise
        while True:
            broken = await self._read(response, stream, answer)
            if answer.done:
                return
            if not (resumes and stream.last_id):
                ended = "the server ended the answer's stream before the answer"
                why = answer.mismatch or stream.ignored
                raise broken or ConnectionLost(f"{ended}: {why}" if why else ended)
            response = await self._resumed(stream)

    async def _read(
        self, response: httpx.Response, stream: ResumableStream, answer: ResponsePicker
    ) -> TransportError | None:
        """Read one connection of a stream until the response arrives or it ends; return what broke it, if anything."""
        pieces = responses.chunks(response)
        clock = asyncio.get_running_loop().time

        def enough() -> bool:
            if answer.garbled is None:
                timer.reschedule(None)
            elif timer.when() is None:
                timer.reschedule(clock() + GARBLED)
            return answer.done or (stream.overlong and answer.pending)

        try:
            async with asyncio.timeout(GARBLED if answer.garbled else None) as timer:
                await stream.read(pieces, enough)
        except FAILURES as error:
            return self._endpoint.lost(error)
        except TimeoutError:
            assert answer.garbled is not None
            answer.fail(answer.garbled)
        finally:
            if answer.done:
                self._let_go(response, pieces)
            else:
                await response.aclose()
        if stream.overlong and answer.pending:
            limit = self.limits.message_bytes
            sent = f"an event over the limit of {size_text(limit)}"
            answer.fail(MessageTooLarge(f"the server sent {sent}, perhaps this answer", limit))
        return None

    def _let_go(self, response: httpx.Response, pieces: AsyncGenerator[bytes, None]) -> None:
        """Give the stream a moment to end by itself, so that its connection can be reused."""
        task = asyncio.create_task(_end_soon(response, pieces), name="end of an answered stream")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # Resumption.

    async def _first_stream(self, stream: ResumableStream) -> httpx.Response | None:
        try:
            return await self._get(stream)
        except SessionExpired:
            return None  # many servers answer 404 instead of 405; an expired session shows at the next request
        except ConnectionLost:
            stream.failed()
            return await self._resumed(stream, UNREACHED - 1)
        except HttpStatusError as error:
            if not _is_transient(error):
                raise
            stream.failed()
            return await self._resumed(stream, UNREACHED)

    async def _resumed(self, stream: ResumableStream, unreached: int | None = None) -> httpx.Response:
        """Reconnect a stream after its delay. Raises TransportError if it cannot be resumed.

        Raises ConnectionLost after ``unreached`` connections in a row without any response.
        """
        failed = 0
        while not stream.exhausted:
            await self._endpoint.pause(stream.wait())
            try:
                return await self._get(stream)
            except ConnectionLost:
                stream.failed()
                failed += 1
                if failed == unreached:
                    raise
            except HttpStatusError as error:
                if not _is_transient(error):
                    raise
                stream.failed()
        raise ConnectionLost(f"the server's event stream broke off too many times in a row ({stream.describe()})")

    async def _get(self, stream: ResumableStream) -> httpx.Response:
        place = {"Last-Event-ID": stream.last_id.encode()} if stream.last_id else {}
        return await self._endpoint.get_stream({**self._endpoint.tags(), **place}, about=stream.describe())


def _is_transient(error: HttpStatusError) -> bool:
    """True if the stream may be available later. 501 is permanent: the server does not support GET."""
    return not error.lasting and error.status != 501


async def _end_soon(response: httpx.Response, pieces: AsyncGenerator[bytes, None]) -> None:
    async with aclosing(response):
        with contextlib.suppress(TimeoutError, InvalidResult, *FAILURES):
            async with asyncio.timeout(LINGER):
                async for _ in pieces:
                    pass
