"""Whether a connection that stands is still alive: its pulse.

Knows intervals. Refuses to know when a server is started, and what follows from its death.

Specification: basic/utilities/ping.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mcphost.client.client import Client
from mcphost.errors import ConnectionLost, McphostError, PeerError
from mcphost.protocol.types import LogLevel

PING_MISSES: Final = 2
"""Pings in a row without a sign of life after which a connection counts as dead."""

PING_SECONDS: Final = 10.0
"""Seconds a ping may take at most; less where pings come more often."""

Note = Callable[[LogLevel, str], None]


@dataclass(frozen=True, slots=True)
class Pulse:
    """Whether a server still answers: asked every ``interval`` seconds, but not while ``busy``.

    A program that does one thing at a time answers no ping during a call, and the call has limits of its own.
    """

    interval: float
    busy: Callable[[], bool]
    note: Note

    async def watch(self, client: Client) -> None:
        """Ask until the server misses too many in a row. Raises ConnectionLost then, and never returns."""
        misses = 0
        while misses < PING_MISSES:
            await asyncio.sleep(self.interval)
            if not self.busy():
                misses = 0 if await self._answers(client) else misses + 1
        raise ConnectionLost(f"the server answered none of {misses} pings")

    async def _answers(self, client: Client) -> bool:
        try:
            await client.ping(min(self.interval, PING_SECONDS))
        except PeerError:
            return True  # a bad answer is an answer
        except McphostError as error:
            self.note(LogLevel.WARNING, f"no answer to a ping: {error}")
            return self.busy()
        return True
