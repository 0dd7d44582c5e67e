"""Lists, reads and subscribes to resources.

Specification: server/resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcphost.client.paging import ListedItems
from mcphost.client.requests import ProgressCallback, RequestTimeouts
from mcphost.errors import ResourceMissing, ServerError
from mcphost.protocol.models.resources import ReadResourceResult, Resource, ResourceTemplate
from mcphost.protocol.wire.jsonrpc import ErrorCode

if TYPE_CHECKING:
    from mcphost.client.client import Client


class Resources:
    """The resources of one server. Every method raises as `mcphost.client.client.Client.request` does."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self) -> ListedItems[Resource]:
        return await self._client.read_list("resources/list", "resources", Resource.read)

    async def templates(self) -> ListedItems[ResourceTemplate]:
        return await self._client.read_list("resources/templates/list", "resourceTemplates", ResourceTemplate.read)

    async def read(
        self, uri: str, *, timeouts: RequestTimeouts | None = None, on_progress: ProgressCallback | None = None
    ) -> ReadResourceResult:
        """Read a resource; ``uri`` is sent exactly as given. Raises ResourceMissing if there is none."""
        try:
            result = await self._client.request(
                "resources/read", {"uri": uri}, timeouts=timeouts, on_progress=on_progress
            )
        except ServerError as error:
            if error.code != ErrorCode.RESOURCE_NOT_FOUND:
                raise
            raise ResourceMissing(_named(error) or uri, error) from None
        return ReadResourceResult.read(result)

    async def subscribe(self, uri: str) -> None:
        """Subscribe to changes (`NotificationObserver.resource_updated`)."""
        if self._client.listener is None:
            await self._client.request("resources/subscribe", {"uri": uri})
        else:
            await self._client.listener.watch(uri)

    async def unsubscribe(self, uri: str) -> None:
        if self._client.listener is None:
            await self._client.request("resources/unsubscribe", {"uri": uri})
        else:
            self._client.listener.unwatch(uri)


def _named(error: ServerError) -> str | None:
    uri = error.data.get("uri") if isinstance(error.data, dict) else None
    return uri if isinstance(uri, str) else None
