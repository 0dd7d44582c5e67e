"""The verbs for prompts: list them, get one.

Specification: server/prompts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcphost.client.paging import ListedItems
from mcphost.client.requests import ProgressCallback, RequestTimeouts

if TYPE_CHECKING:
    from mcphost.client.client import Client
    from mcphost.protocol.models.tools import GetPromptResult, Prompt


class Prompts:
    """What one server has to say for others. Every verb raises as `mcphost.client.client.Client.request` does."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self) -> ListedItems[Prompt]:
        """Every prompt, page by page."""
        from mcphost.protocol.models.tools import Prompt

        return await self._client.read_list("prompts/list", "prompts", Prompt.read)

    async def get(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        patience: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> GetPromptResult:
        """The messages of a prompt. Arguments are strings on the wire: what is none goes out as its JSON."""
        from mcphost.protocol.models.tools import GetPromptResult

        params: dict[str, object] = {"name": name}
        if arguments:
            params["arguments"] = {key: _as_string(value) for key, value in arguments.items()}
        result = await self._client.request("prompts/get", params, patience=patience, on_progress=on_progress)
        return GetPromptResult.read(result)


def _as_string(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
