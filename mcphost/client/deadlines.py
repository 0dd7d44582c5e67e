"""Deadlines of many requests on one timer.

`asyncio.timeout` does the same with a timer per request, which costs as much as writing the request and reading its
response.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from types import TracebackType
from typing import Self

from mcphost.errors import RequestTimeout


class Deadlines:
    """The deadlines of all pending requests of one connection, and the timer of the nearest."""

    def __init__(self) -> None:
        self.running: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._pauses = 0
        self._paused_at = 0.0

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        # Looked up once, not for each request: before Python 3.12 each look-up is a system call (getpid).
        return asyncio.get_running_loop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clocks of all pausable deadlines inside the block. May be nested and concurrent."""
        if not self._pauses:
            self._paused_at = self.loop.time()
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._resume()

    def close(self) -> None:
        """Cancel the timer if no deadline runs."""
        if self._timer is not None and not self.running:
            self._timer.cancel()
            self._timer = None

    def wake(self, at: float) -> None:
        """Check the deadlines at ``at`` or before."""
        # The timer outlives its request: the next one needs a timer too, and a check is cheap.
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = self.loop.call_at(at, self._check)

    def _check(self) -> None:
        self._timer = None
        now = self.loop.time()
        for deadline in tuple(self.running):
            if deadline.at <= now and self._runs(deadline):
                deadline.strike()
        nearest = min((deadline.at for deadline in self.running if self._runs(deadline)), default=None)
        if nearest is not None:
            self.wake(nearest)

    def _runs(self, deadline: Deadline) -> bool:
        return not (deadline.passed or (self._pauses and deadline.pausable))

    def _resume(self) -> None:
        now = self.loop.time()
        for deadline in self.running:
            if deadline.pausable and not deadline.passed:
                deadline.shift(now - max(self._paused_at, deadline.began))


class Deadline:
    """Raises TimeoutError inside its block ``idle`` seconds after the last `extend`, and ``hard`` seconds after its
    creation in any case.

    With ``pausable`` its clock stops inside `Deadlines.paused`. As with `asyncio.timeout`, a task that is also
    cancelled from outside stays cancelled.
    """

    __slots__ = ("_all", "_cancelling", "_hard_at", "_idle", "_now", "_task", "at", "began", "passed", "pausable")

    def __init__(self, all_: Deadlines, idle: float, hard: float, *, pausable: bool = False) -> None:
        task = asyncio.current_task(all_.loop)
        assert task is not None
        self._all, self._task, self._cancelling = all_, task, task.cancelling()
        self._now = all_.loop.time
        self.began = self._now()
        self._idle, self._hard_at = idle, self.began + hard
        self.at = self.began + min(idle, hard)
        self.passed, self.pausable = False, pausable

    def extend(self) -> None:
        """Restart the idle time."""
        self.at = min(self._now() + self._idle, self._hard_at)

    def shift(self, seconds: float) -> None:
        """Move the deadline back by ``seconds``."""
        self._hard_at += seconds
        self.at = min(self.at + seconds, self._hard_at)
        self._all.wake(self.at)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop this clock inside a block that ends before the deadline's own. Not for use with `Deadlines.paused`."""
        began = self._now()
        self._all.running.discard(self)
        try:
            yield
        finally:
            self._all.running.add(self)
            self.shift(self._now() - began)

    @property
    def elapsed(self) -> float:
        """Seconds since the creation."""
        return self._now() - self.began

    @property
    def left(self) -> float:
        """Seconds until the hard limit."""
        return self._hard_at - self._now()

    @property
    def hard(self) -> bool:
        """True if the hard limit is reached."""
        return self._now() >= self._hard_at

    def strike(self) -> None:
        """Cancel the task because its time is over."""
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


class TimeBudget:
    """The ``seconds`` that the requests of one ``method`` call may take together; ``left`` is what remains of them."""

    def __init__(self, method: str, seconds: float) -> None:
        self.method, self.seconds, self.left = method, seconds, seconds

    @asynccontextmanager
    async def spend(self) -> AsyncIterator[None]:
        """Count the time inside the block. Raises RequestTimeout once nothing is left."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(max(self.left, 0)) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise RequestTimeout(self.method, self.seconds, hard=True) from None
        finally:
            self.left -= clock() - began
