"""The tasks that services of a host start: one group, which ends with the host."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class BackgroundTasks:
    """Starts tasks between `open` and `close`."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None

    async def open(self) -> None:
        """Tasks can be started from now on. `close` must be awaited by the same task."""
        self._group = await asyncio.TaskGroup().__aenter__()

    async def close(self) -> None:
        """Wait for the end of all tasks, those included that they start meanwhile."""
        assert self._group is not None
        try:
            await self._group.__aexit__(None, None, None)
        finally:
            self._group = None

    def start(self, work: Coroutine[Any, Any, _T], name: str) -> asyncio.Task[_T]:
        assert self._group is not None
        return self._group.create_task(work, name=name)

    def start_if_open(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Start a task, or drop the work where none can be started any more."""
        if self._group is None:
            work.close()
        else:
            self._group.create_task(work, name=name)
