"""Remembers the tasks that calls became at modern servers, which do not list them, for collecting in a later run.

Specification: extensions/tasks (from 2026-07-28 on).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Final

from mcphost.config import ServerConfig
from mcphost.config.state import StateFile, StateStore
from mcphost.host.internal_error import describe_failure
from mcphost.host.remembered import server_digest
from mcphost.lazy_dataclass import dataclass

FILE: Final = "tasks"

KEPT: Final = 50
"""Tasks of one server in the file, the latest."""

KEPT_IN_ALL: Final = 500

LONGEST_ID: Final = 2_000
"""Characters of an id: a longer one is not written down."""


@dataclass(frozen=True, slots=True)
class StartedTask:
    """A task that a call became."""

    server: str
    """Digest of what runs the server, see `server_digest`."""
    id: str
    tool: str
    began: float
    """Seconds since 1970, by the clock of this machine."""


@dataclass(frozen=True, slots=True)
class _TaskFile:
    started: Sequence[StartedTask] = field(default_factory=list)


class StartedTasks:
    """The tasks by entry of the configuration, kept in ``store`` (None: for this run only).

    ``warn`` takes a sentence for the log: a file that cannot be used has no other effect.
    """

    def __init__(self, store: StateStore | None, warn: Callable[[str], None]) -> None:
        self._file = None if store is None else StateFile(store, FILE, _TaskFile)
        self._warn = warn
        self._tasks: Sequence[StartedTask] = ()
        # Writes keep their order: the file's last tasks are the ones that are kept.
        self._saving = asyncio.Lock()

    async def load(self) -> None:
        """Read the file."""
        if self._file is None:
            return
        try:
            self._tasks = (await asyncio.to_thread(self._file.read)).started
        except Exception as error:
            self._warn(f"the tasks of earlier runs could not be read: {describe_failure(error)}")

    def tasks_of(self, server: ServerConfig) -> list[StartedTask]:
        """Return the tasks of this server, oldest first."""
        digest = server_digest(server.identity)
        return [task for task in self._tasks if task.server == digest]

    def find(self, server: ServerConfig, task_id: str) -> StartedTask | None:
        """Return the task of this id, if it was started here."""
        return next((task for task in self.tasks_of(server) if task.id == task_id), None)

    def keeps(self, server: ServerConfig, task_id: str) -> bool:
        """True if another run will know this task."""
        return self._file is not None and self.find(server, task_id) is not None

    async def add(self, server: ServerConfig, task_id: str, tool: str) -> None:
        """Remember that a call became this task."""
        if len(task_id) <= LONGEST_ID:
            task = StartedTask(server_digest(server.identity), task_id, tool, time.time())
            await self._change(lambda tasks: _latest([*_without(tasks, task), task]))

    async def forget(self, server: ServerConfig, task_id: str) -> None:
        """Forget a task that its server does not keep any more."""
        if (task := self.find(server, task_id)) is not None:
            await self._change(lambda tasks: _without(tasks, task))

    async def _change(self, change: Callable[[Iterable[StartedTask]], Sequence[StartedTask]]) -> None:
        self._tasks = change(self._tasks)
        if self._file is None:
            return
        try:
            async with self._saving:
                await asyncio.to_thread(self._file.update, lambda content: _TaskFile(change(content.started)))
        except Exception as error:
            self._warn(f"which tasks were started could not be saved: {describe_failure(error)}")


def _without(tasks: Iterable[StartedTask], task: StartedTask) -> list[StartedTask]:
    return [each for each in tasks if (each.server, each.id) != (task.server, task.id)]


def _latest(tasks: Sequence[StartedTask]) -> Sequence[StartedTask]:
    """The tasks within the bounds; only the server of the last one can have too many."""
    same = [each for each in tasks if each.server == tasks[-1].server]
    too_old = same[:-KEPT]
    return [each for each in tasks if each not in too_old][-KEPT_IN_ALL:]
