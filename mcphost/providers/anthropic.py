"""Anthropic's Messages API, as a `Provider`.

Knows its requests, which parts of them are to be kept for the next, and its stream. Refuses to know the network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcphost.errors import ModelAnswerCut
from mcphost.protocol.models.sampling import Block, ToolResult, ToolUse
from mcphost.protocol.models.tools import MediaContent, TextContent
from mcphost.providers.base import (
    IMAGES,
    AnswerFinished,
    ModelCapabilities,
    ModelRequest,
    ProviderEvent,
    TextDelta,
    ThoughtDelta,
)
from mcphost.providers.endpoint import ModelEndpoint
from mcphost.providers.errors import Refusal, error_of
from mcphost.providers.http import HostedProvider
from mcphost.providers.json_values import number, object_of, text_of
from mcphost.providers.retry import read_usage
from mcphost.providers.tool_calls import ToolUseParts, all_words, pictures, words
from mcphost.providers.tool_names import NameMapping, use_ids

VERSION: Final = "2023-06-01"

_CHOICES: Final[Mapping[str, str]] = {"auto": "auto", "required": "any", "none": "none"}
_STOPS: Final[Mapping[str, str]] = {
    "end_turn": "endTurn",
    "max_tokens": "maxTokens",
    "model_context_window_exceeded": "maxTokens",
    "stop_sequence": "stopSequence",
    "tool_use": "toolUse",
}
"""Its stop reasons in the protocol's words; others are passed on as they are."""

KEPT: Final[Mapping[str, Any]] = {"cache_control": {"type": "ephemeral"}}
"""Marks a block up to which the vendor may keep the request, so that the next one with the same beginning is cheaper.

A request has four of them at most: see `body`.
"""

_KEEPS_NOTHING: Final = re.compile(r"cache_control|\bsystem\b.*\bstring\b", re.IGNORECASE | re.DOTALL)


class AnthropicProvider(HostedProvider[bool]):
    """A model of Anthropic's, or of whoever speaks like it at ``base_url``; see `Provider`."""

    HOME = "https://api.anthropic.com"
    PATH = "/messages"
    CAPABILITIES = ModelCapabilities(images=IMAGES, tools=True)

    def _headers(self, key: str) -> Mapping[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def _first_dialect(self, *, at_home: bool) -> bool:
        """Whether marks are sent: some that speak like Anthropic do not know them."""
        return True

    def _remedy(self, refusal: Refusal, dialect: bool) -> bool | None:
        unknown = refusal.status in (400, 422) and _KEEPS_NOTHING.search(f"{refusal.param} {refusal.message}")
        return False if unknown else None

    def _body(self, request: ModelRequest, names: NameMapping, dialect: bool) -> dict[str, Any]:
        return body(self._model, request, names, keep=dialect)

    def _reading(self, request: ModelRequest, names: NameMapping) -> AnthropicStream:
        return AnthropicStream(self._endpoint, request, names, self._model)


def body(model: str, request: ModelRequest, names: NameMapping, *, keep: bool = True) -> dict[str, Any]:
    """The request as the API takes it; with ``keep``, what the next one will begin with is marked.

    That are the tools, the system prompt, and the user's last message; the one before is where the former request was
    marked, and so what can be had from it.
    """
    ids, mark = use_ids(request), KEPT if keep else {}
    content = [(message.role, list(_blocks(message.blocks, names, ids))) for message in request.messages]
    for blocks in [blocks for role, blocks in content if role == "user" and blocks][-2:]:
        blocks[-1] |= mark
    system = [{"type": "text", "text": request.system, **mark}] if keep else request.system
    stops = [text for text in request.stop if text.strip()]  # blank ones are refused
    user = request.metadata.get("user_id")
    return {
        "model": model,
        "max_tokens": request.max_tokens,
        "stream": True,
        "messages": [{"role": role, "content": blocks} for role, blocks in content if blocks],
        **({"system": system} if request.system.strip() else {}),
        **({"temperature": min(max(request.temperature, 0.0), 1.0)} if request.temperature is not None else {}),
        **({"stop_sequences": stops} if stops else {}),
        **({"metadata": {"user_id": user}} if isinstance(user, str) else {}),
        **_tools(request, names, mark),
    }


def _tools(request: ModelRequest, names: NameMapping, mark: Mapping[str, Any]) -> dict[str, Any]:
    if not request.tools:
        return {}
    tools = [
        {"name": names.there(tool.name), "description": tool.description or "", "input_schema": tool.input_schema}
        for tool in request.tools
    ]
    tools[-1] |= mark
    choice = request.tool_choice
    named = {"type": "tool", "name": names.there(choice.name)}
    return {"tools": tools, "tool_choice": named if choice.name else {"type": _CHOICES.get(choice.mode, "auto")}}


def _blocks(blocks: tuple[Block, ...], names: NameMapping, ids: NameMapping) -> Iterator[dict[str, Any]]:
    for block in blocks:
        match block:
            case TextContent() if block.text.strip():  # blank ones are refused
                yield {"type": "text", "text": block.text}
            case MediaContent():
                yield _image(block)
            case ToolUse():
                yield {
                    "type": "tool_use",
                    "id": ids.there(block.id),
                    "name": names.there(block.name),
                    "input": block.input,
                }
            case ToolResult():
                yield _tool_result(block, ids)


def _image(block: MediaContent) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": block.mime_type, "data": block.data}}


def _tool_result(result: ToolResult, ids: NameMapping) -> dict[str, Any]:
    shown = list(pictures(result, IMAGES))
    said = [block for block in result.blocks if not any(block is each for each in shown)]
    content = [{"type": "text", "text": text} for block in said if (text := words(block)).strip()]
    if not content and not shown and (text := all_words(result)).strip():
        content = [{"type": "text", "text": text}]
    return {
        "type": "tool_result",
        "tool_use_id": ids.there(result.tool_use_id),
        "content": [*content, *map(_image, shown)],
        "is_error": bool(result.is_error),
    }


class AnthropicStream:
    """What the documents of one stream mean; see `mcphost.providers.http.StreamReader`."""

    def __init__(self, endpoint: ModelEndpoint, request: ModelRequest, names: NameMapping, model: str) -> None:
        self._endpoint, self._model = endpoint, model
        self._pieces = ToolUseParts(request, names)
        self._stop = ""
        self.ended = False

    def feed(self, document: Any) -> Iterator[ProviderEvent]:
        """The events of a document."""
        told = object_of(document)
        match told.get("type"):
            case "message_start":
                yield from self._begin(object_of(told.get("message")))
            case "content_block_start":
                yield from self._open(number(told.get("index")), object_of(told.get("content_block")))
            case "content_block_delta":
                yield from self._delta(number(told.get("index")), object_of(told.get("delta")))
            case "content_block_stop":
                yield from self._pieces.end(number(told.get("index")))
            case "message_delta":
                self._stop = text_of(object_of(told.get("delta")).get("stop_reason")) or self._stop
                yield _usage(told)
            case "message_stop":
                self.ended = True
            case "error":
                raise error_of(self._endpoint, Refusal.of(told))

    def finish(self) -> Iterator[ProviderEvent]:
        """The last events."""
        if not self.ended:
            raise ModelAnswerCut(self._endpoint.entry, f"{self._endpoint.origin} broke off its answer; try again")
        yield from self._pieces.end_all()
        yield AnswerFinished(_STOPS.get(self._stop, self._stop or "endTurn"), self._model)

    def _begin(self, message: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        self._model = text_of(message.get("model"))[:200] or self._model
        yield _usage(message)

    def _open(self, index: int, block: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        if block.get("type") == "tool_use":
            yield from self._pieces.end(index)
            yield self._pieces.begin(index, text_of(block.get("id")), text_of(block.get("name")))
        elif text := text_of(block.get("text")):
            yield TextDelta(text)

    def _delta(self, index: int, delta: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        self._pieces.add(index, text_of(delta.get("partial_json")))
        if text := text_of(delta.get("text")):
            yield TextDelta(text)
        if thought := text_of(delta.get("thinking")):
            yield ThoughtDelta(thought)


def _usage(told: Mapping[str, Any]) -> ProviderEvent:
    """What was read from its cache, and into it, is no part of its ``input_tokens``."""
    usage = object_of(told.get("usage"))
    cached = [usage.get(name) for name in ("cache_read_input_tokens", "cache_creation_input_tokens")]
    return read_usage(usage.get("input_tokens"), usage.get("output_tokens"), *cached)
