"""One renewal at a time, whose outcome all share who ask for one meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

RENEWAL_PAUSE: Final = 30.0
"""Seconds after a failed renewal in which none is tried."""

_T = TypeVar("_T")


class SharedRenewal(Generic[_T]):
    """The renewal of one token; ``name`` names its task."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._task: asyncio.Task[_T] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def join(self, renew: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """The outcome of the renewal under way, else of a new one."""
        # Not cancelled with its caller: a refresh token in an unread response would be lost.
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(renew(), name=self._name)
        return await asyncio.shield(self._task)

    async def wait_closed(self) -> None:
        """Wait for the renewal under way, if any."""
        if self._task is not None:
            await asyncio.wait([self._task])
