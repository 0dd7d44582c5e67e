"""What outlives a run: the approvals, read at the start and written whenever they change.

Knows one state file and when it is out of date. Refuses to know where it lies and what an approval means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from mcphost.errors import ConfigError
from mcphost.host.approvals import Approvals, from_toml, to_toml
from mcphost.host.faults import fault

APPROVALS: Final = "approvals"


class Store(Protocol):
    """Where the app keeps what it learned between runs. Every call may take as long as a disk does."""

    def read(self, name: str) -> Mapping[str, Any]:
        """The content of a state file; empty where there is none. Raises ConfigError."""

    def write(self, name: str, data: Mapping[str, Any]) -> None:
        """Replace a state file. Raises ConfigError."""


class Memory:
    """Reads and writes approvals through ``store`` (None: there is none); ``alarm`` takes a sentence for the user."""

    def __init__(self, store: Store | None, alarm: Callable[[str], None]) -> None:
        self._store, self._alarm = store, alarm
        self._writing = asyncio.Lock()
        self._stale = False

    async def approvals(self) -> Approvals:
        """What was allowed in earlier runs. Raises ConfigError."""
        if self._store is None:
            return Approvals()
        return Approvals(from_toml(await asyncio.to_thread(self._store.read, APPROVALS)))

    def mark_stale(self) -> None:
        """The approvals are others than were written last."""
        self._stale = True

    async def save(self, approvals: Approvals) -> None:
        """Write what changed, if anything did. Never raises: what cannot be saved is an alarm."""
        async with self._writing:
            if self._store is None or not self._stale:
                return
            self._stale = False
            try:
                await asyncio.to_thread(self._store.write, APPROVALS, to_toml(approvals.lasting()))
            except ConfigError as error:
                self._alarm(f"what you allowed could not be saved: {error}")
            except Exception as error:
                self._alarm(f"what you allowed could not be saved: {fault(error)}")
