"""Checks that a request and its answer fit the context window of the model.

Images and audio count as no tokens, since vendors count them differently. Nothing is ever dropped to make room.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from mcphost.errors import ModelRefused
from mcphost.protocol.models.content import TextContent
from mcphost.protocol.models.sampling import ToolResult, ToolUse
from mcphost.providers.base import ModelRequest, estimate_tokens
from mcphost.providers.tool_calls import result_text

LEAST_ANSWER: Final = 256
"""Tokens that must remain for the answer, unless the request asks for fewer."""


def fitted(entry: str, request: ModelRequest, most: int | None) -> ModelRequest:
    """The request, with its answer limited to what remains of ``most`` tokens (None: unknown window).

    Raises ModelRefused if too little remains.
    """
    if most is None:
        return request
    tokens = sum(map(estimate_tokens, _texts(request)))
    if most - tokens < min(request.max_tokens, LEAST_ANSWER):
        raise ModelRefused(
            entry,
            f"the request is about {tokens:,} tokens, and with its answer it may be {most:,} (context_tokens in "
            f"[models.{entry}]); begin a new conversation, leave tools or attachments out, or raise context_tokens",
        )
    return replace(request, max_tokens=min(request.max_tokens, most - tokens))


def _texts(request: ModelRequest) -> Iterator[str]:
    yield request.system
    yield from (json.dumps(tool.definition(), ensure_ascii=False) for tool in request.tools)
    for message in request.messages:
        for block in message.blocks:
            match block:
                case TextContent():
                    yield block.text
                case ToolUse():
                    yield json.dumps([block.name, block.input], ensure_ascii=False)
                case ToolResult():
                    yield result_text(block)
