"""A connection's end, and what follows from it: whether and when a server is tried again, and the words for it.

Knows which failures pass and which last. Refuses to know connections: it is told how long one stood.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import NoReturn

from mcphost.config import ServerConfig
from mcphost.errors import (
    AuthorizationRequired,
    ConnectionLost,
    HttpStatusError,
    McphostError,
    ServerError,
    SessionExpired,
)
from mcphost.host.advice import next_step
from mcphost.host.backoff import Backoff
from mcphost.host.states import ServerState
from mcphost.transports.base import ProcessReport


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """How it goes on with a server that failed."""

    state: ServerState
    reason: str
    advice: str
    wait: float | None = None
    """Seconds to the next try; None: there is none by itself."""


@dataclass(frozen=True, slots=True)
class LastFailure:
    """How a connection ended by itself. ``at`` is on the host's clock; ``process`` has exit code and last words."""

    at: float
    reason: str
    process: ProcessReport


class Disconnect:
    """Why a connection ended by itself, for whoever waits for that."""

    def __init__(self) -> None:
        self._failure: McphostError | None = None
        self._there = asyncio.Event()

    def came(self, reason: Exception) -> None:
        """It has ended."""
        self._failure = reason if isinstance(reason, McphostError) else ConnectionLost(str(reason))
        self._there.set()

    async def wait(self) -> NoReturn:
        """Raises the reason once there is one; ConnectionLost where it is no failure of ours."""
        await self._there.wait()
        assert self._failure is not None
        raise self._failure


def after_failure(
    failure: McphostError, name: str, config: ServerConfig, backoff: Backoff, now: float, ready_at: float | None
) -> RetryPlan:
    """How it goes on with ``name``, which was ready since ``ready_at``, if it was."""
    # Whether a standing connection that broke can be had again is for the next try to tell.
    vain = failure.lasting and not (isinstance(failure, ConnectionLost) and ready_at is not None)
    lived = 0.0 if ready_at is None else now - ready_at
    wait = None if vain else _wait_after(failure, config, backoff, now, lived)
    advice = next_step(failure, name, config)
    if isinstance(failure, AuthorizationRequired) and config.signs_in:
        return RetryPlan(ServerState.NEEDS_SIGN_IN, str(failure), advice)
    if wait is None:
        tired = "" if vain else " (tried several times; not trying again by itself)"
        return RetryPlan(ServerState.FAILED, f"{_words(failure)}{tired}", advice)
    return RetryPlan(ServerState.RECONNECTING, _words(failure), advice, wait)


def _wait_after(
    failure: McphostError, config: ServerConfig, backoff: Backoff, now: float, lived: float
) -> float | None:
    if isinstance(failure, SessionExpired):
        return backoff.after_lost_session(now)
    outage = config.url is not None and isinstance(failure, ConnectionLost | HttpStatusError)
    return backoff.after_failure(now, lived, outage=outage)


def _words(failure: McphostError) -> str:
    """Why there is no connection; the words of a server's error alone would not say whose they are."""
    refused = f"the server refused {failure.method}: " if isinstance(failure, ServerError) and failure.method else ""
    return f"{refused}{failure}"
