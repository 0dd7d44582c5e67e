"""Subscribes to resources of one server, reads them again when they change, and restores subscriptions on reconnect.

Specification: server/resources (subscriptions).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Final

from mcphost.client.cache import lies_below
from mcphost.client.client import Client, RequestTimeouts
from mcphost.client.subscriptions import ListenState, SubscriptionListener
from mcphost.errors import McphostError
from mcphost.host.internal_error import without_secrets
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.logging import LogLevel

if TYPE_CHECKING:
    from mcphost.protocol.models.resources import ReadResourceResult

USER: Final = "user"
"""Holds a subscription that the user began; all other holders read the resource themselves."""

REREAD_DELAY: Final = 0.1
"""Seconds in which more updates may come before a changed resource is read again."""

REREAD_PAUSE: Final = 1.0
"""Seconds between two readings, however often a server announces updates."""

REREAD_TIMEOUTS: Final = RequestTimeouts(20.0, 20.0)


@dataclass(frozen=True, slots=True)
class ListeningReport:
    """The way a modern server announces changes, in words; ``troubled``: it does not, although it should."""

    words: str
    troubled: bool


def listening_report(listener: SubscriptionListener) -> ListeningReport:
    """Describe the stream of a server's announcements."""
    words = f"{listener.state.value}{f': {listener.reason}' if listener.reason else ''}"
    if listener.honoured:
        words = f"changes of {listener.honoured}"
    missing = f" · not of {listener.missing}" if listener.missing else ""
    strays = f" · {listener.strays} announcements of no subscription were dropped" if listener.strays else ""
    troubled = bool(listener.missing) or listener.state in (ListenState.LOST, ListenState.REFUSED)
    return ListeningReport(f"{words}{missing}{strays}", troubled)


class SubscriptionState(Enum):
    WAITING = "waiting for the server"
    WATCHING = "watching"
    REFUSED = "the server does not let it be watched"


@dataclass(slots=True, eq=False)
class Subscription:
    """One resource that is subscribed to."""

    uri: str
    state: SubscriptionState = SubscriptionState.WAITING
    updates: int = 0
    """The number of updates that the server announced."""
    stale: bool = False
    """True if it changed since it was last read."""
    result: ReadResourceResult | None = None
    """The result of the last reading after an update; None before the first."""
    error: McphostError | None = None
    """Why there is no subscription, or why the last reading failed."""
    holders: set[object] = field(default_factory=set)
    """Those who began it; it ends with the last of them."""

    def covers(self, uri: str) -> bool:
        """True if an update of ``uri`` concerns the resource itself, or something below it."""
        return lies_below(uri, self.uri)


class Subscriptions:
    """The subscriptions of one server.

    ``changed`` is called with a URI whenever its subscription changed, ``announced`` whenever its resource may have.
    """

    def __init__(
        self,
        note: Callable[[LogLevel, str], None],
        changed: Callable[[str], None],
        mask: Callable[[str], str],
        announced: Callable[[str], None] = lambda uri: None,
    ) -> None:
        self._note, self._changed, self._mask, self._announced = note, changed, mask, announced
        self._due = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self.all: dict[str, Subscription] = {}
        """By URI, in the order they were begun."""

    async def add(self, client: Client, uri: str, holder: object = USER) -> Subscription:
        """Subscribe to ``uri``. Raises as a request does, and then there is no subscription."""
        async with self._one_at_a_time:
            subscription = self.all.get(uri)
            if subscription is not None and subscription.state is SubscriptionState.WATCHING:
                subscription.holders.add(holder)
                return subscription
            holders = {holder} if subscription is None else {*subscription.holders, holder}
            subscription = self.all[uri] = Subscription(
                uri, holders=holders
            )  # before asking: the first update may come with the answer
            try:
                await client.resources.subscribe(uri)
            except BaseException:
                self.all.pop(uri, None)
                self._changed(uri)  # a screen may have shown it as waiting meanwhile
                raise
            subscription.state = SubscriptionState.WATCHING
        self._changed(uri)
        return subscription

    async def drop(self, client: Client | None, uri: str, holder: object = USER) -> None:
        """Unsubscribe from ``uri``, at the server too if there is a client, unless others hold the subscription.

        Never raises: a refusal is logged.
        """
        async with self._one_at_a_time:
            subscription = self.all.get(uri)
            if subscription is None:
                return
            subscription.holders.discard(holder)
            if not subscription.holders:
                del self.all[uri]
            self._changed(uri)
            if client is None or subscription.holders or subscription.state is not SubscriptionState.WATCHING:
                return
            try:
                await client.resources.unsubscribe(uri)
            except McphostError as error:
                self._note(LogLevel.WARNING, f"the server did not end the subscription to {uri}: {error}")

    def updated(self, uri: str) -> None:
        """The server says that ``uri`` changed; a URI without a subscription is ignored."""
        for subscription in self.all.values():
            if subscription.covers(uri):
                subscription.updates += 1
                self._outdate(subscription)

    def lost(self) -> None:
        """The connection ended: all wait for the next."""
        for subscription in self.all.values():
            subscription.state = SubscriptionState.WAITING

    async def keep_current(self, client: Client) -> None:
        """Restore the subscriptions of an earlier connection, and read again what changed. Never returns."""
        self.lost()  # an answer of that connection's may have been taken after its end
        for subscription in list(self.all.values()):
            await self._restore(client, subscription)
        while True:
            await self._due.wait()
            await asyncio.sleep(REREAD_DELAY)
            self._due.clear()
            await asyncio.gather(
                *(self._read(client, subscription) for subscription in list(self.all.values()) if subscription.stale)
            )
            await asyncio.sleep(REREAD_PAUSE)

    async def _restore(self, client: Client, subscription: Subscription) -> None:
        async with self._one_at_a_time:
            if (
                subscription.state is not SubscriptionState.WAITING
                or self.all.get(subscription.uri) is not subscription
            ):
                return
            try:
                await client.resources.subscribe(subscription.uri)
            except McphostError as error:
                subscription.state, subscription.error = SubscriptionState.REFUSED, without_secrets(error, self._mask)
                self._note(LogLevel.WARNING, f"the subscription to {subscription.uri} was not restored: {error}")
                self._changed(subscription.uri)
                return
            subscription.state, subscription.error = SubscriptionState.WATCHING, None
        self._outdate(subscription)  # changes in between were not announced

    def _outdate(self, subscription: Subscription) -> None:
        self._announced(subscription.uri)
        if USER not in subscription.holders:
            return
        self._due.set()
        if not subscription.stale:  # an event for each of a flood of updates would flood the screen
            subscription.stale = True
            self._changed(subscription.uri)

    async def _read(self, client: Client, subscription: Subscription) -> None:
        subscription.stale = False  # before reading: what changes meanwhile is read once more
        try:
            subscription.result, subscription.error = (
                await client.resources.read(subscription.uri, again=True, timeouts=REREAD_TIMEOUTS),
                None,
            )
        except McphostError as error:
            subscription.error = without_secrets(error, self._mask)
        self._changed(subscription.uri)
