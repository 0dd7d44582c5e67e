"""Resources, prompts and argument completion of one server.

Specification: server/resources, server/prompts, server/utilities/completion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from mcphost.client.cache import READ, CachedResult
from mcphost.client.paging import ListedItems
from mcphost.client.requester import Requester
from mcphost.client.requests import ProgressCallback, RequestTimeouts
from mcphost.errors import CapabilityMissing, ResourceMissing, ServerError
from mcphost.json_values import as_dict
from mcphost.protocol.lifecycle.revisions import offers
from mcphost.protocol.models.prompts import Completion, CompletionRef, GetPromptResult, Prompt
from mcphost.protocol.models.resources import ReadResourceResult, Resource, ResourceTemplate
from mcphost.protocol.wire.error_codes import ErrorCode

COMPLETE: Final = "completion/complete"
COMPLETIONS: Final = "completions"
"""The capability for `COMPLETE`."""

_NOT_FOUND: Final = re.compile(r"not found|no such|unknown resource|does not exist", re.IGNORECASE)


class Resources:
    """The resources of one server. Every method raises as `mcphost.client.requester.Requester.request` does."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester

    async def list(self, *, again: bool = False) -> ListedItems[Resource]:
        return await self._requester.read_list("resources/list", "resources", Resource.read, again=again)

    async def templates(self, *, again: bool = False) -> ListedItems[ResourceTemplate]:
        method, key = "resources/templates/list", "resourceTemplates"
        return await self._requester.read_list(method, key, ResourceTemplate.read, again=again)

    async def read(
        self,
        uri: str,
        *,
        again: bool = False,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> ReadResourceResult:
        """Read a resource; ``uri`` is sent exactly as given. Raises ResourceMissing if it does not exist.

        A modern server may allow caching for a while; ``again``: from the server, not from the cache.
        """
        read = await self.fetch(uri, again=again, timeouts=timeouts, on_progress=on_progress)
        found = ReadResourceResult.read(read.result, read.freshness)
        self._requester.remark(*(f"resources/read: {remark}" for remark in (*found.remarks, found.unread) if remark))
        return found

    async def fetch(
        self,
        uri: str,
        *,
        again: bool = False,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> CachedResult:
        """As `read`, with the result as it came: large contents may then be decoded on a thread."""
        try:
            return await self._requester.fetch(
                READ, {"uri": uri}, again=again, timeouts=timeouts, on_progress=on_progress
            )
        except ServerError as error:
            if not self._is_missing(error):
                raise
            raise ResourceMissing(_named(error) or uri, error) from None

    async def subscribe(self, uri: str) -> None:
        """Subscribe to changes (`NotificationObserver.resource_updated`)."""
        if self._requester.listener is None:
            await self._requester.request("resources/subscribe", {"uri": uri})
        else:
            await self._requester.listener.watch(uri)

    async def unsubscribe(self, uri: str) -> None:
        if self._requester.listener is None:
            await self._requester.request("resources/unsubscribe", {"uri": uri})
        else:
            self._requester.listener.unwatch(uri)

    def _is_missing(self, error: ServerError) -> bool:
        # A modern server reports a missing resource as invalid params, and params that are really invalid as well.
        if error.code == ErrorCode.RESOURCE_NOT_FOUND:
            return True
        modern = self._requester.open_session.revision.modern and error.code == ErrorCode.INVALID_PARAMS
        return modern and (_named(error) is not None or _NOT_FOUND.search(error.message) is not None)


def _named(error: ServerError) -> str | None:
    uri = as_dict(error.data).get("uri")
    return uri if isinstance(uri, str) else None


class Prompts:
    """The prompts of one server. Every method raises as `mcphost.client.requester.Requester.request` does."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester

    async def list(self, *, again: bool = False) -> ListedItems[Prompt]:
        return await self._requester.read_list("prompts/list", "prompts", Prompt.read, again=again)

    async def get(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> GetPromptResult:
        """Get the messages of a prompt. Arguments other than strings are sent as JSON text."""
        params: dict[str, object] = {"name": name}
        if arguments:
            params["arguments"] = {key: _as_string(value) for key, value in arguments.items()}
        result = await self._requester.request("prompts/get", params, timeouts=timeouts, on_progress=on_progress)
        read = GetPromptResult.read(result)
        self._requester.remark(*(f"prompts/get: {remark}" for remark in (*read.remarks, read.unread) if remark))
        return read


def _as_string(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Completions:
    def __init__(self, requester: Requester) -> None:
        self._requester = requester
        self._refused = False  # in the oldest revision, which has no capability for it, one refusal settles it

    @property
    def offered(self) -> bool:
        """True unless the server is known not to offer completion. Raises ServerNotReady."""
        session = self._requester.open_session
        return not self._refused and offers(COMPLETIONS, session.server.capabilities, session.revision)

    async def complete(
        self,
        ref: CompletionRef,
        argument: str,
        value: str,
        context: Mapping[str, str] | None = None,
        *,
        timeouts: RequestTimeouts | None = None,
    ) -> Completion:
        """Complete ``argument``, whose text so far is ``value``; ``context`` holds the other arguments.

        Raises as `mcphost.client.requester.Requester.request` does.
        """
        if self._refused:
            raise CapabilityMissing(COMPLETE, COMPLETIONS)
        params: dict[str, Any] = {"ref": ref.as_object(), "argument": {"name": argument, "value": value}}
        others = {name: known for name, known in (context or {}).items() if name != argument}
        if others and self._requester.open_session.revision.completion_context:
            params["context"] = {"arguments": others}
        try:
            found = Completion.read(await self._requester.request(COMPLETE, params, timeouts=timeouts))
        except ServerError as error:
            self._refused = error.code == ErrorCode.METHOD_NOT_FOUND
            raise
        if found.unreadable:
            self._requester.remark(f"{COMPLETE}: suggestions that are not texts were left out")
        if found.unread:
            self._requester.remark(f"{COMPLETE}: {found.unread}")
        return found
