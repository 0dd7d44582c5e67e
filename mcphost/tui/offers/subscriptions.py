"""Which resources are watched, which of them changed while nobody looked, and what of that is on screen."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from mcphost.host.connections.subscriptions import Subscription, SubscriptionState
from mcphost.protocol.models.resources import ReadResourceResult

Key = tuple[str, str]
"""A server and a URI."""

Watched = Mapping[Key, Subscription]

WATCH_MARKS: Final = {SubscriptionState.WATCHING: "◉", SubscriptionState.WAITING: "◎", SubscriptionState.REFUSED: "✖"}
CHANGED: Final = "✱"
LEGEND: Final = "◉ watched, ✱ changed since you saw it, ◎ waiting for the server, ✖ refused by it"


class WatchMarks:
    """The marks of ``watched``, kept from one state of the watches to the next."""

    def __init__(self) -> None:
        self.watched: Watched = {}
        self._seen: dict[Key, int] = {}
        self._taken: dict[Key, tuple[ReadResourceResult | None, datetime | None]] = {}

    def show(self, watched: Watched, looked_at: Key | None) -> None:
        """These are watched now, and this one is on screen."""
        counts = {key: watch.updates for key, watch in watched.items()}
        self._seen = {key: count if key == looked_at else self._seen.get(key, 0) for key, count in counts.items()}
        self.watched = watched
        for key in self._taken.keys() - watched.keys():
            del self._taken[key]

    def changed(self, key: Key) -> bool:
        """Did it change while it was not on screen?"""
        return key in self.watched and self.watched[key].updates > self._seen[key]

    def mark(self, key: Key) -> str:
        """One character, or nothing for what is not watched."""
        if key not in self.watched:
            return ""
        return CHANGED if self.changed(key) else WATCH_MARKS[self.watched[key].state]

    def news(self, key: Key) -> ReadResourceResult | None:
        """What its watch has read that was not taken yet."""
        watch = self.watched.get(key)
        return None if watch is None or watch.result is self._taken.get(key, (None,))[0] else watch.result

    def take(self, key: Key, at: datetime | None = None) -> None:
        """What its watch has read is shown since ``at``; None: something else is, and at least as new."""
        if key in self.watched:
            self._taken[key] = self.watched[key].result, at

    def updated(self, key: Key) -> datetime | None:
        """Since when is shown what its watch has read?"""
        return self._taken.get(key, (None, None))[1]
