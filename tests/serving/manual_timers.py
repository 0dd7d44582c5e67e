"""The timers of an event loop whose time a test moves."""

from __future__ import annotations

from collections.abc import Callable


class ManualTimer:
    def __init__(self, at: float, callback: Callable[[], object]) -> None:
        self.at, self.callback = at, callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualTimers:
    """`mcphost.serving.time_limits.Timers`."""

    def __init__(self) -> None:
        self.now = 0.0
        self._all: list[ManualTimer] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], object], /) -> ManualTimer:
        timer = ManualTimer(self.now + delay, callback)
        self._all.append(timer)
        return timer

    @property
    def waiting(self) -> list[float]:
        """The times of the timers that are set."""
        return sorted(each.at for each in self._all if not each.cancelled)

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while self.waiting and self.waiting[0] <= end:
            timer = min((each for each in self._all if not each.cancelled), key=lambda each: each.at)
            self._all.remove(timer)
            self.now = timer.at
            timer.callback()
        self.now = end
