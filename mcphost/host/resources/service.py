"""Reads and subscribes to resources, gets prompts, and lists again.

Specification: server/resources, server/prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcphost.errors import InvalidArguments
from mcphost.host.audited_requests import AuditedRequests
from mcphost.host.catalog import Catalog, CatalogKind
from mcphost.host.connections.servers import Servers
from mcphost.host.connections.subscriptions import Subscription

if TYPE_CHECKING:
    from mcphost.protocol.models.prompts import GetPromptResult
    from mcphost.protocol.models.resources import ReadResourceResult


class ResourceService:
    """What servers have to read. All methods raise UnknownName, ServerNotReady, Declined, or as a request does."""

    def __init__(self, servers: Servers, catalog: Catalog, requests: AuditedRequests) -> None:
        self._servers, self._catalog, self._requests = servers, catalog, requests

    async def read(self, server: str, uri: str, *, origin: str = "you", again: bool = False) -> ReadResourceResult:
        """Read a resource, listed or not, the URI as it stands; ``again``: from the server even if it is kept.

        Raises ResourceMissing where there is none.
        """
        record = {"event": "resource", "uri": uri}
        return await self._requests.send(
            server, record, uri, origin, lambda client: client.resources.read(uri, again=again)
        )

    async def get_prompt(
        self, server: str, name: str, arguments: Mapping[str, object], *, origin: str = "you"
    ) -> GetPromptResult:
        """Get the messages of a prompt. Raises InvalidArguments where a required argument is missing."""
        connection = self._servers[server]
        await self._requests.reach(connection)
        await connection.current(CatalogKind.PROMPTS)
        missing = self._catalog.prompt(server, name).missing(arguments)
        if missing:
            raise InvalidArguments([(each, "is required") for each in missing])
        record = {"event": "prompt", "prompt": name, "arguments": arguments}
        return await self._requests.send(
            server, record, name, origin, lambda client: client.prompts.get(name, arguments)
        )

    async def relist(self, server: str, kind: CatalogKind) -> None:
        """List the items of this kind again, after a sign-in if that is needed.

        A listing that fails for another reason is noted, and the last one stays.
        """
        connection = self._servers[server]

        async def listed() -> None:
            await connection.relist(kind)
            if (refusal := connection.listings.of(kind).refusal) is not None:
                raise refusal.again()

        await self._requests.reach(connection)
        await self._requests.repeat(connection, f"the list of {kind.value}", listed)

    async def current(self, server: str, kind: CatalogKind) -> None:
        """Wait until the catalog holds what the server offers of this kind; starts a lazy server."""
        connection = self._servers[server]
        await connection.reach()
        await connection.current(kind)

    async def subscribe(self, server: str, uri: str, *, origin: str = "you") -> Subscription:
        """Subscribe to a resource, across reconnects, until `unsubscribe`; each change is a ResourceUpdated."""
        subscriptions, record = self._servers[server].subscriptions, {"event": "subscription", "uri": uri}
        return await self._requests.send(server, record, uri, origin, lambda client: subscriptions.add(client, uri))

    async def unsubscribe(self, server: str, uri: str) -> None:
        """End a subscription. Raises UnknownName alone."""
        connection = self._servers[server]
        await connection.subscriptions.drop(connection.client if connection.ready else None, uri)

    def subscriptions(self, server: str) -> Mapping[str, Subscription]:
        """The subscriptions at a server, by URI."""
        return self._servers[server].subscriptions.all
