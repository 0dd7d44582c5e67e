"""Remembers which servers are to be opened with ``initialize`` at once, so that they are not probed at every start.

Nothing needs to be remembered of servers that also speak a revision without a handshake: their answer shows it. What is
remembered ends after a week, and when the server's entry in the configuration changes.

Specification: 2026-07-28 basic/versioning (era determination).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from hashlib import sha256
from typing import Any, Final

from mcphost.config import ServerConfig
from mcphost.errors import McphostError
from mcphost.host.internal_error import internal_error
from mcphost.host.state_store import StateStore
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.negotiation import Era
from mcphost.protocol.lifecycle.revisions import MODERN_REVISIONS

FILE: Final = "eras"

REMEMBERED_FOR: Final = timedelta(days=7)
"""A server that was updated would go on in the old revision, unseen."""

KEPT: Final = 500
"""Servers in the file, the latest."""


@dataclass(frozen=True, slots=True)
class HandshakeVerdict:
    """A server is to be opened with ``initialize``: what showed that, as a clause, and when."""

    evidence: str
    day: date

    def holds(self, today: date) -> bool:
        return timedelta() <= today - self.day < REMEMBERED_FOR


class EraVerdicts:
    """The verdicts, by entry of the configuration, kept in ``store`` (None: for this run only).

    ``today`` is a clock; ``warn`` takes the name of a server (perhaps empty) and a sentence for the log: a file that
    cannot be used has no other effect.
    """

    def __init__(self, store: StateStore | None, today: Callable[[], date], warn: Callable[[str, str], None]) -> None:
        self._store, self._today, self._warn = store, today, warn
        self._verdicts: dict[str, HandshakeVerdict] = {}

    async def load(self) -> None:
        """Read the file."""
        if self._store is None:
            return
        try:
            self._verdicts = _from_toml(await asyncio.to_thread(self._store.read, FILE))
        except Exception as error:
            self._warn("", f"which servers need no probe could not be read, and is found out anew: {_words(error)}")

    def of(self, server: ServerConfig) -> HandshakeVerdict | None:
        """What is remembered of this server and still holds."""
        verdict = self._verdicts.get(_key(server))
        return verdict if verdict is not None and verdict.holds(self._today()) else None

    async def learn(self, server: ServerConfig, evidence: str) -> None:
        """The server is to be opened with ``initialize``."""
        self._verdicts[_key(server)] = HandshakeVerdict(evidence, self._today())
        await self._save(_key(server))

    async def forget(self, server: ServerConfig) -> None:
        """Probe the server the next time."""
        if self._verdicts.pop(_key(server), None) is not None:
            await self._save(_key(server))

    async def _save(self, key: str) -> None:
        if self._store is None:
            return
        verdict = self._verdicts.get(key)
        try:
            await asyncio.to_thread(self._store.update, FILE, lambda data: _changed(data, key, verdict))
        except Exception as error:
            self._warn("", f"which protocol versions a server speaks could not be saved: {_words(error)}")


def era_of(server: ServerConfig, verdict: HandshakeVerdict | None) -> Era:
    """Which revisions to open a connection with."""
    if verdict is None or server.protocol != "auto" or (server.minimum_version or "") >= MODERN_REVISIONS[0].version:
        return server.protocol
    return "legacy"


def _words(error: Exception) -> str:
    return str(error if isinstance(error, McphostError) else internal_error(error))


def _key(server: ServerConfig) -> str:
    """A digest of what runs the server, which may hold a secret."""
    return sha256(server.identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _from_toml(data: Mapping[str, Any]) -> dict[str, HandshakeVerdict]:
    """The verdicts in a state file; anything else in it is ignored."""
    tables = data.get("handshake")
    found: dict[str, HandshakeVerdict] = {}
    for key, table in tables.items() if isinstance(tables, dict) else ():
        match table:
            case {"evidence": str(evidence), "day": date() as day}:
                found[key] = HandshakeVerdict(evidence, day)
    return found


def _changed(data: Mapping[str, Any], key: str, verdict: HandshakeVerdict | None) -> dict[str, Any]:
    kept = {known: each for known, each in _from_toml(data).items() if known != key}
    if verdict is not None:
        kept[key] = verdict
    latest = list(kept.items())[-KEPT:]
    return {"handshake": {known: {"evidence": each.evidence, "day": each.day} for known, each in latest}}
