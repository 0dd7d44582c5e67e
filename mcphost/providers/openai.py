"""OpenAI's Chat Completions, and everything that speaks like it: llama.cpp, vLLM, LM Studio, OpenRouter.

Knows how its servers differ, and the few remedies when one does not take a parameter. Refuses to know the network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mcphost.errors import ModelAnswerCut
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
from mcphost.providers.hosted import HostedProvider
from mcphost.providers.openai_messages import AUDIO, messages
from mcphost.providers.patience import read_usage
from mcphost.providers.refusals import Refusal, error_of
from mcphost.providers.shapes import list_of, number, object_of, text_of
from mcphost.providers.spelling import NameMapping
from mcphost.providers.tool_pieces import ToolUseParts

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
    """What the documents of one stream mean; see `mcphost.providers.exchange.StreamReader`."""

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
