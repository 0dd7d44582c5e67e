"""Decides whether and when a failed server is started again (exponential backoff with jitter, crash-loop limit)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
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
from mcphost.lazy_dataclass import dataclass
from mcphost.transports.base import ProcessReport

FIRST: Final = 0.5
LONGEST: Final = 60.0
JITTER: Final = 0.2
"""Fraction of the wait that is random, so that many servers do not start at once."""
STEADY: Final = 10.0
"""Seconds after which a connection counts as stable: the next failure starts a new backoff."""
CRASHES: Final = 5
CRASH_WINDOW: Final = 180.0
"""Seconds in which `CRASHES` failures end the retries: the user has to look."""
LOST_SESSIONS: Final = 4
LOST_WINDOW: Final = 60.0
"""Seconds in which `LOST_SESSIONS` lost sessions end the retries."""


class Backoff:
    """Computes the wait after each failure. Times are seconds of a monotonic clock."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._wait = FIRST
        self._crashes: deque[float] = deque(maxlen=CRASHES)
        self._lost_sessions: deque[float] = deque(maxlen=LOST_SESSIONS)

    def after_failure(self, now: float, lived: float, *, outage: bool = False) -> float | None:
        """Seconds to wait before the next try; None after too many failures in `CRASH_WINDOW`.

        An ``outage`` (of a network, or of a server that mcphost does not start) counts as no failure.
        """
        if lived >= STEADY:
            self._wait = FIRST
        if not outage and _too_many(self._crashes, now, CRASH_WINDOW):
            return None
        wait, self._wait = self._wait, min(self._wait * 2, LONGEST)
        return wait * (1 + JITTER * (2 * self._random() - 1))

    def after_lost_session(self, now: float) -> float | None:
        """Zero, since the server is reachable; None after too many lost sessions in `LOST_WINDOW`."""
        return None if _too_many(self._lost_sessions, now, LOST_WINDOW) else 0.0

    def reset(self) -> None:
        """The user acted: forget earlier failures."""
        self._wait = FIRST
        self._crashes.clear()
        self._lost_sessions.clear()


def _too_many(times: deque[float], now: float, window: float) -> bool:
    """Add a time; return whether the deque is full of times within the window."""
    times.append(now)
    return len(times) == times.maxlen and now - times[0] <= window


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """The plan after a failure of a server."""

    state: ServerState
    reason: str
    advice: str
    wait: float | None = None
    """Seconds to the next try; None: the user must act first."""


@dataclass(frozen=True, slots=True)
class LastFailure:
    """The last failure. ``at`` is seconds of the monotonic clock; ``process`` has exit code and last stderr."""

    at: float
    reason: str
    process: ProcessReport


class Disconnect:
    """Reports the loss of a connection to the task that serves it."""

    def __init__(self) -> None:
        self._failure: McphostError | None = None
        self._set = asyncio.Event()

    def occurred(self, reason: Exception) -> None:
        self._failure = reason if isinstance(reason, McphostError) else ConnectionLost(str(reason))
        self._set.set()

    async def wait(self) -> NoReturn:
        """Wait for the loss, then raise its reason (ConnectionLost for an exception that is not ours)."""
        await self._set.wait()
        assert self._failure is not None
        raise self._failure


def after_failure(
    failure: McphostError, name: str, config: ServerConfig, backoff: Backoff, now: float, ready_at: float | None
) -> RetryPlan:
    """The next state of server ``name``; ``ready_at`` is when it became ready, None if it did not."""
    # A lost connection of a server that was ready is worth one more try.
    futile = failure.lasting and not (isinstance(failure, ConnectionLost) and ready_at is not None)
    lived = 0.0 if ready_at is None else now - ready_at
    wait = None if futile else _wait_after(failure, config, backoff, now, lived)
    advice = next_step(failure, name, config)
    if isinstance(failure, AuthorizationRequired) and config.signs_in:
        return RetryPlan(ServerState.NEEDS_SIGN_IN, str(failure), advice)
    if wait is None:
        gave_up = "" if futile else " (tried several times; not trying again by itself)"
        return RetryPlan(ServerState.FAILED, f"{_words(failure)}{gave_up}", advice)
    return RetryPlan(ServerState.RECONNECTING, _words(failure), advice, wait)


def _wait_after(
    failure: McphostError, config: ServerConfig, backoff: Backoff, now: float, lived: float
) -> float | None:
    if isinstance(failure, SessionExpired):
        return backoff.after_lost_session(now)
    outage = config.url is not None and isinstance(failure, ConnectionLost | HttpStatusError)
    return backoff.after_failure(now, lived, outage=outage)


def _words(failure: McphostError) -> str:
    """The reason as a sentence that says whether the words are the server's."""
    refused = f"the server refused {failure.method}: " if isinstance(failure, ServerError) and failure.method else ""
    return f"{refused}{failure}"
