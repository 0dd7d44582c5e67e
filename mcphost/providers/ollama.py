"""Ollama's own API, ``/api/chat``.

The API has no tool choice, no flag for a failed tool, and one text per message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcphost.errors import ModelAnswerCut, ModelError
from mcphost.json_values import as_dict, as_list, as_text
from mcphost.protocol.models.content import MediaContent, TextContent
from mcphost.protocol.models.sampling import SamplingMessage, ToolResult, ToolUse
from mcphost.protocol.models.tools import Tool
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
from mcphost.providers.http import HostedProvider, RefusedAnswer, arguments_text, lines, parts_text, thoughts_of
from mcphost.providers.tool_calls import CUT, PICTURES, ToolUseParts, pictures, result_with_status
from mcphost.providers.tool_names import NameMapping, use_ids

_STOPS: Final[Mapping[str, str]] = {"stop": "endTurn", "length": "maxTokens"}
"""Its stop reasons in MCP's words; it does not distinguish a stop sequence from an end."""

_REMEDIES: Final = (
    (404, "model", "it has no model {model}; get it with: ollama pull {model}, or choose one that ollama list shows"),
    (400, "does not support tools", 'it takes no tools; leave "tools" out of takes in [models.{entry}]'),
    (400, "context", "it reads less at once; begin a new conversation, or raise context_tokens in [models.{entry}]"),
    (401, "unauthorized", "it wants to be signed in; run where it runs: ollama signin, or look at api_key"),
)
"""Status, part of the message, and advice."""


class OllamaProvider(HostedProvider[None]):
    """A model of Ollama, on this machine unless ``base_url`` names another; see `Provider`."""

    HOME = "http://localhost:11434"
    VERSION = "/api"
    PATH = "/chat"
    CAPABILITIES = ModelCapabilities(images=IMAGES, tools=True)
    KEY_AT_HOME = False
    FRAMING = staticmethod(lines)

    def _headers(self, key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _first_dialect(self, *, at_home: bool) -> None:
        return None

    def _body(self, request: ModelRequest, names: NameMapping, dialect: None) -> dict[str, Any]:
        return body(self._model, request, names, self.capabilities, self._context)

    def _reader(self, request: ModelRequest, names: NameMapping) -> OllamaStream:
        return OllamaStream(self._endpoint, request, names, self._model)

    def _error_of(self, refused: RefusedAnswer) -> ModelError:
        refusal, endpoint = refused.refusal, self._endpoint
        for status, part, sentence in _REMEDIES:
            if refusal.status == status and part in refusal.message:
                advice = sentence.format(model=endpoint.clean(self._model, 80), entry=self.entry)
                source = f"(HTTP {status} from {endpoint.origin}) (it says: {endpoint.clean(refusal.message)})"
                return type(refused.error)(self.entry, f"{advice} {source}")
        return refused.error


def body(
    model: str,
    request: ModelRequest,
    names: NameMapping,
    able: ModelCapabilities = OllamaProvider.CAPABILITIES,
    context: int | None = None,
) -> dict[str, Any]:
    stops = [text for text in request.stop if text]
    temperature = {} if request.temperature is None else {"temperature": max(request.temperature, 0.0)}
    size = {} if context is None else {"num_ctx": context}
    options = {"num_predict": request.max_tokens, **size, **temperature, **({"stop": stops} if stops else {})}
    tools = [_tool(tool, names) for tool in request.tools if request.offers(tool.name)]
    return {
        "model": model,
        "messages": messages(request, names, able),
        "stream": True,
        "truncate": False,  # by default it silently drops the oldest messages of a long request
        "options": options,
        **({"tools": tools} if tools else {}),
    }


def _tool(tool: Tool, names: NameMapping) -> dict[str, Any]:
    about = {"description": tool.description or "", "parameters": tool.input_schema}
    return {"type": "function", "function": {"name": names.for_vendor(tool.name), **about}}


def messages(request: ModelRequest, names: NameMapping, able: ModelCapabilities) -> list[dict[str, Any]]:
    """All messages of a request, the system prompt first."""
    ids, used = use_ids(request), {use.id: use.name for message in request.messages for use in message.uses}
    system = [{"role": "system", "content": request.system}] if request.system.strip() else []
    found = [*system]
    for message in request.messages:
        found.extend(_result(result, names, ids, used) for result in message.results)
        found.extend(_role_messages(message, names, ids, able))
    return found


def _result(result: ToolResult, names: NameMapping, ids: NameMapping, used: Mapping[str, str]) -> dict[str, Any]:
    name = used.get(result.tool_use_id)
    named = {} if name is None else {"tool_name": names.for_vendor(name)}
    return {
        "role": "tool",
        "content": result_with_status(result),
        **named,
        "tool_call_id": ids.for_vendor(result.tool_use_id),
    }


def _role_messages(
    message: SamplingMessage, names: NameMapping, ids: NameMapping, able: ModelCapabilities
) -> Iterator[dict[str, Any]]:
    if shown := [picture.data for result in message.results for picture in pictures(result, able.images)]:
        yield {"role": "user", "content": PICTURES, "images": shown}
    texts = [block.text for block in message.blocks if isinstance(block, TextContent)]
    seen = [block.data for block in message.blocks if isinstance(block, MediaContent)]
    calls = [_call(use, names, ids) for use in message.uses]
    if texts or seen or calls or not message.blocks:
        more = {**({"images": seen} if seen else {}), **({"tool_calls": calls} if calls else {})}
        yield {"role": message.role, "content": "\n".join(texts), **more}


def _call(use: ToolUse, names: NameMapping, ids: NameMapping) -> dict[str, Any]:
    return {"id": ids.for_vendor(use.id), "function": {"name": names.for_vendor(use.name), "arguments": use.input}}


class OllamaStream:
    """The `mcphost.providers.http.StreamReader` of one answer."""

    def __init__(self, endpoint: ModelEndpoint, request: ModelRequest, names: NameMapping, model: str) -> None:
        self._endpoint, self._model = endpoint, model
        self._pieces = ToolUseParts(request, names)
        self._reason = ""
        self.ended = False

    @property
    def complete(self) -> bool:
        return self.ended

    def feed(self, document: Any) -> Iterator[ProviderEvent]:
        line = as_dict(document)
        if line.get("error"):
            raise error_of(self._endpoint, Refusal.from_document(line))
        self._model = as_text(line.get("model"))[:200] or self._model
        yield from self._message(as_dict(line.get("message")))
        if "prompt_eval_count" in line or "eval_count" in line:
            yield read_usage(line.get("prompt_eval_count"), line.get("eval_count"))
        if line.get("done") is True:
            self._reason, self.ended = as_text(line.get("done_reason")), True

    def finish(self) -> Iterator[ProviderEvent]:
        if not self.ended:
            raise ModelAnswerCut(self._endpoint.entry, f"{self._endpoint.origin} broke off its answer; try again")
        reason = _STOPS.get(self._reason, self._reason or "endTurn")
        yield from self._pieces.end_all(cut=reason in CUT)
        used = self._pieces.count and self._reason in ("", "stop")
        yield AnswerFinished("toolUse" if used else reason, self._model)

    def _message(self, message: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        if thought := parts_text(message.get("thinking")) or thoughts_of(message.get("content")):
            yield ThoughtDelta(thought)
        if text := parts_text(message.get("content")):
            yield TextDelta(text)
        for call in as_list(message.get("tool_calls")):
            yield from self._use(as_dict(call))

    def _use(self, call: Mapping[str, Any]) -> Iterator[ProviderEvent]:
        # A tool call arrives complete; older versions give it no id.
        key, function = self._pieces.count, as_dict(call.get("function"))
        yield self._pieces.begin(key, as_text(call.get("id")), as_text(function.get("name")))
        self._pieces.add(key, arguments_text(function.get("arguments")))
        yield from self._pieces.end(key)
