"""Lists, reads and subscribes to resources.

Specification: server/resources.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mcphost.client.cache import READ
from mcphost.client.paging import ListedItems
from mcphost.client.requests import ProgressCallback, RequestTimeouts
from mcphost.errors import ResourceMissing, ServerError
from mcphost.protocol.models.resources import ReadResourceResult, Resource, ResourceTemplate
from mcphost.protocol.wire.jsonrpc import ErrorCode

if TYPE_CHECKING:
    from mcphost.client.client import Client

_NOT_FOUND: Final = re.compile(r"not found|no such|unknown resource|does not exist", re.IGNORECASE)


class Resources:
    """The resources of one server. Every method raises as `mcphost.client.client.Client.request` does."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self, *, again: bool = False) -> ListedItems[Resource]:
        return await self._client.read_list("resources/list", "resources", Resource.read, again=again)

    async def templates(self, *, again: bool = False) -> ListedItems[ResourceTemplate]:
        method, key = "resources/templates/list", "resourceTemplates"
        return await self._client.read_list(method, key, ResourceTemplate.read, again=again)

    async def read(
        self,
        uri: str,
        *,
        again: bool = False,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> ReadResourceResult:
        """Read a resource; ``uri`` is sent exactly as given. Raises ResourceMissing if there is none.

        A modern server may let it be kept for a while; ``again``: from the server, not from the cache.
        """
        try:
            read = await self._client.fetch(READ, {"uri": uri}, again=again, timeouts=timeouts, on_progress=on_progress)
        except ServerError as error:
            if not self._is_missing(error):
                raise
            raise ResourceMissing(_named(error) or uri, error) from None
        found = ReadResourceResult.read(read.result, read.freshness)
        self._client.remark(*(f"resources/read: {remark}" for remark in (*found.remarks, found.unread) if remark))
        return found

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

    def _is_missing(self, error: ServerError) -> bool:
        """Does this error of a read say that there is no such resource?

        A modern server says so with the code for invalid params, which also stands for params that are really invalid.
        """
        if error.code == ErrorCode.RESOURCE_NOT_FOUND:
            return True
        modern = self._client.open_session.revision.modern and error.code == ErrorCode.INVALID_PARAMS
        return modern and (_named(error) is not None or _NOT_FOUND.search(error.message) is not None)


def _named(error: ServerError) -> str | None:
    uri = error.data.get("uri") if isinstance(error.data, dict) else None
    return uri if isinstance(uri, str) else None
