"""Which resources are watched, and which of them changed since the user last saw them."""

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
LEGEND: Final = "◉ watched, ✱ changed since you last saw it, ◎ waiting for the server, ✖ refused"


class WatchMarks:
    """Computes the marks, and remembers what was seen between updates."""

    def __init__(self) -> None:
        self.watched: Watched = {}
        self._seen_updates: dict[Key, int] = {}
        self._shown: dict[Key, tuple[ReadResourceResult | None, datetime | None]] = {}

    def show(self, watched: Watched, visible: Key | None) -> None:
        """Update the watched resources; ``visible`` is on screen."""
        counts = {key: watch.updates for key, watch in watched.items()}
        self._seen_updates = {
            key: count if key == visible else self._seen_updates.get(key, 0) for key, count in counts.items()
        }
        self.watched = watched
        for key in self._shown.keys() - watched.keys():
            del self._shown[key]

    def changed(self, key: Key) -> bool:
        """Has it changed since it was last on screen?"""
        return key in self.watched and self.watched[key].updates > self._seen_updates[key]

    def mark(self, key: Key) -> str:
        """One character; empty for a resource that is not watched."""
        if key not in self.watched:
            return ""
        return CHANGED if self.changed(key) else WATCH_MARKS[self.watched[key].state]

    def unshown_result(self, key: Key) -> ReadResourceResult | None:
        """What the subscription read that is not shown yet."""
        watch = self.watched.get(key)
        return None if watch is None or watch.result is self._shown.get(key, (None,))[0] else watch.result

    def mark_shown(self, key: Key, at: datetime | None = None) -> None:
        """What the subscription read is shown since ``at``; None: something at least as new is shown."""
        if key in self.watched:
            self._shown[key] = self.watched[key].result, at

    def updated(self, key: Key) -> datetime | None:
        """Since when what the subscription read is shown."""
        return self._shown.get(key, (None, None))[1]
