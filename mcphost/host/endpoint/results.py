"""Results that are too large for an agent: it gets their start, and a link to the whole.

Specification: server/tools (resource links), server/resources.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mcphost.host.endpoint.translation import CONTENT_SINCE, says, without
from mcphost.json_values import as_dict, as_list, as_text
from mcphost.protocol.json_size import json_size
from mcphost.protocol.lifecycle.revisions import Revision

PREFIX: Final = "mcphost://results/"

KEPT_RESULTS: Final = 100
"""Results of one session that are kept: agents read one soon, or never."""

KEPT_CHARACTERS: Final = 64_000_000
"""Characters of them: four of the longest messages that a server may send by default."""

Json = Mapping[str, Any]


class LargeResults:
    """The large results of one session, of which the oldest are dropped.

    ``limit`` are the characters that the agent gets of the content, or of the structured content; None: all.
    """

    def __init__(self, limit: Callable[[], int | None]) -> None:
        self._limit = limit
        self._kept: dict[str, tuple[list[Json], int]] = {}

    @property
    def shortens(self) -> bool:
        return self._limit() is not None

    def definition(self, tool: Json) -> Json:
        """The definition of a tool; it promises no structured content where that may be left out of a result."""
        return without(tool, {"outputSchema"}) if self.shortens and "outputSchema" in tool else tool

    async def shortened(self, tool: str, result: Json, agent: Revision) -> Json:
        """The result itself if it is small enough, else one with its start and, where the agent has them, a link."""
        limit = self._limit()
        # This counts more than there is, but for escaped characters, which agents do not pay for.
        if limit is None or json_size(result) <= limit:
            return result
        shorter, whole = await asyncio.to_thread(_shortened, result, limit)
        if not whole:
            return result
        uri = f"{PREFIX}{secrets.token_urlsafe(16)}"
        size = self._keep(uri, [{"uri": uri, **contents} for contents in whole])
        content = as_list(shorter["content"])
        words = f"(Only the start is here. The whole result has about {size:,} characters: read the resource {uri}.)"
        link = {"type": "resource_link", "uri": uri, "name": f"The whole result of {tool}"}
        links = [link] if CONTENT_SINCE["resource_link"] <= agent.version else []
        return {**shorter, "content": [*content, {"type": "text", "text": words}, *links]}

    def read(self, uri: str) -> Json | None:
        """The result of ``resources/read`` for a whole result; None if it is not kept, or not any more."""
        kept = self._kept.get(uri)
        return None if kept is None else {"contents": kept[0]}

    def _keep(self, uri: str, whole: list[Json]) -> int:
        size = sum(len(as_text(each.get("text")) or as_text(each.get("blob"))) for each in whole)
        self._kept[uri] = whole, size
        while len(self._kept) > KEPT_RESULTS or sum(size for _, size in self._kept.values()) > KEPT_CHARACTERS:
            if len(self._kept) == 1:
                break
            del self._kept[next(iter(self._kept))]
        return size


def _shortened(result: Json, limit: int) -> tuple[Json, list[Json]]:
    """The result with less content, and the whole as contents of a resource, without URIs; none if it was short."""
    blocks = as_list(result.get("content"))
    start = list(_start(blocks, limit))
    structured = json.dumps(result["structuredContent"], ensure_ascii=False) if "structuredContent" in result else ""
    if start == blocks and len(structured) <= limit:
        return result, []
    whole = [_contents(block) for block in blocks]
    if len(structured) > limit:
        result = without(result, {"structuredContent"})
        if not any(says(block, json.loads(structured), structured) for block in blocks):
            whole.append({"mimeType": "application/json", "text": structured})
            start = start or [{"type": "text", "text": structured[:limit]}]
    return {**result, "content": start}, whole


def _start(blocks: list[Any], limit: int) -> Iterator[Any]:
    """The first blocks that hold so many characters, the last text of them cut."""
    for block in blocks:
        text = as_text(as_dict(block).get("text"))
        size = len(text) or json_size(block)
        if size <= limit:
            yield block
        elif text and limit > 0:
            yield {**block, "text": text[:limit]}
        limit = max(0, limit - size)


def _contents(block: Any) -> Json:
    """A block of content as the contents of a resource."""
    members = as_dict(block)
    match members.get("type"):
        case "text" if isinstance(members.get("text"), str):
            return {"mimeType": "text/plain", "text": members["text"]}
        case "image" | "audio" if isinstance(members.get("data"), str):
            return {"mimeType": members.get("mimeType"), "blob": members["data"]}
        case "resource" if isinstance(members.get("resource"), dict):
            return dict(members["resource"])
    return {"mimeType": "application/json", "text": json.dumps(block, ensure_ascii=False)}
