"""Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcphost.errors import ModelAnswerCut
from mcphost.json_values import as_dict, as_text
from mcphost.protocol.models.content import MediaContent, TextContent
from mcphost.protocol.models.sampling import Block, ToolResult, ToolUse
from mcphost.providers.base import (
    IMAGES,
    AnswerFinished,
    ModelCapabilities,
    ModelRequest,
    ProviderEvent,
    TextDelta,
    ThoughtDelta,
    read_usage,
)
from mcphost.providers.endpoint import ModelEndpoint
from mcphost.providers.errors import Refusal, error_of
from mcphost.providers.http import HostedProvider, arguments_text, number
from mcphost.providers.tool_calls import CUT, ToolUseParts, pictures, result_text, text_for
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
"""Its stop reasons in MCP's words; others are passed on unchanged."""

CACHE_MARK: Final[Mapping[str, Any]] = {"cache_control": {"type": "ephemeral"}}
"""Marks the end of a prefix to cache, which makes the next request with that prefix cheaper. At most four a request."""

_CACHING_REFUSED: Final = re.compile(r"cache_control|\bsystem\b.*\bstring\b", re.IGNORECASE | re.DOTALL)


class AnthropicProvider(HostedProvider[bool]):
    """A model of Anthropic's, or of a compatible server at ``base_url``; see `Provider`."""

    HOME = "https://api.anthropic.com"
    PATH = "/messages"
    CAPABILITIES = ModelCapabilities(images=IMAGES, tools=True)

    def _headers(self, key: str) -> Mapping[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def _first_dialect(self, *, at_home: bool) -> bool:
        # The dialect is whether to cache: some compatible servers reject cache_control.
        return True

    def _remedy(self, refusal: Refusal, dialect: bool) -> bool | None:
        unknown = refusal.status in (400, 422) and _CACHING_REFUSED.search(f"{refusal.param} {refusal.message}")
        return False if unknown else None

    def _body(self, request: ModelRequest, names: NameMapping, dialect: bool) -> dict[str, Any]:
        return body(self._model, request, names, cache=dialect)

    def _reader(self, request: ModelRequest, names: NameMapping) -> AnthropicStream:
        return AnthropicStream(self._endpoint, request, names, self._model)


def body(model: str, request: ModelRequest, names: NameMapping, *, cache: bool = True) -> dict[str, Any]:
    """The request body; with ``cache``, with cache marks.

    Marked are the tools, the system prompt and the last two user messages: the last but one is where the previous
    request was marked, so that its cache is used.
    """
    ids, mark = use_ids(request), CACHE_MARK if cache else {}
    content = [(message.role, list(_blocks(message.blocks, names, ids))) for message in request.messages]
    for blocks in [blocks for role, blocks in content if role == "user" and blocks][-2:]:
        blocks[-1] |= mark
    system = [{"type": "text", "text": request.system, **mark}] if cache else request.system
    stops = [text for text in request.stop if text.strip()]  # the API refuses blank ones
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
        {"name": names.for_vendor(tool.name), "description": tool.description or "", "input_schema": tool.input_schema}
        for tool in request.tools
    ]
    tools[-1] |= mark
    choice = request.tool_choice
    named = {"type": "tool", "name": names.for_vendor(choice.name)}
    return {"tools": tools, "tool_choice": named if choice.name else {"type": _CHOICES.get(choice.mode, "auto")}}


def _blocks(blocks: tuple[Block, ...], names: NameMapping, ids: NameMapping) -> Iterator[dict[str, Any]]:
    for block in blocks:
        match block:
            case TextContent() if block.text.strip():  # the API refuses blank ones
                yield {"type": "text", "text": block.text}
            case MediaContent():
                yield _image(block)
            case ToolUse():
                yield {
                    "type": "tool_use",
                    "id": ids.for_vendor(block.id),
                    "name": names.for_vendor(block.name),
                    "input": block.input,
                }
            case ToolResult():
                yield _tool_result(block, ids)


def _image(block: MediaContent) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": block.mime_type, "data": block.data}}


def _tool_result(result: ToolResult, ids: NameMapping) -> dict[str, Any]:
    shown = list(pictures(result, IMAGES))
    others = [block for block in result.blocks if not any(block is each for each in shown)]
    content = [{"type": "text", "text": text} for block in others if (text := text_for(block)).strip()]
    if not content and not shown and (text := result_text(result)).strip():
        content = [{"type": "text", "text": text}]
    return {
        "type": "tool_result",
        "tool_use_id": ids.for_vendor(result.tool_use_id),
        "content": [*content, *map(_image, shown)],
        "is_error": bool(result.is_error),
    }


class AnthropicStream:
    """The `mcphost.providers.http.StreamReader` of one answer."""

    def __init__(self, endpoint: ModelEndpoint, request: ModelRequest, names: NameMapping, model: str) -> None:
        self._endpoint, self._model = endpoint, model
        self._pieces = ToolUseParts(request, names)
        self._inputs: dict[int, str] = {}
        """Arguments that came with the beginning of a tool use, as some compatible servers send them."""
        self._stop = ""
        self.ended = False

    @property
    def complete(self) -> bool:
        return bool(self._stop)

    def feed(self, document: Any) -> Iterator[ProviderEvent]:
        event = as_dict(document)
        match event.get("type"):
            case "message_start":
                yield from self._begin(as_dict(event.get("message")))
            case "content_block_start":
                yield from self._open(number(event.get("index")), as_dict(event.get("content_block")))
            case "content_block_delta":
                yield from self._delta(number(event.get("index")), as_dict(event.get("delta")))
            case "content_block_stop":
                index = number(event.get("index"))
                if self._pieces.is_empty(index):
                    self._pieces.add(index, self._inputs.get(index, ""))
                yield from self._pieces.end(index)
            case "message_delta":
                self._stop = as_text(as_dict(event.get("delta")).get("stop_reason")) or self._stop
                yield _usage(event)
            case "message_stop":
                self.ended = True
            case "error":
                raise error_of(self._endpoint, Refusal.from_document(event))

    def finish(self) -> Iterator[ProviderEvent]:
        if not self._stop and not self.ended:
            raise ModelAnswerCut(self._endpoint.entry, f"{self._endpoint.origin} broke off its answer; try again")
        stop = _STOPS.get(self._stop, self._stop or "endTurn")
        yield from self._pieces.end_all(cut=stop in CUT)
        yield AnswerFinished(stop, self._model)

    def _begin(self, message: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        self._model = as_text(message.get("model"))[:200] or self._model
        yield _usage(message)

    def _open(self, index: int, block: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        if block.get("type") == "tool_use":
            yield from self._pieces.end(index)
            yield self._pieces.begin(index, as_text(block.get("id")), as_text(block.get("name")))
            self._inputs[index] = arguments_text(block.get("input") or None)
        elif text := as_text(block.get("text")):
            yield TextDelta(text)

    def _delta(self, index: int, delta: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        self._pieces.add(index, as_text(delta.get("partial_json")))
        if text := as_text(delta.get("text")):
            yield TextDelta(text)
        if thought := as_text(delta.get("thinking")):
            yield ThoughtDelta(thought)


def _usage(event: Mapping[str, Any]) -> ProviderEvent:
    usage = as_dict(event.get("usage"))
    # Its input_tokens do not include what was read from or written to the cache.
    cached = [usage.get(name) for name in ("cache_read_input_tokens", "cache_creation_input_tokens")]
    return read_usage(usage.get("input_tokens"), usage.get("output_tokens"), *cached)
