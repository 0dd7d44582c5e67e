"""OpenAI's Chat Completions, and everything that speaks like it: llama.cpp, vLLM, LM Studio, OpenRouter.

Knows how its servers differ, and the few remedies when one does not take a parameter. Refuses to know the network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mcphost.errors import ModelAnswerCut
from mcphost.protocol.models.sampling import SamplingMessage, ToolResult, ToolUse
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
from mcphost.providers.json_values import list_of, number, object_of, text_of
from mcphost.providers.retry import read_usage
from mcphost.providers.tool_calls import PICTURES, ToolUseParts, pictures, reported
from mcphost.providers.tool_names import NameMapping, use_ids

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


MOST_STOPS: Final = 4
"""Stop sequences that the API takes."""

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
    """Which of the parameters that not all servers know are sent."""

    tokens: str = "max_tokens"
    """How the most tokens of an answer are called."""
    usage: bool = True
    """Whether the stream is to tell how many tokens there were."""
    temperature: bool = True

    def remedied(self, refusal: Refusal) -> Dialect | None:
        """The dialect to try instead, where ``refusal`` says that a parameter is not taken; None where none is left."""
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
    """A model of OpenAI's, or of whoever speaks like it at ``base_url``; see `Provider`."""

    HOME = "https://api.openai.com/v1"
    PATH = "/chat/completions"
    CAPABILITIES = ModelCapabilities(images=IMAGES, audio=frozenset(AUDIO), tools=True)

    def _headers(self, key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _first_dialect(self, *, at_home: bool) -> Dialect:
        return Dialect("max_completion_tokens" if at_home else "max_tokens")

    def _body(self, request: ModelRequest, names: NameMapping, dialect: Dialect) -> dict[str, Any]:
        return body(self._model, request, names, dialect, self.capabilities)

    def _reading(self, request: ModelRequest, names: NameMapping) -> OpenAIStream:
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
    """The request as the API takes it."""
    warmth = request.temperature if dialect.temperature else None
    stops = [text for text in request.stop if text]
    return {
        "model": model,
        "messages": messages(request, names, able),
        dialect.tokens: request.max_tokens,
        "stream": True,
        **({"stream_options": {"include_usage": True}} if dialect.usage else {}),
        **({} if warmth is None else {"temperature": min(max(warmth, 0.0), 2.0)}),
        **({"stop": stops[:MOST_STOPS]} if stops else {}),
        **_tools(request, names),
    }


def _tools(request: ModelRequest, names: NameMapping) -> dict[str, Any]:
    if not request.tools:
        return {}
    functions = [
        {"name": names.there(tool.name), "description": tool.description or "", "parameters": tool.input_schema}
        for tool in request.tools
    ]
    choice = request.tool_choice
    named = {"type": "function", "function": {"name": names.there(choice.name)}}
    return {
        "tools": [{"type": "function", "function": function} for function in functions],
        "tool_choice": named if choice.name else choice.mode,
    }


class OpenAIStream:
    """What the documents of one stream mean; see `mcphost.providers.http.StreamReader`."""

    def __init__(self, endpoint: ModelEndpoint, request: ModelRequest, names: NameMapping, model: str) -> None:
        self._endpoint, self._request, self._model = endpoint, request, model
        self._pieces = ToolUseParts(request, names)
        self._reason = ""
        self.ended = False

    def feed(self, document: Any) -> Iterator[ProviderEvent]:
        """The events of a document; None is the end."""
        if document is None:
            self.ended = True
            return
        told = object_of(document)
        if told.get("error"):
            raise error_of(self._endpoint, Refusal.of(told))
        self._model = text_of(told.get("model"))[:200] or self._model
        usage = object_of(told.get("usage"))
        if usage:
            yield read_usage(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        for choice in list_of(told.get("choices")):
            if number(object_of(choice).get("index")) == 0:
                yield from self._choice(object_of(choice))

    def finish(self) -> Iterator[ProviderEvent]:
        """The last events."""
        if not self._reason and not self.ended:
            raise ModelAnswerCut(self._endpoint.entry, f"{self._endpoint.origin} broke off its answer; try again")
        yield from self._pieces.end_all()
        used = self._pieces.count and self._reason in ("", "stop")  # some call it that when tools are to be used
        yield AnswerFinished("toolUse" if used else _STOPS.get(self._reason, self._reason or "endTurn"), self._model)

    def _choice(self, choice: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        said = object_of(choice.get("delta")) or object_of(choice.get("message"))
        if thought := text_of(said.get("reasoning_content")) or text_of(said.get("reasoning")):
            yield ThoughtDelta(thought)
        if text := text_of(said.get("content")) or text_of(said.get("refusal")):
            yield TextDelta(text)
        for place, call in enumerate(list_of(said.get("tool_calls"))):
            yield from self._call(place, object_of(call))
        self._reason = text_of(choice.get("finish_reason")) or self._reason
        ended_by = text_of(choice.get("stop_reason"))  # vLLM says which text it was
        if ended_by and ended_by in self._request.stop:
            self._reason = "stopSequence"

    def _call(self, place: int, call: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        """A piece of a tool call. Its index may be missing, or be the same for all calls: then the id tells."""
        key, use_id, function = (
            number(call.get("index"), place),
            text_of(call.get("id")),
            object_of(call.get("function")),
        )
        present = self._pieces.id_of(key)
        if present is None or (use_id and use_id != present):
            yield from self._pieces.end(key)
            yield self._pieces.begin(key, use_id, text_of(function.get("name")))
        arguments = function.get("arguments")
        self._pieces.add(key, json.dumps(arguments) if isinstance(arguments, dict) else text_of(arguments))
