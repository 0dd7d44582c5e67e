"""`Client`: the session with one server, and the requests for tools.

Specification: basic/lifecycle, basic/utilities, server/tools, server/utilities/logging.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.cache import READ, CachedResult, ResultCache
from mcphost.client.deadlines import Deadline, Deadlines, TimeBudget
from mcphost.client.notifications import NotificationObserver, Notifications
from mcphost.client.opening import Declare, Identity, SessionOpening
from mcphost.client.paging import ListedItems, ListLimits, read_list
from mcphost.client.refused_requests import with_what_was_sent
from mcphost.client.requests import Item, ProgressCallback, RequestIds, Requests, RequestTimeouts, Session
from mcphost.client.rounds import (
    InputRound,
    RoundCallback,
    RoundLimits,
    answer_inputs,
    answer_rounds,
    check_round,
)
from mcphost.client.server_requests import (
    InputHandler,
    InputPurpose,
    NothingOffered,
    OnlyDeclared,
    ServerRequestQueue,
)
from mcphost.client.subscriptions import LIST_KINDS, SubscriptionListener
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
from mcphost.protocol.lifecycle.results import Complete, InputRequired, ServerInput, TaskStarted
from mcphost.protocol.lifecycle.revisions import HANDSHAKE_REVISIONS, Revision
from mcphost.protocol.lifecycle.session import ClientMetadata, HandshakeRules, ModernRules, SessionRules
from mcphost.protocol.limits import PENDING_SERVER_REQUESTS
from mcphost.protocol.models.content import TextContent
from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.models.initialization import InitializeResult
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tools import CallToolResult, Tool
from mcphost.protocol.wire.headers import InvalidAnnotation, ParameterHeader, read_annotations
from mcphost.protocol.wire.jsonrpc import (
    ErrorCode,
    Malformed,
    Notification,
    Request,
    RequestId,
    Response,
    encode,
    shown_id,
)
from mcphost.transports.base import Transport

if TYPE_CHECKING:  # imported at their first use: few runs need all of them
    from mcphost.client.completion import Completions
    from mcphost.client.prompts import Prompts
    from mcphost.client.resources import Resources

__all__ = ["Client", "Identity", "ProgressCallback", "RequestTimeouts", "Session"]

MOST_LISTENS: Final = 3
"""How often `Transport.listen` is called in one session while the server is reachable."""

MOST_REMARKS: Final = 100
"""Different remarks on one server: one that breaks the specification in more ways fills no log."""

NOTE_LENGTH: Final = 300
"""Characters of a note, which may quote text of any length from the server."""


class Client:
    """A connection to one server over ``transport``.

    Call ``connect`` first and ``aclose`` last. In between, any number of requests may run at once: those for tools are
    methods of this class, the others of ``resources``, ``prompts``, ``completions`` and ``tasks``.
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
        list_limits: ListLimits | None = None,
        round_limits: RoundLimits | None = None,
        pending_inputs: int = PENDING_SERVER_REQUESTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._observer = observer
        self._identity = identity
        self._capabilities = capabilities or {}
        self._era, self._minimum = era, minimum
        self.timeouts = timeouts or RequestTimeouts()
        """For requests that name none of their own."""
        self._clock = clock
        self._cache: ResultCache | None = None
        self._list_limits = list_limits or ListLimits()
        self._round_limits = round_limits or RoundLimits()
        self._declared = OnlyDeclared(handler or NothingOffered())
        self._server_requests = ServerRequestQueue(
            self._declared, transport.send, self._note, pending_inputs, self._pause_deadlines
        )
        self._ids = RequestIds()
        self._opening: SessionOpening | None = None
        self._deadlines = Deadlines()
        self._listening: asyncio.Task[None] | None = None
        self._rules: SessionRules | None = None
        self._answers_requests = False
        """May the server send requests? Not while it is asked for its revisions, and never in a modern one."""
        self.session: Session | None = None
        self.listener: SubscriptionListener | None = None
        """Listens for changes in a modern session; None in one with a handshake."""
        self.tasks = Tasks(self)
        self._notifications = Notifications(observer, self._server_requests, self.tasks, self._note)
        self._requests = Requests(
            transport, self._deadlines, self._notifications.pending, self.closed, self._note, self.remark
        )
        self._remarks: set[str] = set()

    @cached_property
    def resources(self) -> Resources:
        """Requests for resources."""
        from mcphost.client.resources import Resources

        return Resources(self)

    @cached_property
    def prompts(self) -> Prompts:
        """Requests for prompts."""
        from mcphost.client.prompts import Prompts

        return Prompts(self)

    @cached_property
    def completions(self) -> Completions:
        """Requests for completions."""
        from mcphost.client.completion import Completions

        return Completions(self)

    @property
    def open_session(self) -> Session:
        """The session. Raises ServerNotReady if it is not open."""
        if self._rules is None or self.session is None:
            raise ServerNotReady("the session is not open")
        return self.session

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
                # In the meantime the server program starts, which takes longer.
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

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
        on_round: RoundCallback | None = None,
    ) -> Mapping[str, Any]:
        """Send a request, give the input that its answer needs, and return the result object.

        Raises ServerError, RequestTimeout, CapabilityMissing, MethodRemoved, InvalidArguments, InputNotGiven,
        InvalidResult or ConnectionLost. Cancelling the await cancels the request at the server.
        """
        read = await self.exchange(method, params, timeouts=timeouts, on_progress=on_progress, on_round=on_round)
        if isinstance(read, TaskStarted):
            raise InvalidResult(f"the server answered {method} with a task, which nobody follows here")
        return read.result

    async def exchange(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
        on_round: RoundCallback | None = None,
        budget: TimeBudget | None = None,
    ) -> Complete | TaskStarted:
        """As `request`, for methods that a task may answer.

        ``timeouts.hard`` bounds all rounds together. What they took is subtracted from ``budget``; time spent answering
        the server is not.
        """
        rules, limits = self._rules, timeouts or self.timeouts
        if rules is None:
            raise ServerNotReady("the session is not open")
        clock = asyncio.get_running_loop().time
        budget = budget or TimeBudget(method, limits.hard)

        async def send(given: Mapping[str, Any] | None) -> Complete | InputRequired | TaskStarted:
            request = rules.request(next(self._ids), method, given, progress=on_progress is not None)
            began = clock()
            try:
                result = await self._requests.send(
                    request, rules, RequestTimeouts(limits.idle, budget.left), on_progress
                )
            except ServerError as error:
                raise with_what_was_sent(error, request, rules) from None
            except RequestTimeout as error:
                if error.hard:  # what was left of the limit is not the limit
                    raise RequestTimeout(method, limits.hard, hard=True, instead=error.instead) from None
                raise
            budget.left -= clock() - began
            return rules.read(method, result)

        read = await send(params)
        if isinstance(read, InputRequired):
            report = on_round or _ignore
            return await answer_rounds(
                send, self._declared, method, params or {}, read, self._round_limits, report, budget
            )
        return read

    async def fetch(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        again: bool = False,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> CachedResult:
        """As `request`, for a list or a resource: what is kept and fresh is not fetched, unless ``again``.

        Where a resource cannot be fetched because the server fails, a stale result stands in.
        """
        cache = self._cache
        if cache is None:
            result = await self.request(method, params or None, timeouts=timeouts, on_progress=on_progress)
            return CachedResult(result, Freshness(self._clock()))
        self._declare(self.open_session.revision)  # what is declared may have changed, and with it the answer
        if not again and (kept := cache.fresh(method, params)) is not None:
            self._observer.served_from_cache(method, params, kept.freshness)
            return kept
        fetch = cache.begin(method, params)

        async def needs_input(_: InputRound) -> None:
            fetch.outdated = True  # the answer is one to this attempt alone

        try:
            result = await self.request(
                method, params, timeouts=timeouts, on_progress=on_progress, on_round=needs_input
            )
            return CachedResult(result, cache.keep(fetch, result))
        except McphostError as error:
            kept = cache.stale(method, params, str(error)) if method == READ and _server_fails(error) else None
            if kept is None:
                raise
            self._observer.served_from_cache(method, params, kept.freshness)
            return kept
        finally:
            cache.drop(fetch)

    def forget_fetched(self) -> None:
        """Forget all that is kept, and report all lists as changed: who asks, or what is declared, is different."""
        if self._cache is not None:
            self._cache.clear()
        for kind in LIST_KINDS:
            if self.session is not None and kind in self.session.server.capabilities:
                self._observer.list_changed(kind)

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
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
        on_round: RoundCallback | None = None,
    ) -> CallToolResult:
        """Call a tool. Raises as `request` does; a failure that the tool reports is a result."""
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        report = on_progress or _ignore_progress
        result = await self.request("tools/call", params, timeouts=timeouts, on_progress=report, on_round=on_round)
        return self.tool_result(result)

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
        self._rules = None
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait((self._listening,))
        await self._server_requests.aclose()
        await self._requests.drain()
        await self._transport.aclose()
        self._deadlines.close()

    # What `resources`, `prompts`, `completions` and `tasks` need.

    async def read_list(
        self, method: str, key: str, read: Callable[[object], Item], *, again: bool = False
    ) -> ListedItems[Item]:
        """Read every page of a list; ``again``: none from the cache.

        Raises as `request` does if the first page fails.
        """
        freshness: Freshness | None = None

        async def fetch(cursor: str | None) -> Mapping[str, Any]:
            nonlocal freshness
            if cursor is None:
                freshness = None
            page = await self.fetch(method, {} if cursor is None else {"cursor": cursor}, again=again)
            freshness = page.freshness if freshness is None else freshness | page.freshness
            return page.result

        def restart() -> None:
            if self._cache is not None:
                self._cache.discard(method)

        listed = await read_list(fetch, key, read, self._list_limits, asyncio.get_running_loop().time, restart)
        listed.freshness = freshness
        for remark, names in listed.remarks.items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            self.remark(f"{method}: {f'{names[0]}{more}: ' if names else ''}{remark}")
        return listed

    def tool_result(self, result: Mapping[str, Any]) -> CallToolResult:
        """Parse the result of a tool call, with remarks on it for the log. Raises InvalidResult."""
        modern = self.session is not None and self.session.revision.modern
        read = CallToolResult.read(result, null_is_value=modern)
        self.remark(*(f"tools/call: {remark}" for remark in read.remarks))
        return read

    def remark(self, *texts: str) -> None:
        """Log how the server breaks the specification, although it was understood: each text once."""
        for text in texts:
            if text not in self._remarks and len(self._remarks) < MOST_REMARKS:
                self._remarks.add(text)
                self._observer.remarked(_shortened(text))

    @contextmanager
    def progress_observed(self, token: RequestId, report: ProgressCallback) -> Iterator[None]:
        """Pass progress with ``token`` to ``report`` inside the block, also when no request with it is pending."""
        self._notifications.token_observers[token] = report
        try:
            yield
        finally:
            del self._notifications.token_observers[token]

    @property
    def declared(self) -> Mapping[str, Any]:
        """The client capabilities that were declared last."""
        return self._declared.capabilities

    def check_round(self, current: InputRound) -> None:
        """Raise InvalidResult if a task needs more in this round than it may."""
        check_round(current.needed, current.number, self._round_limits)

    def answer_inputs(
        self, inputs: Mapping[str, ServerInput], purpose: InputPurpose
    ) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """The answers to what a task needs, by their keys, as they come. Raises InputNotGiven if one is refused."""
        return answer_inputs(inputs, self._declared, purpose)

    def within(self, seconds: float) -> Deadline:
        """A deadline that raises TimeoutError inside its block. Time spent answering the server does not count."""
        return Deadline(self._deadlines, seconds, seconds, pausable=True)

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work``, which must not raise, as a background task. `aclose` waits for it for a moment."""
        self._requests.in_background(work)

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
            self._requests.mismatched(words)
        self._observer.malformed(problem)

    def unmatched(self, response: Response) -> None:
        if response.id is None and response.error is not None:
            self._note(f"the server reported an error to no request: {response.error.message}")
            words = f"the server answered with an error to no request: {response.error.message[:NOTE_LENGTH]}"
        elif response.id in self._ids:
            self._note(f"dropped an answer nobody waits for (id {response.id!r})")
            return
        else:
            words = f"an answer came with the id {shown_id(response.id)}, which no request has"
            self._observer.malformed(Malformed(words, encode(response)))
        if self._opening is not None:
            self._opening.unusable.mismatched(f"{words}; the request had {shown_id(self._ids.latest)}")
        self._requests.mismatched(words)

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
            self._requests.ended = self._requests.ended or reason
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

    def _declare(self, offer: Revision) -> Mapping[str, Any]:
        # The capabilities declared last apply, whichever revision is negotiated.
        given = self._capabilities
        before, declared = self._declared.capabilities, given(offer) if callable(given) else given
        self._declared.capabilities = declared
        if self._cache is not None and declared != before:
            self.forget_fetched()
        return declared

    def _pause_deadlines(self) -> AbstractContextManager[None]:
        """Stop the clocks of requests that wait for a person's or a model's answer."""
        return self._deadlines.paused()

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

    def _note(self, text: str) -> None:
        self._observer.noted(_shortened(text))


def _shortened(text: str) -> str:
    return text if len(text) <= NOTE_LENGTH else f"{text[:NOTE_LENGTH]} ..."


def _server_fails(error: McphostError) -> bool:
    """Does the error say that the server cannot answer at the moment, rather than what its answer is?"""
    broken = isinstance(error, ServerError) and error.code == ErrorCode.INTERNAL_ERROR
    return broken or isinstance(error, RequestTimeout | ConnectionLost)


def _ignore_progress(_: Progress) -> None:
    return


async def _ignore(_: InputRound) -> None:
    return
