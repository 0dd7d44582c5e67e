"""Measures how long an event loop is held, whatever else the machine does."""

from __future__ import annotations

import time
from typing import Any


class LoopWatchdog:
    """Records the most processor time that the loop's thread uses in one turn, until `stop`.

    Waiting is not counted: a busy machine takes the processor, or the interpreter's lock, away for as long as it likes.
    Work that blocks is found by what else goes on meanwhile.
    """

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._whole_turn = self._loop._run_once
        self._loop._run_once = self._turn
        self.restart()

    def restart(self) -> None:
        """Forget what was seen so far."""
        self._longest = 0.0
        self._began = time.thread_time()

    @property
    def longest(self) -> float:
        """Seconds; the turn that asks for them counts, too."""
        return max(self._longest, time.thread_time() - self._began)

    def stop(self) -> None:
        self._loop._run_once = self._whole_turn

    def _turn(self) -> None:
        self._began = time.thread_time()
        self._whole_turn()
        self._longest = self.longest
