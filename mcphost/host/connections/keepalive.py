"""Pings an idle connection and records the round-trip time.

Specification: basic/utilities/ping.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from mcphost.client.client import Client
from mcphost.errors import ConnectionLost, McphostError, PeerError
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.logging import LogLevel

PING_MISSES: Final = 2
"""Pings in a row without a sign of life after which a connection counts as dead."""

PING_SECONDS: Final = 10.0
"""Seconds a ping may take at most; less where pings come more often."""

Note = Callable[[LogLevel, str], None]


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """The time in ``seconds`` that the server took to answer the opening or a ping."""

    seconds: float
    request: str


class Keepalive:
    """Pings one server. ``last`` is the latest round trip; None until there was one.

    ``busy`` says whether a call is running: a program that does one thing at a time answers no ping then, and the call
    has limits of its own. ``measured`` is called after every answer; ``now`` is a monotonic clock.
    """

    def __init__(
        self, now: Callable[[], float], busy: Callable[[], bool], note: Note, measured: Callable[[], None]
    ) -> None:
        self.last: RoundTrip | None = None
        self._now, self._busy, self._note, self._measured = now, busy, note, measured

    def begin(self, seconds: float) -> None:
        """Opening the session took this long."""
        self.last = RoundTrip(seconds, "opening")

    async def ping(self, client: Client, seconds: float = PING_SECONDS) -> RoundTrip:
        """Ask once. Raises RequestTimeout, ConnectionLost, or PeerError for an answer that is none."""
        began = self._now()
        await client.ping(seconds)
        answer = self.last = RoundTrip(self._now() - began, "ping")
        self._measured()
        return answer

    async def watch(self, client: Client, interval: float) -> None:
        """Ask every ``interval`` seconds. Raises ConnectionLost once too many in a row were missed; never returns."""
        misses = 0
        while misses < PING_MISSES:
            await asyncio.sleep(interval)
            if not self._busy():
                misses = 0 if await self._answers(client, interval) else misses + 1
        raise ConnectionLost(f"the server answered none of {misses} pings")

    async def _answers(self, client: Client, interval: float) -> bool:
        try:
            await self.ping(client, min(interval, PING_SECONDS))
        except PeerError:
            return True  # a bad answer is an answer
        except McphostError as error:
            self._note(LogLevel.WARNING, f"no answer to a ping: {error}")
            return self._busy()
        return True
