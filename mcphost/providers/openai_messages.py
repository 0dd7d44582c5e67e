"""A conversation as Chat Completions takes it.

Knows its roles and parts. Refuses to know streams.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mcphost.protocol.sampling import SamplingMessage, ToolResult, ToolUse
from mcphost.protocol.types import MediaContent, TextContent
from mcphost.providers.base import ModelCapabilities, ModelRequest
from mcphost.providers.spelling import NameMapping, use_ids
from mcphost.providers.tool_contents import PICTURES, pictures, reported

AUDIO: Final[Mapping[str, str]] = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
"""Media types of sounds, and what the API calls them."""


def messages(request: ModelRequest, names: NameMapping, able: ModelCapabilities) -> list[dict[str, Any]]:
    """All messages of a request, the system's first."""
    ids = use_ids(request)
    system = [{"role": "system", "content": request.system}] if request.system.strip() else []
    return [*system, *(each for message in request.messages for each in _message(message, names, ids, able))]


def _message(
    message: SamplingMessage, names: NameMapping, ids: NameMapping, able: ModelCapabilities
) -> Iterator[dict[str, Any]]:
    results = message.results
    yield from (_tool_message(result, ids) for result in results)
    shown = [picture for result in results for picture in pictures(result, able.images)]
    if shown:  # a tool's message holds text only
        yield {"role": "user", "content": [_part(PICTURES), *map(_media, shown)]}
    said = [block for block in message.blocks if isinstance(block, TextContent | MediaContent)]
    calls = [_call(use, names, ids) for use in message.uses]
    if said or calls or not message.blocks:
        yield {"role": message.role, "content": _content(said), **({"tool_calls": calls} if calls else {})}


def _content(blocks: Sequence[TextContent | MediaContent]) -> Any:
    """One text as it is, which every server takes; several parts as a list, and nothing as null."""
    parts = [_media(block) if isinstance(block, MediaContent) else _part(block.text) for block in blocks]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts or None


def _part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _media(block: MediaContent) -> dict[str, Any]:
    if block.type == "audio":
        return {"type": "input_audio", "input_audio": {"data": block.data, "format": AUDIO.get(block.mime_type, "wav")}}
    return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}


def _call(use: ToolUse, names: NameMapping, ids: NameMapping) -> dict[str, Any]:
    function = {"name": names.there(use.name), "arguments": json.dumps(use.input, ensure_ascii=False)}
    return {"id": ids.there(use.id), "type": "function", "function": function}


def _tool_message(result: ToolResult, ids: NameMapping) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": ids.there(result.tool_use_id), "content": reported(result)}
