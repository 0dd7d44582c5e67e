"""When to try a server again: growing, jittered, capped waits, and an end to crash loops.

Pure but for the random source it is given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

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
