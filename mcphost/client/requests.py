"""Requests and their answers: the time they may take, and word to the server when nobody waits any more.

Knows the limits. Refuses to know what is asked, and what an answer means beyond being one.

Specification: basic/lifecycle (timeouts); basic/utilities/cancellation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from mcphost.client.deadlines import Deadline, Deadlines
from mcphost.errors import ConnectionLost, McphostError, RequestTimeout, ServerError, SessionExpired
from mcphost.protocol.eras.era import LegacyEra
from mcphost.protocol.eras.revisions import MAY_ASK, Revision
from mcphost.protocol.limits import REQUEST_SECONDS, REQUEST_SECONDS_IN_ALL
from mcphost.protocol.models.tools import InitializeResult, Progress
from mcphost.protocol.wire.jsonrpc import Notification, Request, RequestId, Response
from mcphost.transports.base import Transport

Item = TypeVar("Item")
ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class RequestTimeouts:
    """How long to wait for an answer, in seconds: ``idle`` without progress, ``hard`` whatever progress comes."""

    idle: float = REQUEST_SECONDS
    hard: float = REQUEST_SECONDS_IN_ALL


@dataclass(frozen=True, slots=True)
class Session:
    """What the handshake settled."""

    revision: Revision
    server: InitializeResult
    seconds: float
    """How long the handshake took, from the first request to the last answer."""


def result_of(response: Response, method: str) -> Mapping[str, Any]:
    """The result object of the response to ``method``; raises ServerError where it is an error."""
    if response.error is not None:
        raise ServerError(response.error.code, response.error.message, response.error.data, method=method)
    return response.result or {}


CANCEL_SECONDS: Final = 1.0
"""How long closing waits for cancel notices that are still being written."""

Waiting = dict[RequestId, tuple[Deadline, ProgressCallback]]
"""The requests under way that want to hear of progress: it is a sign of life."""


class Requests:
    """Sends requests over ``transport``; ``lost`` hears that one found the connection gone, ``note`` is for the log."""

    def __init__(
        self,
        transport: Transport,
        deadlines: Deadlines,
        waiting: Waiting,
        lost: Callable[[Exception], None],
        note: Callable[[str], None],
    ) -> None:
        self._transport, self._deadlines, self._waiting = transport, deadlines, waiting
        self._lost, self._note = lost, note
        self._background: set[asyncio.Task[None]] = set()

    async def send(
        self, request: Request, era: LegacyEra, patience: RequestTimeouts, report: ProgressCallback | None
    ) -> Mapping[str, Any]:
        """The result object. Raises as `mcphost.client.client.Client.request` does."""
        limit = Deadline(self._deadlines, patience.idle, patience.hard, holds=request.method in MAY_ASK)
        try:
            with limit:
                if report is not None:
                    self._waiting[request.id] = limit, report
                response = await self._transport.request(request, {})
        except (ConnectionLost, SessionExpired) as gone:
            self._lost(gone)  # a transport without a standing connection learns of its end by a request
            raise
        except TimeoutError:
            self._tell_cancelled(request, era, "timed out")
            seconds = patience.hard if limit.hard else patience.idle
            raise RequestTimeout(request.method, seconds, hard=limit.hard) from None
        except asyncio.CancelledError:
            self._tell_cancelled(request, era, "cancelled by the user")
            raise
        finally:
            self._waiting.pop(request.id, None)
        return result_of(response, request.method)

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Let ``work``, which may not raise, go on by itself; `drain` waits for it a moment."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def drain(self) -> None:
        """Let cancel notices out."""
        if self._background:
            await asyncio.wait(self._background, timeout=CANCEL_SECONDS)

    def _tell_cancelled(self, request: Request, era: LegacyEra, reason: str) -> None:
        notice = era.spell_cancel(request, reason)
        if notice is not None:
            self._note(f"told the server to stop {request.method} (id {request.id}): {reason}")
            self.in_background(self._send_quietly(notice))

    async def _send_quietly(self, notice: Notification) -> None:
        try:
            await self._transport.send(notice)
        except McphostError:
            return  # nobody is left to be told
