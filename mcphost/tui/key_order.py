"""Passes a key on only after the key before it has taken full effect.

Textual sends each key to the widget that has the focus at that moment, and only later learns that an earlier key moved
the focus. Quick typing, or a slow link, would lose letters: ``/storm`` must reach the filter complete.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

from textual.events import Callback, Key
from textual.message_pump import MessagePump
from textual.widget import Widget
from textual.worker import Worker

MOST_SECONDS: Final = 10.0
"""Seconds after which a key counts as done regardless. A busy machine may take seconds to open a dialog, and a key
passed on before that is lost to it; only what waits without end is not waited for."""

ROUNDS: Final = 4
"""Times that the way from the focus up to the app is followed: enter in a form posts a message, which causes another,
and only the last one moves the focus."""

DEPARTURES: Final = 4
"""Times that a key is followed anew because the part of the screen where it was is gone."""


class KeyOrder:
    """``pass_on`` passes a key on, ``target`` returns the widget that gets it first, and ``app`` is where it ends."""

    def __init__(
        self, app: MessagePump, pass_on: Callable[[Key], Awaitable[None]], target: Callable[[], MessagePump]
    ) -> None:
        self.app, self._pass_on, self.target = app, pass_on, target
        self.waiting: deque[Key] = deque()
        """Keys that wait for their turn."""
        self._current = 0
        self._last = 0
        self._timer: asyncio.TimerHandle | None = None
        self._opening: set[asyncio.Future[Any]] = set()

    @property
    def busy(self) -> bool:
        """Has some key not done yet all it does?"""
        return bool(self._current)

    async def take(self, key: Key) -> None:
        """Pass this key on, now or when its turn comes."""
        if self._current:
            self.waiting.append(key)
        else:
            await self._begin(key)

    def wait_for(self, worker: Worker[Any]) -> None:
        """Hold keys back until this worker of the current key has ended: it opens what they are meant for."""
        if self._current:
            opening = asyncio.ensure_future(worker.wait())
            self._opening.add(opening)
            opening.add_done_callback(self._opened)

    async def _begin(self, key: Key) -> None:
        target = self.target()
        turn = self._start()
        await self._pass_on(key)
        # A paste without brackets is thousands of letters: in a box for text, none of them moves the focus.
        while self.waiting and writes(key, target) and writes(self.waiting[0], target):
            await self._pass_on(self.waiting.popleft())
        _Climb(self, turn, target).step()

    def _start(self) -> int:
        """Begin to wait for what a key does, or for the rest of it."""
        if self._timer is not None:
            self._timer.cancel()
        self._last += 1
        self._current = self._last
        self._timer = asyncio.get_running_loop().call_later(MOST_SECONDS, self._give_up, self._last)
        return self._last

    def _give_up(self, turn: int) -> None:
        self._opening.clear()
        self.end_later(turn)

    def _opened(self, opening: asyncio.Future[Any]) -> None:
        if not opening.cancelled():
            opening.exception()  # the app reports it
        if opening in self._opening:
            self._opening.remove(opening)
            self.follow_anew()

    def follow_anew(self) -> None:
        """Follow the current key from the focus: it went on, or what had it failed."""
        if self._current and self.app.is_running:
            _Climb(self, self._start(), self.target()).step()

    def waits_for(self, turn: int) -> bool:
        return turn == self._current

    def end_later(self, turn: int) -> None:
        """End the wait for this key behind what its last effects left in the app's queue."""
        self.app.call_later(self._end, turn)

    async def _end(self, turn: int) -> None:
        if turn != self._current or self._opening:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._current = 0
        if self.waiting:
            await self._begin(self.waiting.popleft())


class _Climb:
    """Climbs as the key does, from queue to queue, always behind it and behind what it caused on the way.

    Each step is a bound method without arguments, since Textual reads the signature of any other callback anew: for
    some forty steps that took a sixth of a key's processor time.
    """

    def __init__(self, order: KeyOrder, turn: int, start: MessagePump) -> None:
        self._order, self._turn = order, turn
        self._departures = DEPARTURES
        self._begin(start)

    def _begin(self, start: MessagePump) -> None:
        self._start = self._node = start
        self._rounds = ROUNDS

    def step(self) -> None:
        if not self._order.waits_for(self._turn):
            return
        node, parent = self._node, self._node._parent
        is_app = node is self._order.app
        if is_app:
            self._node, self._rounds = self._start, self._rounds - 1
        elif parent is not None:
            self._node = parent
        is_gone = not node.is_running or (parent is None and not is_app)
        if is_gone or not node.post_message(Callback(callback=self.step if self._rounds else self._end)):
            self._depart()

    def _depart(self) -> None:
        """Continue from the focus: the key closed the part of the screen it was in."""
        if self._departures and self._order.app.is_running:
            self._departures -= 1
            self._begin(self._order.target())
            self.step()
        else:
            self._end()

    def _end(self) -> None:
        self._order.end_later(self._turn)


def writes(key: Key, target: MessagePump) -> bool:
    """Does the key only write a letter into the text of ``target``?"""
    return key.is_printable and isinstance(target, Widget) and target.check_consume_key(key.key, key.character)
