"""The state of one client beyond a session: requests that wait for its next attempt, and its tasks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from mcphost.serving.rounds import Rounds
from mcphost.serving.served_request import ServedRequest
from mcphost.serving.tasks import ServedTask, TaskBook
from mcphost.serving.time_limits import NO_TIMERS, Expiry, Rate, Timers

ASK_SECONDS: Final = 600.0
"""For the client to answer a request; the call that asks then goes on without an answer."""

LOG_MESSAGES: Final = 100
"""Log messages to one client in a second: more are not read, and hold up answers."""

Ask = tuple[ServedRequest, str]
"""A request and the key of what it asks."""


class ClientState:
    """``timers`` are those of an event loop. `observers` hear of each task whose status changed."""

    def __init__(self, timers: Timers = NO_TIMERS) -> None:
        self.rounds = Rounds(timers)
        self.asks: Expiry[Ask] = Expiry(timers, ASK_SECONDS, self._give_up)
        self.logs = Rate(LOG_MESSAGES, timers.time)
        self.tasks = TaskBook(self._announce)
        self._keys = count(1)
        self.observers: list[Callable[[ServedTask], None]] = []
        self.subscribed: frozenset[str] = frozenset()
        """The resources that the client is subscribed to, in any session."""
        self._subscribed: dict[object, frozenset[str]] = {}

    def new_key(self) -> str:
        """A key for a request to the client, which no other has."""
        return f"ask-{next(self._keys)}"

    def subscribe(self, session: object, uris: frozenset[str]) -> bool:
        """Take the resources that a session is subscribed to now; True if that changes `subscribed`."""
        before = self.subscribed
        self._subscribed.pop(session, None)
        if uris:
            self._subscribed[session] = uris
        self.subscribed = frozenset().union(*self._subscribed.values())
        return self.subscribed != before

    @property
    def is_idle(self) -> bool:
        """True if nothing waits for the client, and nothing runs for it."""
        return not self.rounds.waiting and not self.tasks.running

    def close(self) -> None:
        """The client does not come back: give up what it has."""
        self.rounds.clear()
        self.tasks.close()

    def expire(self) -> None:
        """End what is open for too long; needed only without timers."""
        self.rounds.expire()
        self.asks.expire()

    def _give_up(self, ask: Ask) -> None:
        request, key = ask
        request.give_up(key, f"The client did not answer within {ASK_SECONDS:g} seconds.")
        if request.task_id is not None and not request.over:
            self.tasks.change(request)

    def _announce(self, task: ServedTask) -> None:
        for observer in list(self.observers):
            observer(task)
