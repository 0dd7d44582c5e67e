"""Lists what one server offers (tools, resources, resource templates, prompts) and lists it again when it changes.

Specification: server/tools, server/resources, server/prompts (list changes).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from mcphost.client.client import Client
from mcphost.client.paging import ListedItems, Rejected
from mcphost.config import ServerConfig
from mcphost.errors import AuthorizationRequired, ListingFailed, McphostError, RequestTimeout, ServerError
from mcphost.host.catalog import CatalogKind, usable, usable_prompts, usable_resources, usable_templates
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.wire.jsonrpc import ErrorCode

if TYPE_CHECKING:
    from mcphost.protocol.models.prompts import Prompt
    from mcphost.protocol.models.resources import Resource, ResourceTemplate
    from mcphost.protocol.models.tools import Tool

RELIST_DELAY: Final = 0.1
"""Seconds in which more changes may come: servers announce several at once."""

RELIST_PAUSE: Final = 2.0
"""Seconds between two listings, however often a server announces changes."""

Item = TypeVar("Item")
Note = Callable[[LogLevel, str], None]
Sift = Callable[[ListedItems[Item], ServerConfig], tuple[list[Item], list[Rejected]]]


@dataclass(frozen=True, slots=True)
class OfferSource(Generic[Item]):
    """How one kind of offer is had: ``fetch`` lists it, ``sift`` says what of it may be used."""

    kind: CatalogKind
    fetch: Callable[[Client], Awaitable[ListedItems[Item]]]
    sift: Sift[Item]


async def _templates(client: Client) -> ListedItems[ResourceTemplate]:
    try:
        return await client.resources.templates()
    except ServerError as error:
        if error.code != ErrorCode.METHOD_NOT_FOUND:  # one capability stands for both lists, and many have only one
            raise
        return ListedItems()


_TOOLS: Final[OfferSource[Tool]] = OfferSource(CatalogKind.TOOLS, lambda client: client.list_tools(), usable)
_RESOURCES: Final[OfferSource[Resource]] = OfferSource(
    CatalogKind.RESOURCES, lambda client: client.resources.list(), usable_resources
)
_TEMPLATES: Final[OfferSource[ResourceTemplate]] = OfferSource(CatalogKind.TEMPLATES, _templates, usable_templates)
_PROMPTS: Final[OfferSource[Prompt]] = OfferSource(
    CatalogKind.PROMPTS, lambda client: client.prompts.list(), usable_prompts
)


class ListedOffers(Generic[Item]):
    """One kind of offer of one server.

    ``listed`` is called with the items whenever they were listed anew or are gone, ``changed`` whenever anything here
    is, and ``refused`` when only a sign-in brings them.
    """

    def __init__(
        self,
        source: OfferSource[Item],
        note: Note,
        listed: Callable[[CatalogKind, Sequence[Any]], None],
        changed: Callable[[], None],
        refused: Callable[[AuthorizationRequired], None],
    ) -> None:
        self._source, self._note, self._listed, self._changed = source, note, listed, changed
        self._refused = refused
        self._stale = asyncio.Event()
        self._reading = asyncio.Lock()
        self._lives = 0
        self._known = False
        self._listed_at = -math.inf
        """When the listing that `items` are from was begun, on the event loop's clock."""
        self.items: list[Item] = []
        self.rejected: list[Rejected] = []
        self.notice: str | None = None
        self.failure: ListingFailed | None = None
        """Why the last listing failed; then `items` are those of an earlier one, or none."""
        self.refusal: AuthorizationRequired | None = None
        """Why the last listing failed, where that was for want of a sign-in or of rights."""

    def mark_stale(self) -> None:
        """What was listed is out of date."""
        self._stale.set()

    def clear(self) -> None:
        """The connection ended: nothing is offered, and a listing still under way no longer counts."""
        self._lives += 1
        self._known = False
        self.failure = None
        self._stale.clear()
        if self.items:
            self.items = []
            self._listed(self._source.kind, self.items)

    async def read(self, client: Client, config: ServerConfig) -> None:
        """List now. A listing that fails is noted, and the last one stays. Never two at once."""
        async with self._reading:
            await self._read_noting(client, config)

    async def current(self, client: Client, config: ServerConfig) -> None:
        """List if it was not yet, or the server said that it changed; where a listing is under way, wait for it."""
        async with self._reading:
            if self._stale.is_set():
                await self._read_noting(client, config)

    async def recent(self, client: Client, config: ServerConfig, seconds: float) -> None:
        """List if the last listing that went well is older than that, or out of date."""
        async with self._reading:
            if self._stale.is_set() or asyncio.get_running_loop().time() - self._listed_at > seconds:
                await self._read_noting(client, config)

    def failed(self, reason: str, *, timed_out: bool) -> None:
        """Keep why it could not be listed."""
        self.notice = f"listing the {self._source.kind.value} failed: {reason}"
        self.failure = ListingFailed(self.notice, timed_out=timed_out)
        self._note(LogLevel.WARNING, self.notice)

    async def keep_current(self, client: Client, config: Callable[[], ServerConfig]) -> None:
        """List again whenever it is stale, but not too often. Never ends by itself."""
        while True:
            await self._stale.wait()
            if self._known:
                await asyncio.sleep(RELIST_DELAY)
                self._note(LogLevel.DEBUG, f"the server's {self._source.kind.value} changed; listing them again")
            await self.current(client, config())
            await asyncio.sleep(RELIST_PAUSE)

    async def _read_noting(self, client: Client, config: ServerConfig) -> None:
        life = self._lives
        try:
            self._stale.clear()
            self.refusal = None
            await self._read(client, config, life)
        except asyncio.CancelledError:  # whoever gave it up has not made the old list the current one
            if life == self._lives:
                self._stale.set()
            raise
        except McphostError as error:
            if life == self._lives:
                self.failed(str(error), timed_out=isinstance(error, RequestTimeout))
                if isinstance(error, AuthorizationRequired):
                    self.refusal = error
                    self._refused(error)
        self._changed()

    async def _read(self, client: Client, config: ServerConfig, life: int) -> None:
        began = asyncio.get_running_loop().time()
        listing = await self._source.fetch(client)
        if life != self._lives:
            return
        self._known, self._listed_at, self.failure = True, began, None
        self.items, self.rejected = self._source.sift(listing, config)
        self.notice = listing.notice
        for rejected in self.rejected:
            if not rejected.by_configuration:
                self._note(LogLevel.WARNING, self._source.kind.words_for(rejected))
        if listing.notice:
            self._note(LogLevel.WARNING, listing.notice)
        self._listed(self._source.kind, self.items)


class Offers:
    """All offers of one server; see `ListedOffers` for the callbacks."""

    def __init__(
        self,
        note: Note,
        listed: Callable[[CatalogKind, Sequence[Any]], None],
        changed: Callable[[], None],
        refused: Callable[[AuthorizationRequired], None] = lambda refusal: None,
    ) -> None:
        callbacks = note, listed, changed, refused
        self.tools = ListedOffers(_TOOLS, *callbacks)
        self.resources = ListedOffers(_RESOURCES, *callbacks)
        self.templates = ListedOffers(_TEMPLATES, *callbacks)
        self.prompts = ListedOffers(_PROMPTS, *callbacks)
        lists = self.tools, self.resources, self.templates, self.prompts
        self._by_kind: dict[CatalogKind, ListedOffers[Any]] = dict(zip(CatalogKind, lists, strict=True))
        self._offered: Collection[str] = ()

    def __iter__(self) -> Iterator[tuple[CatalogKind, ListedOffers[Any]]]:
        yield from self._by_kind.items()

    def of(self, kind: CatalogKind) -> ListedOffers[Any]:
        """The list of this kind."""
        return self._by_kind[kind]

    def offers(self, kind: CatalogKind) -> bool:
        """Did the server say, in this connection, that it has such a list?"""
        return kind.capability in self._offered

    def begin(self, capabilities: Collection[str]) -> None:
        """A session is open in which the server has these capabilities: nothing is listed yet."""
        self._offered = capabilities
        self.mark_stale(*capabilities)

    def mark_stale(self, *features: str) -> None:
        """The server says that these changed; what it does not offer is ignored."""
        for kind, offers in self:
            if kind.capability in features and self.offers(kind):
                offers.mark_stale()

    def clear(self) -> None:
        self._offered = ()
        for _, offers in self:
            offers.clear()

    def chores(self, client: Client, config: Callable[[], ServerConfig]) -> list[Coroutine[Any, Any, None]]:
        """What keeps the lists current while the connection stands."""
        return [offers.keep_current(client, config) for kind, offers in self if self.offers(kind)]
