"""Lists and gets prompts.

Specification: server/prompts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcphost.client.paging import ListedItems
from mcphost.client.requests import ProgressCallback, RequestTimeouts
from mcphost.protocol.models.prompts import GetPromptResult, Prompt

if TYPE_CHECKING:
    from mcphost.client.client import Client


class Prompts:
    """The prompts of one server. Every method raises as `mcphost.client.client.Client.request` does."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self, *, again: bool = False) -> ListedItems[Prompt]:
        return await self._client.read_list("prompts/list", "prompts", Prompt.read, again=again)

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
        result = await self._client.request("prompts/get", params, timeouts=timeouts, on_progress=on_progress)
        read = GetPromptResult.read(result)
        self._client.remark(*(f"prompts/get: {remark}" for remark in (*read.remarks, read.unread) if remark))
        return read


def _as_string(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
