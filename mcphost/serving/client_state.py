"""The state of one client beyond a session: requests that wait for its next attempt, and its tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from mcphost.serving.rounds import Rounds
from mcphost.serving.tasks import ServedTask, TaskBook


class ClientState:
    """``clock`` returns monotonic seconds. `observers` hear of each task whose status changed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.rounds = Rounds(clock)
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

    def close(self) -> None:
        """The client does not come back: give up what it has."""
        self.rounds.clear()
        self.tasks.close()

    def _announce(self, task: ServedTask) -> None:
        for observer in list(self.observers):
            observer(task)
