"""A connection's end, and what follows from it: whether and when a server is tried again, and the words for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn

from mcphost.config import ServerConfig
from mcphost.errors import (
    AuthorizationRequired,
    ConnectionLost,
    HttpStatusError,
    McphostError,
    ServerError,
    SessionExpired,
)
from mcphost.host.connections.state import ServerState
from mcphost.host.failure_advice import next_step
from mcphost.transports.base import ProcessReport

FIRST: Final = 0.5
LONGEST: Final = 60.0
JITTER: Final = 0.2
"""Share of the wait by which it is moved, so that many servers do not start at once."""
STEADY: Final = 10.0
"""Seconds a connection must have lived for its failure to count as a new one."""
CRASHES: Final = 5
CRASH_WINDOW: Final = 180.0
"""Seconds in which that many quick failures end the trying: somebody has to look."""
LOST_SESSIONS: Final = 4
LOST_WINDOW: Final = 60.0
"""Seconds in which a server that loses that many sessions is not given another."""


class Backoff:
    """Asked after each failure how long to wait. Times are seconds of a monotonic clock."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._wait = FIRST
        self._crashes: deque[float] = deque(maxlen=CRASHES)
        self._lost_sessions: deque[float] = deque(maxlen=LOST_SESSIONS)

    def after_failure(self, now: float, lived: float, *, outage: bool = False) -> float | None:
        """Seconds to wait before the next try; None when there were too many failures too quickly.

        An ``outage``, of a network or of a machine that is not ours to start, ends by itself and counts for none.
        """
        if lived >= STEADY:
            self._wait = FIRST
        if not outage and _too_many(self._crashes, now, CRASH_WINDOW):
            return None
        wait, self._wait = self._wait, min(self._wait * 2, LONGEST)
        return wait * (1 + JITTER * (2 * self._random() - 1))

    def after_lost_session(self, now: float) -> float | None:
        """No time at all, since the server is there; None when it lost too many sessions too quickly."""
        return None if _too_many(self._lost_sessions, now, LOST_WINDOW) else 0.0

    def reset(self) -> None:
        """Somebody looked: begin anew."""
        self._wait = FIRST
        self._crashes.clear()
        self._lost_sessions.clear()


def _too_many(times: deque[float], now: float, window: float) -> bool:
    """Add this time; are there as many as may be, all within the window?"""
    times.append(now)
    return len(times) == times.maxlen and now - times[0] <= window


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """What happens after a failure of a server."""

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
