"""Sends requests with timeouts, and cancels them at the server when nobody waits any more.

Specification: basic/lifecycle (timeouts); basic/utilities/cancellation.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Final, TypeVar

from mcphost.client.deadlines import Deadline, Deadlines
from mcphost.errors import ConnectionClosed, ConnectionLost, McphostError, RequestTimeout, ServerError, SessionExpired
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.revisions import MAY_ASK, Revision
from mcphost.protocol.lifecycle.session import SessionRules
from mcphost.protocol.limits import REQUEST_SECONDS, REQUEST_SECONDS_IN_ALL
from mcphost.protocol.models.initialization import InitializeResult
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.wire.jsonrpc import Notification, Request, RequestId, Response, words_in
from mcphost.transports.base import Transport

Item = TypeVar("Item")
ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class RequestTimeouts:
    """How long to wait for a response, in seconds: ``idle`` without progress, ``hard`` in any case."""

    idle: float = REQUEST_SECONDS
    hard: float = REQUEST_SECONDS_IN_ALL


@dataclass(frozen=True, slots=True)
class Session:
    """What opening the session showed."""

    revision: Revision
    server: InitializeResult
    """What the server says of itself, in whichever form its revision has for that."""
    seconds: float
    """How long the opening took."""
    evidence: str = ""
    """How the server answered ``server/discover``, as a clause; empty if it was not asked."""
    versions: tuple[str, ...] = ()
    """All protocol versions that it listed; empty if it listed none."""
    proven: bool = True
    """True if the evidence is an answer, which the same server will give again."""
    probe_seconds: float = 0.0
    """How long ``server/discover`` was waited for; 0 if it was not asked."""


class RequestIds(Iterator[RequestId]):
    """Ids that nobody can guess: an answer sent before its question must not find one."""

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
    if (error := response.error) is not None:
        message = error.message if error.message.strip() else words_in(error.data) or "it gives no reason"
        raise ServerError(error.code, message, error.data, method=method)
    return response.result or {}


BY_USER: Final = "cancelled by the user"
"""The message with which to cancel a task for the user, so that the server gets the reason."""

CANCEL_SECONDS: Final = 1.0
"""How long closing waits for cancellations that are still being sent."""

PendingProgress = dict[RequestId, tuple[Deadline, ProgressCallback]]
"""Pending requests by progress token; progress extends their deadline."""


class Requests:
    """Sends requests.

    ``lost`` is called if one finds the connection gone; ``note`` and ``remark`` take a sentence for the log.
    """

    def __init__(
        self,
        transport: Transport,
        deadlines: Deadlines,
        pending: PendingProgress,
        lost: Callable[[Exception], None],
        note: Callable[[str], None],
        remark: Callable[[str], None],
    ) -> None:
        self._transport, self._deadlines, self._pending = transport, deadlines, pending
        self._lost, self._note, self._remark = lost, note, remark
        self.ended: Exception | None = None
        """What ended the connection first: a stream may find it gone before the requests do."""
        self._background: set[asyncio.Task[None]] = set()
        self._mismatched = (0, "")
        """How many answers came to no request, and what the last one was."""

    def mismatched(self, words: str) -> None:
        """An answer came to no request; ``words`` say which. Requests that time out name it."""
        self._mismatched = self._mismatched[0] + 1, words

    async def send(
        self, request: Request, rules: SessionRules, timeouts: RequestTimeouts, report: ProgressCallback | None
    ) -> Mapping[str, Any]:
        """Return the result object. Raises as `mcphost.client.client.Client.request` does."""
        headers = rules.headers(request)
        before, _ = self._mismatched
        limit = Deadline(self._deadlines, timeouts.idle, timeouts.hard, pausable=request.method in MAY_ASK)
        try:
            with limit:
                if report is not None:
                    self._pending[request.id] = limit, report
                response = await self._transport.request(request, headers)
        except (ConnectionLost, SessionExpired) as gone:
            self._lost(gone)  # a transport without a permanent connection notices its end by a failed request
            if isinstance(gone, ConnectionClosed) and self.ended is not None:
                raise ConnectionClosed(str(self.ended)) from None
            raise
        except TimeoutError:
            self._cancel(request, rules, "timed out")
            seconds = timeouts.hard if limit.hard else timeouts.idle
            count, words = self._mismatched
            instead = words if count > before else ""
            raise RequestTimeout(request.method, seconds, hard=limit.hard, instead=instead) from None
        except asyncio.CancelledError as cancelled:
            self._cancel(request, rules, BY_USER if BY_USER in cancelled.args else "nobody waits for the answer")
            raise
        finally:
            self._pending.pop(request.id, None)
        if response.remark:
            self._remark(response.remark)
        return result_of(response, request.method)

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
            self._note(f"told the server to stop {request.method} (id {request.id}): {reason}")
            self.in_background(self._send_quietly(notice))

    async def _send_quietly(self, notice: Notification) -> None:
        try:
            await self._transport.send(notice)
        except McphostError:
            return  # the connection is gone
