"""Freshness of results, by the ``ttlMs`` that a modern server sends with them.

Specification: 2026-07-28 server/utilities/caching.
"""

from __future__ import annotations

from math import inf

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.limits import CACHE_SECONDS


@dataclass(frozen=True, slots=True)
class Freshness:
    """When a result came and until when it is fresh, in seconds of a monotonic clock."""

    received: float
    until: float = inf
    """Infinite where the server's revision has no ``ttlMs``: it stays fresh until the server announces a change."""
    cached: bool = False
    """True if it comes from the cache."""
    problem: str = ""
    """Why it could not be fetched again, although it is stale; empty if it was not tried, or went well."""

    def __or__(self, other: Freshness) -> Freshness:
        """The freshness of two pages together."""
        return Freshness(
            min(self.received, other.received),
            min(self.until, other.until),
            self.cached or other.cached,
            self.problem or other.problem,
        )


def seconds_to_live(ttl: object) -> float:
    """Seconds for which a result with this ``ttlMs`` is fresh; 0 for anything but a positive number."""
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not ttl > 0:
        return 0.0
    return min(ttl, CACHE_SECONDS * 1000) / 1000
