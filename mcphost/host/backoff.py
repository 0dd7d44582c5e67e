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


class Backoff:
    """Asked after each failure how long to wait. Times are seconds of a monotonic clock."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._wait = FIRST
        self._failures: deque[float] = deque(maxlen=CRASHES)

    def after_failure(self, now: float, lived: float) -> float | None:
        """Seconds to wait before the next try; None when there were too many failures too quickly."""
        if lived >= STEADY:
            self._wait = FIRST
        self._failures.append(now)
        if len(self._failures) == CRASHES and now - self._failures[0] <= CRASH_WINDOW:
            return None
        wait, self._wait = self._wait, min(self._wait * 2, LONGEST)
        return wait * (1 + JITTER * (2 * self._random() - 1))

    def reset(self) -> None:
        """Somebody looked: begin anew."""
        self._wait = FIRST
        self._failures.clear()
