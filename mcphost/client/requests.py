"""Sends single requests with timeouts, cancels them at the server, and explains why a server refused one.

Specification: basic/lifecycle (timeouts); basic/utilities/cancellation and progress; 2026-07-28 basic/index (error
codes -32020 and -32021).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any, Final

from mcphost.client.deadlines import Deadline, Deadlines, TimeBudget
from mcphost.errors import (
    ClientCapabilityMissing,
    ConnectionClosed,
    ConnectionLost,
    McphostError,
    RequestRefused,
    RequestTimeout,
    ServerError,
    SessionExpired,
)
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.mirrors import mirrors_of
from mcphost.protocol.lifecycle.revisions import MAY_ASK, META_PREFIX, Revision
from mcphost.protocol.lifecycle.session import ModernRules, SessionRules
from mcphost.protocol.limits import REQUEST_SECONDS, REQUEST_SECONDS_IN_ALL
from mcphost.protocol.models.initialization import InitializeResult
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.jsonrpc import ErrorObject, Notification, Request, RequestId, Response, words_in
from mcphost.transports.base import Transport

ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class RequestTimeouts:
    """Seconds to wait for a response: ``idle`` without progress, ``hard`` in any case."""

    idle: float = REQUEST_SECONDS
    hard: float = REQUEST_SECONDS_IN_ALL


@dataclass(frozen=True, slots=True)
class Session:
    """An open session, and what the server said while it was opened."""

    revision: Revision
    server: InitializeResult
    """Name, version and capabilities of the server, in the form of ``initialize`` whatever its revision."""
    seconds: float
    """Duration of the opening."""
    evidence: str = ""
    """The answer to ``server/discover``, as a clause; empty if it was not sent."""
    versions: tuple[str, ...] = ()
    """All protocol versions that it listed; empty if it listed none."""
    proven: bool = True
    """True if the evidence is an answer, which the same server will give again."""
    probe_seconds: float = 0.0
    """Duration of the wait for ``server/discover``; 0 if it was not sent."""


class RequestIds(Iterator[RequestId]):
    """Ids that cannot be guessed, so that an answer sent before its request finds none."""

    def __init__(self) -> None:
        self._first = self._next = secrets.randbelow(1 << 20) * 1000 + 1

    def __next__(self) -> int:
        self._next += 1
        return self._next - 1

    @property
    def latest(self) -> int:
        """The id of the last request."""
        return self._next - 1

    def __contains__(self, given: object) -> bool:
        """True if this id was used for a request."""
        return type(given) is int and self._first <= given < self._next


def result_of(response: Response, method: str) -> Mapping[str, Any]:
    """The result object of the response to ``method``. Raises ServerError if it is an error."""
    if response.error is not None:
        raise _error_of(response.error, method)
    return response.result or {}


def _error_of(error: ErrorObject, method: str) -> ServerError:
    message = error.message if error.message.strip() else words_in(error.data) or "it gives no reason"
    return ServerError(error.code, message, error.data, method=method)


BY_USER: Final = "cancelled by the user"
"""The message with which to cancel a task for the user, so that the server gets the reason."""

BY_AGENT: Final = "cancelled by the agent"
"""The same for an agent."""

NOBODY_WAITS: Final = "nobody waits for the answer"
"""The reason of all other cancellations."""

CANCEL_SECONDS: Final = 1.0
"""Seconds that closing waits for cancellations that are still being sent."""

MOST_NAMED: Final = 20
"""Capabilities that a server may name as required."""


class Requests:
    """Sends requests.

    ``lost`` is called if one finds the connection gone; ``note`` and ``remark`` take a sentence for the log.
    """

    def __init__(
        self,
        transport: Transport,
        deadlines: Deadlines,
        lost: Callable[[Exception], None],
        note: Callable[[str], None],
        remark: Callable[[str], None],
    ) -> None:
        self._transport, self._deadlines = transport, deadlines
        self._lost, self._note, self._remark = lost, note, remark
        self.ended: Exception | None = None
        """The first reason for the end of the connection: a stream may find it gone before the requests do."""
        self.waiting_for_progress: dict[RequestId, tuple[Deadline, ProgressCallback]] = {}
        """Requests that report progress, by token; progress extends their deadline."""
        self._token_observers: dict[RequestId, ProgressCallback] = {}
        """By token, for tokens that outlive their request."""
        self._background: set[asyncio.Task[None]] = set()
        self._mismatched = (0, "")
        """The number of answers to no request, and a sentence on the last."""

    def mismatched(self, words: str) -> None:
        """Count an answer to no request, described by ``words``. Requests that time out name it."""
        self._mismatched = self._mismatched[0] + 1, words

    async def send(
        self,
        request: Request,
        rules: SessionRules,
        idle: float,
        budget: TimeBudget,
        report: ProgressCallback | None,
    ) -> Mapping[str, Any]:
        """Return the result object, and subtract the time that it took from ``budget``.

        ``idle`` seconds may pass without progress. Raises as `mcphost.client.requester.Requester.request` does.
        """
        headers = rules.headers(request)
        before, _ = self._mismatched
        limit = Deadline(self._deadlines, idle, budget.left, pausable=request.method in MAY_ASK)
        if report is not None:
            self.waiting_for_progress[request.id] = limit, report
        try:
            with limit:
                response = await self._transport.request(request, headers)
        except (ConnectionLost, SessionExpired) as gone:
            self._lost(gone)  # a transport without a permanent connection notices its end by a failed request
            if isinstance(gone, ConnectionClosed) and self.ended is not None:
                raise ConnectionClosed(str(self.ended)) from None
            raise
        except TimeoutError:
            self._cancel(request, rules, "timed out")
            seconds = budget.seconds if limit.hard else idle
            count, words = self._mismatched
            instead = words if count > before else ""
            raise RequestTimeout(request.method, seconds, hard=limit.hard, instead=instead) from None
        except asyncio.CancelledError as cancelled:
            reason = next((each for each in (BY_USER, BY_AGENT) if each in cancelled.args), NOBODY_WAITS)
            self._cancel(request, rules, reason)
            raise
        finally:
            if report is not None:
                del self.waiting_for_progress[request.id]
        budget.left -= limit.elapsed
        if response.remark:
            self._remark(response.remark)
        if response.error is None:
            return response.result or {}
        raise with_what_was_sent(_error_of(response.error, request.method), request, rules)

    def progressed(self, token: RequestId, progress: Progress) -> None:
        """Report progress to the request or task that has this token. It extends a request's deadline."""
        if token in self.waiting_for_progress:
            limit, report = self.waiting_for_progress[token]
            limit.extend()
            report(progress)
        elif token in self._token_observers:
            self._token_observers[token](progress)

    @contextmanager
    def progress_observed(self, token: RequestId, report: ProgressCallback) -> Iterator[None]:
        """Pass progress with ``token`` to ``report`` inside the block, also when no request with it is pending."""
        self._token_observers[token] = report
        try:
            yield
        finally:
            del self._token_observers[token]

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work``, which must not raise, as a background task. `drain` waits for it for a moment."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def drain(self) -> None:
        """Wait at most `CANCEL_SECONDS` for background tasks."""
        if self._background:
            await asyncio.wait(self._background, timeout=CANCEL_SECONDS)

    def _cancel(self, request: Request, rules: SessionRules, reason: str) -> None:
        notice = rules.cancellation(request, reason)
        if notice is not None:
            self._note(f"cancelled {request.method} at the server (id {request.id}): {reason}")
            self.in_background(self._send_quietly(notice))

    async def _send_quietly(self, notice: Notification) -> None:
        try:
            await self._transport.send(notice)
        except McphostError:
            return  # the connection is gone


def with_what_was_sent(error: ServerError, request: Request, rules: SessionRules) -> ServerError:
    """The error with both sides of a disagreement, where it is one; else the error itself."""
    if not isinstance(rules, ModernRules):
        return error
    params = request.params or {}
    if error.code == ErrorCode.HEADER_MISMATCH and rules.own_stream:
        found = mirrors_of(rules.headers(request), {"method": request.method, "params": params})
        return RequestRefused(error, "; ".join(map(str, found)))
    if error.code == ErrorCode.MISSING_CLIENT_CAPABILITY:
        declared = params.get("_meta", {}).get(f"{META_PREFIX}clientCapabilities", {})
        sent = f"clientCapabilities: {', '.join(_names(declared)) or 'none'}"
        return ClientCapabilityMissing(error, sent, _missing(error.data, set(_names(declared))))
    return error


def _missing(data: object, declared: Set[str]) -> list[str]:
    """The capabilities that the server says it needs and that were not declared; all of them if all were."""
    required = as_dict(data).get("requiredCapabilities")
    needed = list(_names(required)) if isinstance(required, dict) else []
    missing = [name for name in needed if name not in declared]
    return (missing or needed)[:MOST_NAMED]


def _names(capabilities: Mapping[str, Any]) -> Iterator[str]:
    """The names of capabilities; in place of ``extensions`` their identifiers."""
    for name, value in capabilities.items():
        if name == "extensions" and isinstance(value, dict):
            yield from value
        else:
            yield name
