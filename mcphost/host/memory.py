"""What outlives a run: the approvals, read at the start and written whenever they change.

Knows one state file and when it is out of date. Refuses to know where it lies and what an approval means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from mcphost.errors import ConfigError
from mcphost.host.approvals import Approvals, SeenDefinition
from mcphost.host.approvals_file import from_toml, merged
from mcphost.host.faults import fault

APPROVALS: Final = "approvals"


class StateStore(Protocol):
    """Where the app keeps what it learned between runs. Every call may take as long as a disk does."""

    def read(self, name: str) -> Mapping[str, Any]:
        """The content of a state file; empty where there is none. Raises ConfigError."""

    def update(self, name: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Replace a state file by what ``change`` makes of it; nobody else writes meanwhile. Raises ConfigError."""


class ApprovalStore:
    """Reads and writes approvals through ``store`` (None: there is none); ``alarm`` takes a sentence for the user."""

    def __init__(self, store: StateStore | None, alarm: Callable[[str], None]) -> None:
        self._store, self._alarm = store, alarm
        self._writing = asyncio.Lock()
        self._stale = False
        self._saved: Sequence[SeenDefinition] = ()

    async def approvals(self) -> Approvals:
        """What was allowed in earlier runs. Raises ConfigError."""
        if self._store is None:
            return Approvals()
        self._saved = from_toml(await asyncio.to_thread(self._store.read, APPROVALS))
        return Approvals(self._saved)

    def mark_stale(self) -> None:
        """The approvals are others than were written last."""
        self._stale = True

    async def save(self, approvals: Approvals) -> None:
        """Write what changed, if anything did. Never raises: what cannot be saved is an alarm."""
        async with self._writing:
            if self._store is None or not self._stale:
                return
            self._stale = False
            before, after = self._saved, tuple(approvals.lasting())
            try:
                await asyncio.to_thread(self._store.update, APPROVALS, lambda data: merged(data, before, after))
                self._saved = after
            except ConfigError as error:
                self._alarm(f"what you allowed could not be saved: {error}")
            except Exception as error:
                self._alarm(f"what you allowed could not be saved: {fault(error)}")
