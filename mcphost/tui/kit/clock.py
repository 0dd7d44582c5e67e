"""Moments as local times of day, for the screen."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache

from mcphost.protocol.display import show_line
from mcphost.protocol.models.freshness import Freshness


@lru_cache(maxsize=1024)
def _local(second: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(second)
    except (ValueError, OverflowError, OSError):  # the system's clock is set to nonsense, or a file says so
        return None


def clock_text(moment: float, *, milliseconds: bool = False) -> str:
    """The time of day of a moment in seconds since 1970; ``--:--:--`` if there is no such time."""
    when = _local(int(moment // 1))
    text = "--:--:--" if when is None else f"{when:%H:%M:%S}"
    return f"{text}.{int(moment % 1 * 1000):03}" if milliseconds else text


def date_text(moment: float) -> str:
    """The date of a moment, as in ISO 8601; empty if there is no such date."""
    when = _local(int(moment // 1))
    return "" if when is None else f"{when:%Y-%m-%d}"


def file_stamp() -> str:
    """Now, for the name of a file."""
    return f"{datetime.now():%Y%m%d-%H%M%S}"


def freshness_text(freshness: Freshness, now: float, clock: datetime) -> str:
    """Such as ``10:41:20, fresh until 10:42:20``: when a result came, and until when it is fresh.

    ``now`` is a moment of the clock of ``freshness``, and ``clock`` the same moment as a time of day.
    """
    came = clock - timedelta(seconds=max(0.0, now - freshness.received))
    if freshness.problem:
        return f"{came:%H:%M:%S}, stale: {show_line(freshness.problem, 120)}"
    until = clock + timedelta(seconds=freshness.until - now)
    return f"{came:%H:%M:%S}, {'fresh until' if freshness.until > now else 'stale since'} {until:%H:%M:%S}"
