"""Remembers which servers to open with ``initialize`` right away, so that they are not probed at every start.

Servers that also speak a revision without a handshake are not remembered: their answer to the probe shows it.

Specification: 2026-07-28 basic/versioning (era determination).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

from mcphost.config import ServerConfig
from mcphost.config.state import StateStore
from mcphost.host.remembered import RememberedByServer, server_digest
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.negotiation import Era
from mcphost.protocol.lifecycle.revisions import MODERN_REVISIONS

FILE: Final = "eras"

REMEMBERED_FOR: Final = timedelta(days=7)
"""A server that was updated meanwhile would otherwise stay at the old revision unnoticed."""


@dataclass(frozen=True, slots=True)
class RememberedEra:
    """A server that is to be opened with ``initialize``: the evidence, as a clause, and its day."""

    evidence: str
    day: date

    def holds(self, today: date) -> bool:
        return timedelta() <= today - self.day < REMEMBERED_FOR


class EraMemory:
    """The remembered eras, by entry of the configuration, kept in ``store`` (None: for this run only).

    ``today`` is a clock; ``warn`` takes a sentence for the log.
    """

    def __init__(self, store: StateStore | None, today: Callable[[], date], warn: Callable[[str], None]) -> None:
        self._today = today
        self._remembered = RememberedByServer(
            store, FILE, "handshake", RememberedEra, warn, "which protocol versions a server speaks"
        )

    async def load(self) -> None:
        """Read the file."""
        await self._remembered.load()

    def get(self, server: ServerConfig) -> RememberedEra | None:
        """Return what is remembered of this server, unless it is out of date."""
        found = self._remembered.get(server_digest(server.identity))
        return found if found is not None and found.holds(self._today()) else None

    async def learn(self, server: ServerConfig, evidence: str) -> None:
        """Open the server with ``initialize`` from now on."""
        await self._remembered.learn(server_digest(server.identity), RememberedEra(evidence, self._today()))

    async def forget(self, server: ServerConfig) -> None:
        """Probe the server the next time."""
        if (saved := self._remembered.forget(server_digest(server.identity))) is not None:
            await saved


def era_to_open(server: ServerConfig, remembered: RememberedEra | None) -> Era:
    if remembered is None or server.protocol != "auto" or (server.minimum_version or "") >= MODERN_REVISIONS[0].version:
        return server.protocol
    return "legacy"
