"""Limits of time: for what a client leaves open, by one timer, and for how often something is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

_Item = TypeVar("_Item")


class Timer(Protocol):
    def cancel(self) -> None: ...


class Timers(Protocol):
    """The part of an event loop that keeps time."""

    def time(self) -> float:
        """Monotonic seconds."""

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer: ...


class _NoTimers:
    """For programs without an event loop: the end of an item is noticed when `Expiry.expire` is called."""

    def time(self) -> float:
        return time.monotonic()

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer:
        return self

    def cancel(self) -> None:
        pass


NO_TIMERS: Final[Timers] = _NoTimers()


class Expiry(Generic[_Item]):
    """Items that last for the same time each; ``end`` takes those whose time is over."""

    def __init__(self, timers: Timers, seconds: float, end: Callable[[_Item], object]) -> None:
        self._timers, self._seconds, self._end = timers, seconds, end
        self._due: dict[_Item, float] = {}
        """In the order of their times."""
        self._timer: Timer | None = None

    def add(self, item: _Item) -> None:
        """Let an item last from now on."""
        self._due.pop(item, None)
        self._due[item] = self._timers.time() + self._seconds
        self._arm()

    def discard(self, item: _Item) -> None:
        if self._due.pop(item, None) is not None and not self._due and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def expire(self) -> None:
        """End the items whose time is over."""
        now = self._timers.time()
        while self._due:
            item, due = next(iter(self._due.items()))
            if due > now:
                return
            self.discard(item)
            self._end(item)

    def _arm(self) -> None:
        if self._timer is None and self._due:
            first = next(iter(self._due.values()))
            self._timer = self._timers.call_later(max(0.0, first - self._timers.time()), self._wake)

    def _wake(self) -> None:
        self._timer = None
        try:
            self.expire()
        finally:
            self._arm()


class Rate:
    """Admits ``most`` in each second; ``clock`` returns seconds."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self.most, self._clock = most, clock
        self._since = clock()
        self._admitted = self._refused = 0

    def admit(self) -> bool:
        now = self._clock()
        if now - self._since >= 1.0:
            self._since, self._admitted = now, 0
        if self._admitted >= self.most:
            self._refused += 1
            return False
        self._admitted += 1
        return True

    def take_refused(self) -> int:
        """The number refused since the last call."""
        refused, self._refused = self._refused, 0
        return refused
