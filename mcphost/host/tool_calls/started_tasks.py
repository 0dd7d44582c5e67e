"""Remembers the tasks that calls became at modern servers, which list none: so they can be collected in a later run.

Specification: extensions/tasks (from 2026-07-28 on).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from mcphost.config import ServerConfig
from mcphost.errors import McphostError
from mcphost.host.internal_error import internal_error
from mcphost.host.state_store import StateStore
from mcphost.json_values import as_list
from mcphost.lazy_dataclass import dataclass

FILE: Final = "tasks"

KEPT: Final = 50
"""Tasks of one server in the file, the latest."""

KEPT_IN_ALL: Final = 500

LONGEST_ID: Final = 2_000
"""Characters of an id: a longer one is not written down."""


@dataclass(frozen=True, slots=True)
class StartedTask:
    """A task that a call became: ``began`` is when it did, in seconds since 1970, by the clock here."""

    id: str
    tool: str
    began: float


class StartedTasks:
    """The tasks by entry of the configuration, kept in ``store`` (None: for this run only).

    ``warn`` takes the name of a server (perhaps empty) and a sentence for the log: a file that cannot be used has no
    other effect.
    """

    def __init__(self, store: StateStore | None, warn: Callable[[str, str], None]) -> None:
        self._store, self._warn = store, warn
        self._tasks: dict[tuple[str, str], StartedTask] = {}
        self._saving = asyncio.Lock()

    async def load(self) -> None:
        """Read the file."""
        if self._store is None:
            return
        try:
            self._tasks = _from_toml(await asyncio.to_thread(self._store.read, FILE))
        except Exception as error:
            self._warn("", f"the tasks of earlier runs could not be read: {_words(error)}")

    def of(self, server: ServerConfig) -> list[StartedTask]:
        """The tasks of this server, oldest first."""
        key = _key(server)
        return [task for (owner, _), task in self._tasks.items() if owner == key]

    def find(self, server: ServerConfig, task_id: str) -> StartedTask | None:
        """The task of this id, if it was started here."""
        return self._tasks.get((_key(server), task_id))

    def keeps(self, server: ServerConfig, task_id: str) -> bool:
        """Will another run know this task?"""
        return self._store is not None and self.find(server, task_id) is not None

    async def add(self, server: ServerConfig, task_id: str, tool: str) -> None:
        """A call became this task."""
        if len(task_id) <= LONGEST_ID:
            await self._set((_key(server), task_id), StartedTask(task_id, tool, time.time()))

    async def forget(self, server: ServerConfig, task_id: str) -> None:
        """Its server does not keep it any more."""
        if (key := (_key(server), task_id)) in self._tasks:
            await self._set(key, None)

    async def _set(self, key: tuple[str, str], task: StartedTask | None) -> None:
        self._tasks = _changed(self._tasks, key, task)
        if self._store is None:
            return
        update = self._store.update
        try:
            async with self._saving:
                await asyncio.to_thread(update, FILE, lambda data: _as_toml(_changed(_from_toml(data), key, task)))
        except Exception as error:
            self._warn("", f"which tasks were started could not be saved: {_words(error)}")


def _words(error: Exception) -> str:
    return str(error if isinstance(error, McphostError) else internal_error(error))


def _key(server: ServerConfig) -> str:
    """A digest of what runs the server, which may hold a secret."""
    return sha256(server.identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]


_Tasks = dict[tuple[str, str], StartedTask]


def _changed(tasks: _Tasks, key: tuple[str, str], task: StartedTask | None) -> _Tasks:
    """The tasks with this one set or removed, and the oldest left out where there are too many."""
    kept = {known: each for known, each in tasks.items() if known != key}
    if task is not None:
        kept[key] = task
    same = [known for known in kept if known[0] == key[0]]
    for known in [*same[:-KEPT], *list(kept)[:-KEPT_IN_ALL]]:
        kept.pop(known, None)
    return kept


def _from_toml(data: Mapping[str, Any]) -> _Tasks:
    """The tasks in a state file; anything else in it is ignored."""
    found: _Tasks = {}
    for table in as_list(data.get("started")):
        match table:
            case {"server": str(server), "id": str(name), "tool": str(tool), "began": float(began)}:
                found[server, name] = StartedTask(name, tool, began)
    return found


def _as_toml(tasks: _Tasks) -> dict[str, Any]:
    return {
        "started": [
            {"server": server, "id": task.id, "tool": task.tool, "began": task.began}
            for (server, _), task in tasks.items()
        ]
    }
