"""Passes a key on only after the key before it has taken full effect.

Textual sends each key to the widget that has the focus at that moment, and only later learns that an earlier key moved
the focus. Quick typing, or a slow link, would lose letters: ``/storm`` must reach the filter complete.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from textual.events import Key
from textual.message_pump import MessagePump

TIMEOUT: Final = 0.25
"""Seconds after which a key counts as done if the widget that it went to is gone."""

EXTENSIONS: Final = 3
"""Times that the timeout is extended while that widget still exists: on a busy machine, a key that is passed on too
early misses what the key before it was about to open."""

ROUNDS: Final = 4
"""Times that the way from the focus up to the app is followed: enter in a form posts a message, which causes another,
and only the last one moves the focus."""


class KeyOrder:
    """``pass_on`` passes a key on, ``target`` returns the widget that gets it first, and ``app`` is where it ends."""

    def __init__(
        self, app: MessagePump, pass_on: Callable[[Key], Awaitable[None]], target: Callable[[], MessagePump]
    ) -> None:
        self._app, self._pass_on, self._target = app, pass_on, target
        self._waiting: deque[Key] = deque()
        self._current = 0
        self._last = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        """Is some key not done yet?"""
        return bool(self._current)

    async def take(self, key: Key) -> None:
        """Pass this key on, now or when its turn comes."""
        if self._current:
            self._waiting.append(key)
        else:
            await self._start(key)

    async def _start(self, key: Key) -> None:
        self._last += 1
        turn = self._current = self._last
        target = self._target()
        self._set_timeout(turn, target, EXTENSIONS)
        await self._pass_on(key)
        self._follow(turn, target, target, ROUNDS)

    def _set_timeout(self, turn: int, target: MessagePump, extensions: int) -> None:
        self._timer = asyncio.get_running_loop().call_later(TIMEOUT, self._timed_out, turn, target, extensions)

    def _timed_out(self, turn: int, target: MessagePump, extensions: int) -> None:
        if extensions and target.is_running:
            self._set_timeout(turn, target, extensions - 1)
        else:
            self._app.call_later(self._end, turn)

    def _follow(self, turn: int, start: MessagePump, node: MessagePump, rounds: int) -> None:
        """Follow the key from queue to queue, behind it and behind what it caused on the way."""
        parent = node._parent
        if parent is not None:
            node.call_later(self._follow, turn, start, parent, rounds)
        elif rounds > 1:
            node.call_later(self._follow, turn, start, start, rounds - 1)
        else:
            node.call_later(self._app.call_later, self._end, turn)

    async def _end(self, turn: int) -> None:
        if turn != self._current:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._current = 0
        if self._waiting:
            await self._start(self._waiting.popleft())
