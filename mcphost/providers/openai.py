"""OpenAI's Chat Completions API, and compatible servers: llama.cpp, vLLM, LM Studio, OpenRouter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from mcphost.errors import ModelAnswerCut
from mcphost.json_values import as_dict, as_list, as_text
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.content import MediaContent, TextContent
from mcphost.protocol.models.sampling import SamplingMessage, ToolResult, ToolUse
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
from mcphost.providers.http import HostedProvider, arguments_text, number, parts_text, thoughts_of
from mcphost.providers.tool_calls import CUT, PICTURES, ToolUseParts, pictures, result_with_status
from mcphost.providers.tool_names import NameMapping, use_ids

AUDIO: Final[Mapping[str, str]] = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
"""Audio types, and the API's names of their formats."""


def messages(request: ModelRequest, names: NameMapping, able: ModelCapabilities) -> list[dict[str, Any]]:
    """All messages of a request, the system prompt first."""
    ids = use_ids(request)
    system = [{"role": "system", "content": request.system}] if request.system.strip() else []
    return [*system, *(each for message in request.messages for each in _message(message, names, ids, able))]


def _message(
    message: SamplingMessage, names: NameMapping, ids: NameMapping, able: ModelCapabilities
) -> Iterator[dict[str, Any]]:
    results = message.results
    yield from (_tool_message(result, ids) for result in results)
    shown = [picture for result in results for picture in pictures(result, able.images)]
    if shown:  # a tool message holds text only
        yield {"role": "user", "content": [_part(PICTURES), *map(_media, shown)]}
    content = [block for block in message.blocks if isinstance(block, TextContent | MediaContent)]
    calls = [_call(use, names, ids) for use in message.uses]
    if content or calls or not message.blocks:
        yield {"role": message.role, "content": _content(content), **({"tool_calls": calls} if calls else {})}


def _content(blocks: Sequence[TextContent | MediaContent]) -> Any:
    # Every server accepts a plain text; several parts need a list.
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
    function = {"name": names.for_vendor(use.name), "arguments": json.dumps(use.input, ensure_ascii=False)}
    return {"id": ids.for_vendor(use.id), "type": "function", "function": function}


def _tool_message(result: ToolResult, ids: NameMapping) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": ids.for_vendor(result.tool_use_id), "content": result_with_status(result)}


MOST_STOPS: Final = 4
"""Stop sequences that the API accepts."""

_STOPS: Final[Mapping[str, str]] = {
    "stop": "endTurn",
    "length": "maxTokens",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
    "content_filter": "contentFilter",
}
_NOT_TAKEN: Final = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|not permitted|extra|instead|not allowed", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """Which of the parameters that some servers reject are sent."""

    tokens: str = "max_tokens"
    """The name of the limit of the answer."""
    usage: bool = True
    """Request token counts in the stream."""
    temperature: bool = True

    def remedied(self, refusal: Refusal) -> Dialect | None:
        """The dialect without the parameter that ``refusal`` rejects, or None."""
        if refusal.status not in (400, 422) or not _NOT_TAKEN.search(refusal.message):
            return None
        about = f"{refusal.param} {refusal.message}"
        other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}[self.tokens]
        if self.usage and "stream_options" in about:
            return replace(self, usage=False)
        if self.tokens in about:
            return replace(self, tokens=other)
        if self.temperature and "temperature" in about:
            return replace(self, temperature=False)
        return None


class OpenAIProvider(HostedProvider[Dialect]):
    """A model of OpenAI's, or of a compatible server at ``base_url``; see `Provider`."""

    HOME = "https://api.openai.com/v1"
    PATH = "/chat/completions"
    CAPABILITIES = ModelCapabilities(images=IMAGES, audio=frozenset(AUDIO), tools=True)

    def _headers(self, key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _first_dialect(self, *, at_home: bool) -> Dialect:
        return Dialect("max_completion_tokens" if at_home else "max_tokens")

    def _body(self, request: ModelRequest, names: NameMapping, dialect: Dialect) -> dict[str, Any]:
        return body(self._model, request, names, dialect, self.capabilities)

    def _reader(self, request: ModelRequest, names: NameMapping) -> OpenAIStream:
        return OpenAIStream(self._endpoint, request, names, self._model)

    def _remedy(self, refusal: Refusal, dialect: Dialect) -> Dialect | None:
        return dialect.remedied(refusal)


def body(
    model: str,
    request: ModelRequest,
    names: NameMapping,
    dialect: Dialect,
    able: ModelCapabilities = OpenAIProvider.CAPABILITIES,
) -> dict[str, Any]:
    temperature = request.temperature if dialect.temperature else None
    stops = [text for text in request.stop if text]
    return {
        "model": model,
        "messages": messages(request, names, able),
        dialect.tokens: request.max_tokens,
        "stream": True,
        **({"stream_options": {"include_usage": True}} if dialect.usage else {}),
        **({} if temperature is None else {"temperature": min(max(temperature, 0.0), 2.0)}),
        **({"stop": stops[:MOST_STOPS]} if stops else {}),
        **_tools(request, names),
    }


def _tools(request: ModelRequest, names: NameMapping) -> dict[str, Any]:
    if not request.tools:
        return {}
    functions = [
        {"name": names.for_vendor(tool.name), "description": tool.description or "", "parameters": tool.input_schema}
        for tool in request.tools
    ]
    choice = request.tool_choice
    named = {"type": "function", "function": {"name": names.for_vendor(choice.name)}}
    return {
        "tools": [{"type": "function", "function": function} for function in functions],
        "tool_choice": named if choice.name else choice.mode,
    }


class OpenAIStream:
    """The `mcphost.providers.http.StreamReader` of one answer."""

    def __init__(self, endpoint: ModelEndpoint, request: ModelRequest, names: NameMapping, model: str) -> None:
        self._endpoint, self._request, self._model = endpoint, request, model
        self._pieces = ToolUseParts(request, names)
        self._last_call = 0
        """The key of the tool use that began last."""
        self._reason = ""
        self.ended = False

    @property
    def complete(self) -> bool:
        return bool(self._reason)

    def feed(self, document: Any) -> Iterator[ProviderEvent]:
        if document is None:
            self.ended = True
            return
        chunk = as_dict(document)
        if chunk.get("error"):
            raise error_of(self._endpoint, Refusal.from_document(chunk))
        self._model = as_text(chunk.get("model"))[:200] or self._model
        usage = as_dict(chunk.get("usage"))
        if usage:
            yield read_usage(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        for choice in as_list(chunk.get("choices")):
            if number(as_dict(choice).get("index")) == 0:
                yield from self._choice(as_dict(choice))

    def finish(self) -> Iterator[ProviderEvent]:
        if not self._reason and not self.ended:
            raise ModelAnswerCut(self._endpoint.entry, f"{self._endpoint.origin} broke off its answer; try again")
        reason = _STOPS.get(self._reason, self._reason or "endTurn")
        yield from self._pieces.end_all(cut=reason in CUT)
        used = self._pieces.count and self._reason in ("", "stop")  # some servers send "stop" with tool calls
        yield AnswerFinished("toolUse" if used else reason, self._model)

    def _choice(self, choice: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        message = as_dict(choice.get("delta")) or as_dict(choice.get("message"))
        content = message.get("content")
        thoughts = (parts_text(message.get("reasoning_content")), parts_text(message.get("reasoning")))
        if thought := next(filter(None, thoughts), "") or thoughts_of(content):
            yield ThoughtDelta(thought)
        if text := parts_text(content) or parts_text(message.get("refusal")):
            yield TextDelta(text)
        calls = as_list(message.get("tool_calls"))
        for place, call in enumerate(calls):
            yield from self._call(place if len(calls) > 1 else None, as_dict(call))
        self._reason = as_text(choice.get("finish_reason")) or self._reason
        ended_by = as_text(choice.get("stop_reason"))  # vLLM names the stop sequence
        if ended_by and ended_by in self._request.stop:
            self._reason = "stopSequence"

    def _call(self, place: int | None, call: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        """A piece of a tool use, at ``place`` of several in one chunk; a tool use begins with a name.

        Index and id only tell to which tool use a piece belongs: some servers leave them out, repeat or change them.
        """
        index, use_id, function = call.get("index"), as_text(call.get("id")), as_dict(call.get("function"))
        name, pieces = as_text(function.get("name")), self._pieces
        key = self._key(index, place, use_id, name)
        if name and not pieces.continues(key, use_id, name):
            yield from pieces.end(key, replaced=index is not None)
            yield pieces.begin(key, use_id, name)
            self._last_call = key
        else:
            pieces.hold(key, use_id)
        pieces.add(key, arguments_text(function.get("arguments")))

    def _key(self, index: Any, place: int | None, use_id: str, name: str) -> int:
        if type(index) is int:
            return index
        known = self._pieces.key_of(use_id) if use_id else None
        if known is not None:
            return known
        return (0 if name else self._last_call) if place is None else place
