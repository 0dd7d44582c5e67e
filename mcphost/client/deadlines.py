"""How long each of many requests may still wait, with one timer for all of them.

Knows moments and tasks. Refuses to know requests. `asyncio.timeout` does the same with a timer for each request, and
making and dropping that timer costs as much as writing the request and reading its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self


class Deadlines:
    """The deadlines of all requests that wait, and the timer for the nearest."""

    def __init__(self) -> None:
        self.running: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._holders = 0
        self._held_at = 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile the clock of those that hold stands still, the hard limit's too; any number of times at once."""
        if not self._holders:
            self._held_at = asyncio.get_running_loop().time()
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            if not self._holders:
                self._go_on()

    def close(self) -> None:
        """Drop the timer, unless somebody still waits."""
        if self._timer is not None and not self.running:
            self._timer.cancel()
            self._timer = None

    def wake(self, at: float) -> None:
        """Look at ``at``, or before. The timer outlives the request: the next one wants one, and looking is cheap."""
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(at, self._look)

    def _look(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for deadline in tuple(self.running):
            if deadline.at <= now and self._runs(deadline):
                deadline.strike()
        nearest = min((deadline.at for deadline in self.running if self._runs(deadline)), default=None)
        if nearest is not None:
            self.wake(nearest)

    def _runs(self, deadline: Deadline) -> bool:
        return not (deadline.passed or (self._holders and deadline.holds))

    def _go_on(self) -> None:
        """Nobody is at work any more: what time that took counts for nobody."""
        now = asyncio.get_running_loop().time()
        for deadline in self.running:
            if deadline.holds and not deadline.passed:
                deadline.shift(now - max(self._held_at, deadline.began))
                self.wake(deadline.at)


class Deadline:
    """Interrupts what the current task waits for inside ``with``, by TimeoutError, ``idle`` seconds after the last
    `extend`, and ``hard`` seconds after it was made however often that was called.

    With ``holds`` its clock stands still while that of `Deadlines` is held. As with `asyncio.timeout`, a task that
    somebody else cancelled as well stays cancelled.
    """

    __slots__ = ("_all", "_cancelling", "_hard_at", "_idle", "_now", "_task", "at", "began", "holds", "passed")

    def __init__(self, all_: Deadlines, idle: float, hard: float, *, holds: bool = False) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._all, self._task, self._cancelling = all_, task, task.cancelling()
        self._now = asyncio.get_running_loop().time
        self.began = self._now()
        self._idle, self._hard_at = idle, self.began + hard
        self.passed, self.holds = False, holds
        self.extend()

    def extend(self) -> None:
        """There was a sign of life: ``idle`` starts anew."""
        self.at = min(self._now() + self._idle, self._hard_at)

    def shift(self, seconds: float) -> None:
        """So much of the time is given back."""
        self._hard_at += seconds
        self.at = min(self.at + seconds, self._hard_at)

    @property
    def hard(self) -> bool:
        """Is it over for good, whatever signs of life there were?"""
        return self._now() >= self._hard_at

    def strike(self) -> None:
        """The time is over: interrupt the task."""
        self.passed = True
        self._task.cancel()

    def __enter__(self) -> Self:
        self._all.running.add(self)
        self._all.wake(self.at)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._all.running.discard(self)
        if self.passed and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error
