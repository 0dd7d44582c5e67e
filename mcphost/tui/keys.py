"""One key at a time: a key is given out only when the one before has done all it does.

Textual hands each key to what has the focus at that moment, and only later learns that an earlier key has moved the
focus. Somebody who types quickly, or over a slow link, would lose letters: ``/storm`` must reach the filter whole.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from textual.events import Key
from textual.message_pump import MessagePump

PATIENCE: Final = 0.25
"""Seconds after which a key counts as done where what it went to is gone."""

REPRIEVES: Final = 3
"""Times it may take as long again where what it went to is still there: the machine may be busy, and a key given out
too early is lost to what the one before was about to open."""

ROUNDS: Final = 4
"""Times the way from the focus up to the app is followed: enter in a form posts a message, that one another, and only
the last of them moves the focus."""


class KeyOrder:
    """Holds keys back. ``give`` hands one out; ``target`` is what will get it first; ``app`` is where it ends."""

    def __init__(
        self, app: MessagePump, give: Callable[[Key], Awaitable[None]], target: Callable[[], MessagePump]
    ) -> None:
        self._app, self._give, self._target = app, give, target
        self._held: deque[Key] = deque()
        self._under_way = 0
        self._last = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        """Has some key not done yet all it does?"""
        return bool(self._under_way)

    async def take(self, key: Key) -> None:
        """Give this key out, now or when its turn comes."""
        if self._under_way:
            self._held.append(key)
        else:
            await self._begin(key)

    async def _begin(self, key: Key) -> None:
        self._last += 1
        turn = self._under_way = self._last
        target = self._target()
        self._expect(turn, target, REPRIEVES)
        await self._give(key)
        self._follow(turn, target, target, ROUNDS)

    def _expect(self, turn: int, target: MessagePump, reprieves: int) -> None:
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._late, turn, target, reprieves)

    def _late(self, turn: int, target: MessagePump, reprieves: int) -> None:
        if reprieves and target.is_running:
            self._expect(turn, target, reprieves - 1)
        else:
            self._app.call_later(self._end, turn)

    def _follow(self, turn: int, start: MessagePump, node: MessagePump, rounds: int) -> None:
        """Climb as the key does, from queue to queue, always behind it and behind what it caused on the way."""
        parent = node._parent
        if parent is not None:
            node.call_later(self._follow, turn, start, parent, rounds)
        elif rounds > 1:
            node.call_later(self._follow, turn, start, start, rounds - 1)
        else:
            node.call_later(self._app.call_later, self._end, turn)

    async def _end(self, turn: int) -> None:
        if turn != self._under_way:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._under_way = 0
        if self._held:
            await self._begin(self._held.popleft())
