"""`Requester`: sends the requests of one session, with the input that they need and what is cached of their results.

Specification: basic/utilities; 2026-07-28 basic/patterns/mrtr and server/utilities/caching.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import field
from typing import Any, Final

from mcphost.client.cache import READ, CachedResult, ResultCache
from mcphost.client.deadlines import Deadline, Deadlines, TimeBudget
from mcphost.client.observer import NotificationObserver
from mcphost.client.paging import Item, ListedItems, ListLimits, read_list
from mcphost.client.requests import ProgressCallback, RequestIds, Requests, RequestTimeouts, Session
from mcphost.client.rounds import InputRound, RoundCallback, RoundLimits, answer_inputs, answer_rounds, check_round
from mcphost.client.server_requests import InputHandler, InputPurpose, NothingOffered, OnlyDeclared
from mcphost.client.session_opening import Declare
from mcphost.client.subscriptions import LIST_KINDS, SubscriptionListener
from mcphost.errors import ConnectionLost, InvalidResult, McphostError, RequestTimeout, ServerError, ServerNotReady
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.results import Complete, InputRequired, ServerInput, TaskStarted
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.lifecycle.session import SessionRules
from mcphost.protocol.limits import PENDING_SERVER_REQUESTS
from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.models.tools import CallToolResult
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.transports.base import Transport

MOST_REMARKS: Final = 100
"""Different remarks on one server: one that breaks the specification in more ways fills no log."""

NOTE_LENGTH: Final = 300
"""Characters of a note, which may quote text of any length from the server."""


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits of what a server may list and ask for."""

    lists: ListLimits = field(default_factory=ListLimits)
    rounds: RoundLimits = field(default_factory=RoundLimits)
    pending_requests: int = PENDING_SERVER_REQUESTS
    """Requests of the server that may be unanswered at once."""


class Requester:
    """The sending half of a client: `mcphost.client.client.Client` opens the session and takes what arrives.

    ``lost`` is called when a request finds the connection gone.
    """

    def __init__(
        self,
        transport: Transport,
        observer: NotificationObserver,
        lost: Callable[[Exception], None],
        *,
        capabilities: Mapping[str, Any] | Declare | None = None,
        handler: InputHandler | None = None,
        timeouts: RequestTimeouts | None = None,
        limits: ClientLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._observer = observer
        self._capabilities = capabilities or {}
        self._declared = OnlyDeclared(handler or NothingOffered())
        self.timeouts = timeouts or RequestTimeouts()
        """For requests that name none of their own."""
        self._limits = limits or ClientLimits()
        self._clock = clock
        self._cache: ResultCache | None = None
        self._ids = RequestIds()
        self._deadlines = Deadlines()
        self._rules: SessionRules | None = None
        self.session: Session | None = None
        self.listener: SubscriptionListener | None = None
        """Listens for changes in a modern session; None in one with a handshake."""
        self.requests = Requests(transport, self._deadlines, lost, self._note, self.remark)
        self._remarks: set[str] = set()

    @property
    def open_session(self) -> Session:
        """The session. Raises ServerNotReady if it is not open."""
        if self._rules is None or self.session is None:
            raise ServerNotReady("the session is not open")
        return self.session

    @property
    def declared(self) -> Mapping[str, Any]:
        """The client capabilities that were declared last."""
        return self._declared.capabilities

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
            raise InvalidResult(f"the server answered {method} with a task, which only tools/call may start")
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
        budget = budget or TimeBudget(method, limits.hard)

        def send(given: Mapping[str, Any] | None) -> Coroutine[Any, Any, Mapping[str, Any]]:
            request = rules.request(next(self._ids), method, given, progress=on_progress is not None)
            return self.requests.send(request, rules, limits.idle, budget, on_progress)

        read = rules.read(method, await send(params))
        if not isinstance(read, InputRequired):
            return read

        async def send_again(given: Mapping[str, Any]) -> Complete | InputRequired | TaskStarted:
            return rules.read(method, await send(given))

        report = on_round or _ignore
        return await answer_rounds(
            send_again, self._declared, method, params or {}, read, self._limits.rounds, report, budget
        )

    async def fetch(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        again: bool = False,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> CachedResult:
        """As `request`, for a list or a resource: a cached result that is fresh is returned instead, unless ``again``.

        If a resource cannot be fetched because the server fails, returns a stale cached result.
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
            fetch.outdated = True  # a result that input went into answers this attempt alone

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

    async def read_list(
        self, method: str, key: str, read: Callable[[object], Item], *, again: bool = False
    ) -> ListedItems[Item]:
        """Read every page of a list, with remarks for the log; ``again``: none from the cache.

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

        listed = await read_list(fetch, key, read, self._limits.lists, self._deadlines.loop.time, restart)
        for remark, names in listed.remarks.items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            self.remark(f"{method}: {f'{names[0]}{more}: ' if names else ''}{remark}")
        listed.freshness = freshness
        return listed

    def tool_result(self, result: Mapping[str, Any]) -> CallToolResult:
        """Parse the result of a tool call, with remarks on it for the log. Raises InvalidResult."""
        modern = self.session is not None and self.session.revision.modern
        read = CallToolResult.read(result, null_is_value=modern)
        if remarks := read.remarks:
            self.remark(*(f"tools/call: {remark}" for remark in remarks))
        return read

    def forget_fetched(self) -> None:
        """Empty the cache and report all lists as changed, since the credential or the declared capabilities did."""
        if self._cache is not None:
            self._cache.clear()
        for kind in LIST_KINDS:
            if self.session is not None and kind in self.session.server.capabilities:
                self._observer.list_changed(kind)

    # For tasks, whose work outlives single requests.

    def check_round(self, current: InputRound) -> None:
        """Raise InvalidResult if a task needs more in this round than it may."""
        check_round(current.needed, current.number, self._limits.rounds)

    def answer_inputs(
        self, inputs: Mapping[str, ServerInput], purpose: InputPurpose
    ) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """The answers to what a task needs, by their keys, as they come. Raises InputNotGiven if one is refused."""
        return answer_inputs(inputs, self._declared, purpose)

    def within(self, seconds: float) -> Deadline:
        """A deadline that raises TimeoutError inside its block. Time spent answering the server does not count."""
        return Deadline(self._deadlines, seconds, seconds, pausable=True)

    # For the log.

    def remark(self, *texts: str) -> None:
        """Log how the server breaks the specification, although it was understood: each text once."""
        for text in texts:
            if text not in self._remarks and len(self._remarks) < MOST_REMARKS:
                self._remarks.add(text)
                self._observer.remarked(_shortened(text))

    def _note(self, text: str) -> None:
        self._observer.noted(_shortened(text))

    def _declare(self, offer: Revision) -> Mapping[str, Any]:
        # The capabilities declared last apply, whichever revision is negotiated.
        given = self._capabilities
        before, declared = self._declared.capabilities, given(offer) if callable(given) else given
        self._declared.capabilities = declared
        if self._cache is not None and declared != before:
            self.forget_fetched()
        return declared


def _shortened(text: str) -> str:
    return text if len(text) <= NOTE_LENGTH else f"{text[:NOTE_LENGTH]} ..."


def _server_fails(error: McphostError) -> bool:
    """True if the server cannot answer at the moment; an error that answers the request is not such a failure."""
    broken = isinstance(error, ServerError) and error.code == ErrorCode.INTERNAL_ERROR
    return broken or isinstance(error, RequestTimeout | ConnectionLost)


async def _ignore(_: InputRound) -> None:
    return
