"""Lists what one server offers (tools, resources, templates, prompts, skills) and lists it again when it changes.

Specification: server/tools, server/resources, server/prompts (list changes); ext-skills skills (listing skills).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from mcphost.client.client import Client
from mcphost.client.paging import ListedItems, Rejected
from mcphost.config import ServerConfig
from mcphost.errors import AuthorizationRequired, ListingFailed, McphostError, RequestTimeout, ServerError
from mcphost.host.catalog import (
    CatalogKind,
    SplitItems,
    usable,
    usable_prompts,
    usable_resources,
    usable_skills,
    usable_templates,
)
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.base import Wire
from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from mcphost.protocol.models.prompts import Prompt
    from mcphost.protocol.models.resources import Resource, ResourceTemplate
    from mcphost.protocol.models.skills import Skill
    from mcphost.protocol.models.tools import Tool

RELIST_DELAY: Final = 0.1
"""Seconds in which more changes may come: servers announce several at once."""

RELIST_PAUSE: Final = 2.0
"""Seconds between two listings, however often a server announces changes."""

ANNOUNCE_SECONDS: Final = 0.2
"""Seconds after a listing in which changes are awaited: servers add items once they know what the client can do."""

MOST_CHANGES: Final = 5
"""Listings of one `Listing.settled`, however often a server announces changes."""

LEAST_FRESH: Final = 5.0
"""Seconds for which a list serves further uses, however short its ``ttlMs``: one call uses it several times, and many
servers send 0."""

Item = TypeVar("Item", bound=Wire)
Note = Callable[[LogLevel, str], None]
SplitUsable = Callable[[ListedItems[Item], ServerConfig], Awaitable[SplitItems[Item]]]


@dataclass(frozen=True, slots=True)
class ListingSource(Generic[Item]):
    """A way to list one kind of item: ``fetch`` asks the server, ``split_usable`` separates usable items.

    The argument of ``fetch`` is True to ask again even if the cached list is fresh.
    """

    kind: CatalogKind
    fetch: Callable[[Client, bool], Awaitable[ListedItems[Item]]]
    split_usable: SplitUsable[Item]


async def _templates(client: Client, again: bool) -> ListedItems[ResourceTemplate]:
    try:
        return await client.resources.templates(again=again)
    except ServerError as error:
        if error.code != ErrorCode.METHOD_NOT_FOUND:  # one capability stands for both lists, and many have only one
            raise
        return ListedItems()


_TOOLS: Final[ListingSource[Tool]] = ListingSource(
    CatalogKind.TOOLS, lambda client, again: client.list_tools(again=again), usable
)
_RESOURCES: Final[ListingSource[Resource]] = ListingSource(
    CatalogKind.RESOURCES, lambda client, again: client.resources.list(again=again), usable_resources
)
_TEMPLATES: Final[ListingSource[ResourceTemplate]] = ListingSource(CatalogKind.TEMPLATES, _templates, usable_templates)
_PROMPTS: Final[ListingSource[Prompt]] = ListingSource(
    CatalogKind.PROMPTS, lambda client, again: client.prompts.list(again=again), usable_prompts
)
_SKILLS: Final[ListingSource[Skill]] = ListingSource(
    CatalogKind.SKILLS, lambda client, again: client.skills.list(again=again), usable_skills
)


class Listing(Generic[Item]):
    """The list of one kind (such as tools or prompts) of one server.

    ``listed`` is called with the items after each listing and when the connection ends, ``changed`` after any change of
    this object, and ``refused`` when the server wants a sign-in first.
    """

    def __init__(
        self,
        source: ListingSource[Item],
        note: Note,
        listed: Callable[[CatalogKind, Sequence[Any]], None],
        changed: Callable[[], None],
        refused: Callable[[AuthorizationRequired], None],
    ) -> None:
        self._source, self._note, self._listed, self._changed = source, note, listed, changed
        self._refused = refused
        self._stale = asyncio.Event()
        self._used = asyncio.Event()
        self._reading = asyncio.Lock()
        self._connections = 0
        self._listed_once = False
        self._listed_at = -math.inf
        """When the listing that brought `items` began, in seconds of the event loop's clock."""
        self._listed_until = -math.inf
        """When it ended."""
        self.freshness: Freshness | None = None
        """The freshness of `items` as their server declares it; None before the first listing."""
        self.items: list[Item] = []
        self.rejected: list[Rejected] = []
        self.notice: str | None = None
        self.failure: ListingFailed | None = None
        """Why the last listing failed. `items` are then those of an earlier listing, or none."""
        self.refusal: AuthorizationRequired | None = None
        """Set if the last listing failed because it needs a sign-in or more rights."""

    @property
    def expired(self) -> bool:
        """True if the items are older than their server lets them be."""
        if self.freshness is None or self.freshness.until == math.inf:
            return False
        until = max(self.freshness.until, self._listed_at + LEAST_FRESH)
        return asyncio.get_running_loop().time() >= until

    @property
    def stale(self) -> bool:
        """True if the server announced that the items are out of date."""
        return self._stale.is_set()

    def mark_stale(self) -> None:
        """The server changed its list: the items are out of date."""
        self._stale.set()

    def clear(self) -> None:
        """The connection ended: drop the items, and ignore the answer of a listing still under way."""
        self._connections += 1
        self._listed_once = False
        self.failure = self.freshness = None
        self._stale.clear()
        if self.items:
            self.items = []
            self._listed(self._source.kind, self.items)

    async def read(self, client: Client, config: ServerConfig) -> None:
        """List now, after any listing under way. A failure is noted, and the items stay as they were."""
        async with self._reading:
            await self._read_noting(client, config, again=True)

    async def current(self, client: Client, config: ServerConfig) -> None:
        """List if the items are missing, out of date or expired. Waits for a listing under way."""
        if not (self._reading.locked() or self._stale.is_set() or self.expired):
            return  # before each call: taking the lock would take longer than this check
        async with self._reading:
            if self._stale.is_set() or self.expired:
                await self._read_noting(client, config)

    async def settled(self, client: Client, config: ServerConfig, *, announces: bool) -> None:
        """As `current`; with ``announces``, list again what changes within `ANNOUNCE_SECONDS` after a listing."""
        for _ in range(MOST_CHANGES):
            await self.current(client, config)
            left = self._listed_until + ANNOUNCE_SECONDS - asyncio.get_running_loop().time()
            if announces and left > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._stale.wait()
            if not self._stale.is_set():
                return

    async def recent(self, client: Client, config: ServerConfig, seconds: float) -> None:
        """List if the last successful listing is older than ``seconds`` or out of date."""
        async with self._reading:
            if self._stale.is_set() or asyncio.get_running_loop().time() - self._listed_at > seconds:
                await self._read_noting(client, config, again=True)

    def failed(self, reason: str, *, timed_out: bool) -> None:
        """Record why the listing failed."""
        self.notice = f"listing the {self._source.kind.value} failed: {reason}"
        self.failure = ListingFailed(self.notice, timed_out=timed_out)
        self._note(LogLevel.WARNING, self.notice)

    async def keep_current(self, client: Client, config: Callable[[], ServerConfig], *, prefetch: bool) -> None:
        """List again whenever the items are out of date, at most every `RELIST_PAUSE` seconds. Runs until cancelled.

        Without ``prefetch`` only from their first use on.
        """
        if not prefetch:
            await self._used.wait()
        while True:
            await self._stale.wait()
            if self._listed_once:
                await asyncio.sleep(RELIST_DELAY)
                self._note(LogLevel.DEBUG, f"the server's {self._source.kind.value} changed; listing them again")
            await self.current(client, config())
            await asyncio.sleep(RELIST_PAUSE)

    async def _read_noting(self, client: Client, config: ServerConfig, *, again: bool = False) -> None:
        connection = self._connections
        self._used.set()
        try:
            self._stale.clear()
            self.refusal = None
            await self._read(client, config, connection, again)
        except asyncio.CancelledError:  # the old items are still out of date
            if connection == self._connections:
                self._stale.set()
            raise
        except McphostError as error:
            if connection == self._connections:
                self.failed(str(error), timed_out=isinstance(error, RequestTimeout))
                if isinstance(error, AuthorizationRequired):
                    self.refusal = error
                    self._refused(error)
        self._changed()

    async def _read(self, client: Client, config: ServerConfig, connection: int, again: bool) -> None:
        began = asyncio.get_running_loop().time()
        listing = await self._source.fetch(client, again)
        items, rejected = await self._source.split_usable(listing, config)
        if connection != self._connections:
            return
        self._listed_once, self._listed_at, self.failure = True, began, None
        self._listed_until = asyncio.get_running_loop().time()
        self.freshness = listing.freshness
        self.items, self.rejected = items, rejected
        self.notice = listing.notice
        for each in rejected:
            if not each.by_configuration:
                self._note(LogLevel.WARNING, self._source.kind.words_for(each))
        if listing.notice:
            self._note(LogLevel.WARNING, listing.notice)
        self._listed(self._source.kind, self.items)


class Listings:
    """All lists of one server; see `Listing` for the callbacks."""

    def __init__(
        self,
        note: Note,
        listed: Callable[[CatalogKind, Sequence[Any]], None],
        changed: Callable[[], None],
        refused: Callable[[AuthorizationRequired], None] = lambda refusal: None,
    ) -> None:
        callbacks = note, listed, changed, refused
        self.tools = Listing(_TOOLS, *callbacks)
        self.resources = Listing(_RESOURCES, *callbacks)
        self.templates = Listing(_TEMPLATES, *callbacks)
        self.prompts = Listing(_PROMPTS, *callbacks)
        self.skills = Listing(_SKILLS, *callbacks)
        lists = self.tools, self.resources, self.templates, self.prompts, self.skills
        self._by_kind: dict[CatalogKind, Listing[Any]] = dict(zip(CatalogKind, lists, strict=True))
        self._capabilities: Collection[str] = ()
        self._has_skills = False
        self.begun = False
        """True while there is a session."""

    def __iter__(self) -> Iterator[tuple[CatalogKind, Listing[Any]]]:
        yield from self._by_kind.items()

    def of_kind(self, kind: CatalogKind) -> Listing[Any]:
        return self._by_kind[kind]

    def declared(self, kind: CatalogKind) -> bool:
        """True if the server declared what this list needs: the capability, or the extension for skills."""
        return self._has_skills if kind is CatalogKind.SKILLS else kind.capability in self._capabilities

    def begin(self, capabilities: Collection[str], *, skills: bool = False) -> None:
        """Start with a new session, whose server has these capabilities; ``skills``: also those."""
        self._capabilities, self._has_skills, self.begun = capabilities, skills, True
        for kind, listing in self:
            if self.declared(kind):
                listing.mark_stale()

    def mark_stale(self, *features: str) -> None:
        """The server says that these lists changed. Those it did not declare are ignored."""
        for kind, listing in self:
            if kind.capability in features and self.declared(kind):
                listing.mark_stale()

    async def read(self, client: Client, config: ServerConfig) -> None:
        """List everything now that the server declared. Failures are noted, and the old items stay."""
        await asyncio.gather(*(listing.read(client, config) for kind, listing in self if self.declared(kind)))

    def clear(self) -> None:
        self._capabilities, self._has_skills, self.begun = (), False, False
        for _, listing in self:
            listing.clear()

    def background_work(
        self, client: Client, config: Callable[[], ServerConfig], *, prefetch: bool
    ) -> list[Coroutine[Any, Any, None]]:
        """Tasks that keep the lists current while the connection is open; without ``prefetch`` those that are used."""
        declared = [listing for kind, listing in self if self.declared(kind)]
        return [listing.keep_current(client, config, prefetch=prefetch) for listing in declared]
