"""What the verbs need of the client they belong to, and the values they share with it.

Knows shapes only: `mcphost.client.client.Client` is what stands behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from mcphost.client.listing import ListedItems
from mcphost.errors import ServerError
from mcphost.protocol.jsonrpc import RequestId, Response
from mcphost.protocol.revisions import Revision
from mcphost.protocol.types import InitializeResult, Progress

Item = TypeVar("Item")
ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class RequestTimeouts:
    """How long to wait for an answer, in seconds: ``idle`` without progress, ``hard`` whatever progress comes."""

    idle: float = 60.0
    hard: float = 600.0


@dataclass(frozen=True, slots=True)
class Session:
    """What the handshake settled."""

    revision: Revision
    server: InitializeResult
    seconds: float
    """How long the handshake took, from the first request to the last answer."""


class Requester(Protocol):
    """Sends requests of one open session."""

    @property
    def opened(self) -> Session:
        """The session; raises ServerNotReady where it is not open."""

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        patience: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Mapping[str, Any]:
        """See `mcphost.client.client.Client.request`."""

    async def read_list(self, method: str, key: str, read: Callable[[object], Item]) -> ListedItems[Item]:
        """Every page of a list. Raises as `request` does where not even the first page came."""

    def hearing(self, token: RequestId, report: ProgressCallback) -> AbstractContextManager[None]:
        """Hand progress under ``token`` to ``report``, also when no request with it is under way."""

    def within(self, seconds: float) -> AbstractContextManager[object]:
        """Raise TimeoutError inside the block when they are over, what time we take for the server not counted."""

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Let ``work``, which may not raise, go on by itself; closing waits for it a moment."""


def result_of(response: Response, method: str) -> Mapping[str, Any]:
    """The result object of the response to ``method``; raises ServerError where it is an error."""
    if response.error is not None:
        raise ServerError(response.error.code, response.error.message, response.error.data, method=method)
    return response.result or {}
