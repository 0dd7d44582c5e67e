"""`Client`: the session with one server: opens it, calls its tools, and takes what it sends.

Specification: basic/lifecycle, basic/utilities, server/tools, server/utilities/logging.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.cache import ResultCache
from mcphost.client.notifications import Notifications
from mcphost.client.observer import NotificationObserver
from mcphost.client.paging import ListedItems
from mcphost.client.requester import NOTE_LENGTH, ClientLimits, Requester
from mcphost.client.requests import ProgressCallback, RequestTimeouts, Session
from mcphost.client.rounds import RoundCallback
from mcphost.client.server_requests import InputHandler, ServerRequestQueue
from mcphost.client.session_opening import Declare, Identity, SessionOpening
from mcphost.client.subscriptions import SubscriptionListener
from mcphost.client.tasks import Tasks
from mcphost.errors import (
    CapabilityMissing,
    ConnectionClosed,
    ConnectionLost,
    HttpStatusError,
    InvalidResult,
    McphostError,
    RequestTimeout,
    ServerError,
    ServerNotReady,
    SessionExpired,
)
from mcphost.protocol.lifecycle.negotiation import Agreed, Era, negotiate, no_handshake
from mcphost.protocol.lifecycle.revisions import HANDSHAKE_REVISIONS, Revision
from mcphost.protocol.lifecycle.session import ClientMetadata, HandshakeRules, ModernRules
from mcphost.protocol.models.content import TextContent
from mcphost.protocol.models.initialization import InitializeResult
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tools import CallToolResult, Tool
from mcphost.protocol.wire.headers import InvalidAnnotation, ParameterHeader, read_annotations
from mcphost.protocol.wire.jsonrpc import Malformed, Notification, Request, Response, encode, shown_id
from mcphost.transports.base import Transport

if TYPE_CHECKING:  # imported at its first use: a tool call needs none of its models
    from mcphost.client.features import Completions, Prompts, Resources
    from mcphost.client.skills import Skills

__all__ = ["Client", "Identity", "ProgressCallback", "RequestTimeouts", "Session"]

MOST_LISTENS: Final = 3
"""Calls of `Transport.listen` in one session while the server is reachable."""


class Client(Requester):
    """A connection to one server over ``transport``.

    Call ``connect`` first and ``aclose`` last. In between, any number of requests may run at once: those for tools are
    methods of this class, the others of ``resources``, ``prompts``, ``completions``, ``skills`` and ``tasks``.
    """

    def __init__(
        self,
        transport: Transport,
        observer: NotificationObserver,
        identity: Identity,
        *,
        capabilities: Mapping[str, Any] | Declare | None = None,
        handler: InputHandler | None = None,
        era: Era = "legacy",
        minimum: Revision = HANDSHAKE_REVISIONS[0],
        timeouts: RequestTimeouts | None = None,
        limits: ClientLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            transport,
            observer,
            self.closed,
            capabilities=capabilities,
            handler=handler,
            timeouts=timeouts,
            limits=limits,
            clock=clock,
        )
        self._identity = identity
        self._era, self._minimum = era, minimum
        self._server_requests = ServerRequestQueue(
            self._declared, transport.send, self._note, self._limits.pending_requests, self._deadlines.paused
        )
        self._opening: SessionOpening | None = None
        self._listening: asyncio.Task[None] | None = None
        self._answers_requests = False
        """True while the server may send requests: not before ``initialize`` is sent, and never in a modern session."""
        self.tasks = Tasks(self)
        self._notifications = Notifications(observer, self._server_requests, self.requests, self.tasks, self._note)

    @cached_property
    def resources(self) -> Resources:
        from mcphost.client.features import Resources

        return Resources(self)

    @cached_property
    def prompts(self) -> Prompts:
        from mcphost.client.features import Prompts

        return Prompts(self)

    @cached_property
    def completions(self) -> Completions:
        from mcphost.client.features import Completions

        return Completions(self)

    @cached_property
    def skills(self) -> Skills:
        from mcphost.client.skills import Skills

        return Skills(self)

    async def connect(self, seconds: float) -> Session:
        """Open the transport and the session within ``seconds``.

        Raises SpawnFailed, ConnectionLost, ProbeFailed, RequestTimeout, VersionRefused, NoSharedRevision, InvalidResult
        (NoAnswerFound) or ServerError. Call ``aclose`` even then.
        """
        opening = self._opening = SessionOpening(
            self._transport,
            self._ids,
            self._identity,
            self._declare,
            seconds,
            self._handshake_begins,
            only_modern=no_handshake(self._era, self._minimum),
        )
        try:
            async with asyncio.timeout(seconds):
                await self._transport.open(self)
                # Models are built at their first use, which takes some milliseconds each. Here it costs no time, since
                # the server program is still starting; every tool call needs these three.
                for model in (InitializeResult, Tool, TextContent):
                    model.model_rebuild()
                session = await self._open_session(opening)
        except TimeoutError:
            raise opening.timed_out() from None
        finally:
            self._opening = None
        if opening.lost is not None:
            raise opening.lost
        self.session = session
        self._notifications.offered = session.server.capabilities
        if self.listener is None:
            self._listening = asyncio.create_task(self._listen(), name="listen to the server")
        else:
            self._listening = asyncio.create_task(self.listener.run(), name="listen for changes")
            await self.listener.first_acknowledgement()
        return session

    async def ping(self, seconds: float = 10.0) -> None:
        """Ask for a sign of life; an error response is one. Raises RequestTimeout or ConnectionLost."""
        method = "server/discover" if self.open_session.revision.modern else "ping"
        try:
            await self.request(method, timeouts=RequestTimeouts(seconds, seconds))
        except ServerError:
            return

    async def list_tools(self, *, again: bool = False) -> ListedItems[Tool]:
        """List all tools, page by page; ``again``: from the server, not from the cache.

        Raises as `request` does if the first page fails.

        A modern server over HTTP loses the tools whose ``x-mcp-header`` annotations break the rules.
        """
        rules = self._rules
        if not isinstance(rules, ModernRules) or not rules.own_stream:
            return await self.read_list("tools/list", "tools", Tool.read, again=again)
        headers: dict[str, tuple[ParameterHeader, ...]] = {}

        def read(item: object) -> Tool:
            tool = Tool.read(item)
            try:
                headers[tool.name] = read_annotations(tool.input_schema)
            except InvalidAnnotation as invalid:
                raise InvalidResult(f"{invalid}, so that it cannot be called over HTTP") from None
            return tool

        listed = await self.read_list("tools/list", "tools", read, again=again)
        rules.parameter_headers = {name: found for name, found in headers.items() if found}
        return listed

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
        on_round: RoundCallback | None = None,
    ) -> CallToolResult:
        """Call a tool. Raises as `request` does; a failure that the tool reports is a result."""
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        if meta:
            params["_meta"] = meta
        report = on_progress or _ignore_progress
        result = await self.request("tools/call", params, timeouts=timeouts, on_progress=report, on_round=on_round)
        return self.tool_result(result)

    def written(self, method: str, params: Mapping[str, Any]) -> tuple[Request, Mapping[str, str]]:
        """A request as it would be sent now, with its HTTP headers; nothing is sent.

        Raises ServerNotReady, or as the rules of the session do.
        """
        if self._rules is None:
            raise ServerNotReady("the session is not open")
        request = self._rules.request(1, method, params, progress=False)
        return request, self._rules.headers(request)

    async def set_log_level(self, level: LogLevel) -> None:
        """Request log messages of ``level`` and above. Raises as `request` does.

        A modern server is sent nothing now: each later request names the level.
        """
        if isinstance(self._rules, ModernRules):
            if "logging" not in self._rules.capabilities:
                raise CapabilityMissing("logging", "logging")
            self._rules.client.log_level = level.wire
            return
        await self.request("logging/setLevel", {"level": level.wire})

    async def notify_roots_changed(self) -> None:
        """Notify the server of changed roots, if that capability was declared. Raises ConnectionLost."""
        roots = self._declared.capabilities.get("roots")
        if self._rules is not None and isinstance(roots, dict) and roots.get("listChanged"):
            await self._transport.send(Notification("notifications/roots/list_changed"))

    async def aclose(self) -> None:
        """End all requests in both directions, send pending cancellations, and close the transport. Never raises."""
        self._rules = None  # first, so that nothing new is sent meanwhile
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait((self._listening,))
        # Last answers and cancellations need the transport, which is closed after them.
        await self._server_requests.aclose()
        await self.requests.drain()
        await self._transport.aclose()
        self._deadlines.close()

    # `mcphost.transports.base.Inbound`.

    def message(self, message: Request | Notification) -> None:
        if self._opening is not None:
            self._opening.unusable.wrote()
        if message.remark:
            self.remark(message.remark)
        if isinstance(message, Request):
            self._take_request(message)
        else:
            self._notifications.take(message.method, message.params or {})

    def malformed(self, problem: Malformed) -> None:
        if problem.asks is not None and self._answers_requests:
            self._server_requests.refuse(problem.asks, problem.code, problem.reason)
        if self._opening is not None and not problem.is_json:
            self._opening.unusable.stray(problem.data)
        elif problem.is_json and b'"method"' not in problem.data:
            words = f"the server sent what answers no request: {problem.reason}"
            if self._opening is not None:
                self._opening.unusable.mismatched(words)
            self.requests.mismatched(words)
        self._observer.malformed(problem)

    def unmatched(self, response: Response) -> None:
        if response.id is None and response.error is not None:
            self._note(f"the server reported an error to no request: {response.error.message}")
            words = f"the server answered with an error to no request: {response.error.message[:NOTE_LENGTH]}"
        elif response.id in self._ids:
            self._note(f"dropped an answer to a request that is over (id {response.id!r})")
            return
        else:
            words = f"an answer came with the id {shown_id(response.id)}, which no request has"
            self._observer.malformed(Malformed(words, encode(response)))
        if self._opening is not None:
            self._opening.unusable.mismatched(f"{words}; the request had {shown_id(self._ids.latest)}")
        self.requests.mismatched(words)

    def stderr(self, text: str) -> None:
        if self._opening is not None:
            self._opening.unusable.wrote()
        self._observer.stderr(text)

    def authorization_changed(self) -> None:
        if self._cache is not None:  # what is kept was for whoever was authorized before
            self.forget_fetched()

    def closed(self, reason: Exception) -> None:
        """Stop answering server requests, and report that the connection ended."""
        self._server_requests.stop()
        if not isinstance(reason, ConnectionClosed):
            self.requests.ended = self.requests.ended or reason
        if self._opening is None:
            self._observer.lost(reason)
        else:
            self._opening.lost = reason

    async def _open_session(self, opening: SessionOpening) -> Session:
        clock = asyncio.get_running_loop().time
        began = clock()
        era: Era = "legacy" if self._transport.handshake_only else self._era
        agreed = await opening.negotiate(negotiate(era=era, minimum=self._minimum))
        if agreed.revision.modern:
            return self._begin_without_handshake(agreed, clock() - began)
        server = InitializeResult.read(agreed.result)
        self.remark(*(f"initialize: {remark}" for remark in server.remarks))
        self._transport.agreed(agreed.revision)
        self._server_requests.initialized = True  # the server may send requests as soon as it receives the next message
        opening.begin("notifications/initialized")
        await self._notify_initialized()
        self._rules = HandshakeRules(agreed.revision, server.capabilities)
        seconds = clock() - began
        return Session(
            agreed.revision,
            server,
            seconds,
            agreed.evidence,
            proven=agreed.proven,
            probe_seconds=opening.probe_seconds,
        )

    async def _notify_initialized(self) -> None:
        try:
            await self._transport.send(Notification("notifications/initialized"))
        except (HttpStatusError, SessionExpired) as refused:
            # Servers without a route for notifications serve requests; a session that is lost shows at the next one.
            self._note(f"the server refused notifications/initialized, which it must take: {refused}")

    def _begin_without_handshake(self, agreed: Agreed, seconds: float) -> Session:
        revision, result = agreed.revision, agreed.result
        self._answers_requests = False
        server = InitializeResult.from_discovery(revision.version, result)
        self.remark(*(f"server/discover: {remark}" for remark in server.remarks))
        self._transport.agreed(revision)
        metadata = ClientMetadata(self._identity.as_object(), lambda: self._declare(revision))
        rules = self._rules = ModernRules(revision, metadata, self._transport.own_stream, server.capabilities)
        changes = self._notifications
        self.listener = SubscriptionListener(self._transport, rules, self._ids, changes, self._note)
        changes.listener = self.listener
        self._cache = changes.cache = ResultCache(self._clock)
        versions = tuple(version for version in result["supportedVersions"] if isinstance(version, str))
        return Session(revision, server, seconds, agreed.evidence, versions)

    def _handshake_begins(self) -> None:
        self._answers_requests = True

    def _take_request(self, request: Request) -> None:
        if self._answers_requests:
            self._server_requests.take(request)
        elif self.session is not None:
            reason = f"protocol version {self.session.revision.version} lets no server send requests"
            self._observer.malformed(Malformed(reason, encode(request)))
        else:
            self._note(f"ignored {request.method}, which came before the session was open")

    async def _listen(self) -> None:
        for _ in range(MOST_LISTENS):
            try:
                await self._transport.listen()
                return
            except SessionExpired as gone:
                self.closed(gone)
                return
            except McphostError as error:
                self._note(f"the stream for what the server says unasked has ended: {error}")
                if not isinstance(error, ConnectionLost) or not await self._is_reachable():
                    return

    async def _is_reachable(self) -> bool:
        # If the server is unreachable, the failed ping has already reported that.
        try:
            await self.ping()
        except RequestTimeout:
            return True
        except McphostError:
            return False
        return True


def _ignore_progress(_: Progress) -> None:
    return
