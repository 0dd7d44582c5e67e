"""The resources of one server that somebody watches: subscribed to, read again when they change, restored.

Knows which are wanted, whatever happens to the connection. Refuses to know what is shown of them.

Specification: server/resources (subscriptions).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from mcphost.client.client import Client, RequestTimeouts
from mcphost.errors import McphostError
from mcphost.host.error_boundary import without_secrets
from mcphost.protocol.models.tools import LogLevel

if TYPE_CHECKING:
    from mcphost.protocol.models.tools import ReadResourceResult

REREAD_DELAY: Final = 0.1
"""Seconds in which more updates may come before a changed resource is read again."""

REREAD_PAUSE: Final = 1.0
"""Seconds between two readings, however often a server tells of updates."""

REREAD_TIMEOUTS: Final = RequestTimeouts(20.0, 20.0)


class SubscriptionState(Enum):
    """Where a watch stands."""

    WAITING = "waiting for the server"
    WATCHING = "watching"
    REFUSED = "the server does not let it be watched"


@dataclass(slots=True, eq=False)
class Subscription:
    """One watched resource."""

    uri: str
    state: SubscriptionState = SubscriptionState.WAITING
    updates: int = 0
    """How often the server said that it changed."""
    stale: bool = False
    """Did it change since it was read last?"""
    result: ReadResourceResult | None = None
    """What the last reading after an update brought; None before the first."""
    error: McphostError | None = None
    """Why it is not watched, or why the last reading failed."""

    def covers(self, uri: str) -> bool:
        """Is an update of ``uri`` one of this: the resource itself, or something below it?"""
        return uri == self.uri or uri.startswith(self.uri.rstrip("/") + "/")


class Subscriptions:
    """The watches of one server. ``changed`` is told the URI whenever its watch changed."""

    def __init__(
        self, note: Callable[[LogLevel, str], None], changed: Callable[[str], None], mask: Callable[[str], str]
    ) -> None:
        self._note, self._changed, self._mask = note, changed, mask
        self._due = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self.all: dict[str, Subscription] = {}
        """By URI, in the order they were begun."""

    async def add(self, client: Client, uri: str) -> Subscription:
        """Watch ``uri``. Raises as a request does, and then nothing is watched."""
        async with self._one_at_a_time:
            watch = self.all.get(uri)
            if watch is not None and watch.state is SubscriptionState.WATCHING:
                return watch
            watch = self.all[uri] = Subscription(uri)  # before asking: the first update may come with the answer
            try:
                await client.resources.subscribe(uri)
            except BaseException:
                self.all.pop(uri, None)
                raise
            watch.state = SubscriptionState.WATCHING
        self._changed(uri)
        return watch

    async def drop(self, client: Client | None, uri: str) -> None:
        """Watch ``uri`` no more, and tell the server if there is one. Never raises: a refusal is noted."""
        async with self._one_at_a_time:
            watch = self.all.pop(uri, None)
            if watch is None:
                return
            self._changed(uri)
            if client is None or watch.state is not SubscriptionState.WATCHING:
                return
            try:
                await client.resources.unsubscribe(uri)
            except McphostError as error:
                self._note(LogLevel.WARNING, f"the server did not end the subscription to {uri}: {error}")

    def updated(self, uri: str) -> None:
        """The server says that ``uri`` changed; what nobody watches is ignored."""
        for watch in self.all.values():
            if watch.covers(uri):
                watch.updates += 1
                self._outdate(watch)

    def lost(self) -> None:
        """The connection ended: all wait for the next."""
        for watch in self.all.values():
            watch.state = SubscriptionState.WAITING

    async def keep_current(self, client: Client) -> None:
        """Restore what an earlier connection watched, and read again what changed. Never ends by itself."""
        self.lost()  # an answer of that connection's may have been taken after its end
        for watch in list(self.all.values()):
            await self._restore(client, watch)
        while True:
            await self._due.wait()
            await asyncio.sleep(REREAD_DELAY)
            self._due.clear()
            await asyncio.gather(*(self._read(client, watch) for watch in list(self.all.values()) if watch.stale))
            await asyncio.sleep(REREAD_PAUSE)

    async def _restore(self, client: Client, watch: Subscription) -> None:
        async with self._one_at_a_time:
            if watch.state is not SubscriptionState.WAITING or self.all.get(watch.uri) is not watch:
                return
            try:
                await client.resources.subscribe(watch.uri)
            except McphostError as error:
                watch.state, watch.error = SubscriptionState.REFUSED, without_secrets(error, self._mask)
                self._note(LogLevel.WARNING, f"the subscription to {watch.uri} was not restored: {error}")
                self._changed(watch.uri)
                return
            watch.state, watch.error = SubscriptionState.WATCHING, None
        self._outdate(watch)  # nobody told us what happened in between

    def _outdate(self, watch: Subscription) -> None:
        self._due.set()
        if not watch.stale:  # an event for each of a flood of updates would flood the screen
            watch.stale = True
            self._changed(watch.uri)

    async def _read(self, client: Client, watch: Subscription) -> None:
        watch.stale = False  # before reading: what changes meanwhile is read once more
        try:
            watch.result, watch.error = await client.resources.read(watch.uri, timeouts=REREAD_TIMEOUTS), None
        except McphostError as error:
            watch.error = without_secrets(error, self._mask)
        self._changed(watch.uri)
