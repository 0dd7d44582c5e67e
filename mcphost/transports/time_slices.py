"""Lines handed on a turn at a time, so that a server that floods leaves room for the others.

Knows time and one reading pipe. Refuses to know what a line is. While lines wait, their pipe is not read: the flood
stays with whoever makes it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final, Generic, TypeVar

SLICE: Final = 0.005
"""Seconds of one turn: a key press that waits for several servers' turns is still answered at once."""

_OVER: Final = object()
_T = TypeVar("_T")


class Pace:
    """Lets the event loop go on after each `SLICE` of a coroutine that would not wait otherwise."""

    def __init__(self) -> None:
        self._end = time.monotonic() + SLICE

    async def keep(self) -> None:
        """Let the others go on if this turn is over."""
        if time.monotonic() >= self._end:
            await asyncio.sleep(0)
            self._end = time.monotonic() + SLICE


async def in_turns(steps: Generator[None, None, _T]) -> _T:
    """Go through all steps; what they return."""
    pace = Pace()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: _T = end.value
            return value
        await pace.keep()


class TimeSlices(Generic[_T]):
    """Gives what is added to ``take``, in order, and lets the event loop go on after each `SLICE`.

    ``take`` returns the steps that are left to be done before the next, if there are any.
    """

    def __init__(self, take: Callable[[_T], Iterator[None] | None]) -> None:
        self._take = take
        self._steps: Iterator[None] | None = None
        self._waiting: deque[_T] = deque()
        self._pipe: asyncio.ReadTransport | None = None
        self.idle = asyncio.Event()
        """Set while nothing waits."""
        self.idle.set()

    def read_from(self, pipe: asyncio.ReadTransport | None) -> None:
        """The pipe that is not read while lines wait."""
        self._pipe = pipe

    def add(self, items: Iterable[_T]) -> None:
        """Hand these on after what waits already."""
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
        asyncio.get_running_loop().call_soon(self._turn)
