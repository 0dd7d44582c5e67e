"""Moments of a monotonic clock as times of day."""

from __future__ import annotations

from datetime import datetime, timedelta

from mcphost.protocol.display import show_line
from mcphost.protocol.models.freshness import Freshness


def fresh_words(freshness: Freshness, now: float, clock: datetime) -> str:
    """Such as ``10:41:20, fresh until 10:42:20``: when a result came, and for how long it counts.

    ``now`` is a moment of the clock of ``freshness``, and ``clock`` the same moment as a time of day.
    """
    came = clock - timedelta(seconds=max(0.0, now - freshness.received))
    if freshness.problem:
        return f"{came:%H:%M:%S}, stale: {show_line(freshness.problem, 120)}"
    until = clock + timedelta(seconds=freshness.until - now)
    return f"{came:%H:%M:%S}, {'fresh until' if freshness.until > now else 'stale since'} {until:%H:%M:%S}"
