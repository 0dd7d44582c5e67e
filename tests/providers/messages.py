"""Content blocks, and requests made of them, for tests of what models are sent."""

from __future__ import annotations

from typing import Any

from mcphost.protocol.models.sampling import SamplingMessage
from mcphost.providers.base import ModelRequest

TEXT = {"type": "text", "text": "look"}
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "AAAA", "mimeType": "audio/mpeg"}
USE = {"type": "tool_use", "id": "a.1", "name": "files.read/all", "input": {"p": "é"}, "_meta": {"x": 1}}
LINK = {"type": "resource_link", "uri": "x:/1", "name": "one"}
EMBEDDED = {"type": "resource", "resource": {"uri": "x:/2", "text": "inside"}}
BLOB = {"type": "resource", "resource": {"uri": "x:/3", "blob": "AAAA", "mimeType": "image/tiff"}}


def result(*content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "toolUseId": "a.1", "content": list(content), **more}


def asking(*messages: tuple[str, Any], **more: Any) -> ModelRequest:
    read = (SamplingMessage.read({"role": role, "content": content}) for role, content in messages)
    return ModelRequest(tuple(read), 100, **more)
