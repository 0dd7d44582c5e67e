"""Bounds how long work may hold the event loop, so that what one server sends does not block the others."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final, Generic, TypeVar

SLICE: Final = 0.005
"""Seconds of one slice; short enough for key presses between the slices of several servers."""

ROUNDS: Final = 8
"""Rounds of the event loop between two slices of a backlog. A key takes some twenty until it is painted, each far
shorter than a slice."""

_OVER: Final = object()
_T = TypeVar("_T")


class TimeSlice:
    """Yields to the event loop after each `SLICE` of a coroutine that would not await otherwise."""

    def __init__(self) -> None:
        self._end = time.monotonic() + SLICE

    async def pause_if_over(self) -> None:
        """Yield if the slice is over."""
        if time.monotonic() >= self._end:
            await asyncio.sleep(0)
            self._end = time.monotonic() + SLICE


async def in_turns(steps: Generator[None, None, _T]) -> _T:
    """Run all steps, yielding to the event loop after each `SLICE`; return their result."""
    time_slice = TimeSlice()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: _T = end.value
            return value
        await time_slice.pause_if_over()


class SlicedQueue(Generic[_T]):
    """Calls ``take`` for each added item, in order, and yields to the event loop after each `SLICE`.

    ``take`` may return steps, which are run before the next item. While items wait, their pipe is not read, so that the
    backlog stays with the server.
    """

    def __init__(self, take: Callable[[_T], Iterator[None] | None]) -> None:
        self._take = take
        self._steps: Iterator[None] | None = None
        self._waiting: deque[_T] = deque()
        self._pipe: asyncio.ReadTransport | None = None
        self.idle = asyncio.Event()
        """Set while no item waits, and none is held."""
        self.idle.set()

    def read_from(self, pipe: asyncio.ReadTransport | None) -> None:
        """Pause ``pipe`` while items wait or are held."""
        self._pipe = pipe
        if pipe is not None and not self.idle.is_set():
            pipe.pause_reading()

    def hold(self) -> None:
        """Do not call ``take`` until `release`. Call this before anything is added."""
        self.idle.clear()

    def release(self) -> None:
        """Take what was added meanwhile."""
        self._turn()

    def add(self, items: Iterable[_T]) -> None:
        self._waiting.extend(items)
        if self.idle.is_set():
            self._turn()

    def _turn(self) -> None:
        end = time.monotonic() + SLICE
        while (self._steps or self._waiting) and time.monotonic() < end:
            if self._steps is None:
                self._steps = self._take(self._waiting.popleft())
            elif next(self._steps, _OVER) is _OVER:
                self._steps = None
        if self._steps or self._waiting:
            self._wait()
        elif not self.idle.is_set():
            self.idle.set()
            if self._pipe is not None:
                self._pipe.resume_reading()

    def _wait(self) -> None:
        if self.idle.is_set():
            self.idle.clear()
            if self._pipe is not None:
                self._pipe.pause_reading()
        self._let_others_run(ROUNDS)

    def _let_others_run(self, rounds: int) -> None:
        if rounds:
            asyncio.get_running_loop().call_soon(self._let_others_run, rounds - 1)
        else:
            self._turn()
