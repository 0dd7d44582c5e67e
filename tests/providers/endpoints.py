"""Endpoints that answer from a script over real sockets, in the words of each vendor."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mcphost.protocol.models.sampling import SamplingMessage, ToolChoice, text_block
from mcphost.protocol.models.tools import Tool
from mcphost.providers.anthropic import AnthropicProvider, AnthropicStream
from mcphost.providers.base import AnswerCollector, CollectedAnswer, ModelRequest, Provider, ProviderEvent
from mcphost.providers.endpoint import ModelEndpoint
from mcphost.providers.http import MOST_EVENT, StreamFraming, events, lines
from mcphost.providers.ollama import OllamaProvider, OllamaStream
from mcphost.providers.openai import OpenAIProvider, OpenAIStream
from mcphost.providers.retry import RetryLimits
from mcphost.providers.tool_names import tool_names

sys.path.insert(0, str(Path(__file__).parents[1] / "servers"))  # the scripts there import each other by bare names

from web import Talk, Web

KEY = "sk-canary-0123456789"
QUICK = RetryLimits(connect=2.0, first=2.0, idle=2.0, backoff=0.01)
ADD = Tool.read({"name": "add", "description": "adds", "inputSchema": {"type": "object"}})
DOTTED = Tool.read({"name": "files.read/all", "inputSchema": {"type": "object"}})
ASKED = ModelRequest((SamplingMessage.create("user", text_block("hello")),), 100, tools=(ADD, DOTTED))
FORBIDDEN = ModelRequest(ASKED.messages, 100, tools=(ADD,), tool_choice=ToolChoice("none"))

Steps = Sequence[tuple[str, ...]]
"""The actions of a model: ("text", …), ("use", id, name, piece of arguments, …), ("stop", reason)."""

HELLO: Steps = (("text", "Hel", "lo \u00e9\U0001f600"), ("stop", "end"))
USES: Steps = (
    ("text", "I add."),
    ("use", "u1", "add", '{"a"', ": 2, ", '"b": 3}'),
    ("use", "u2", "files_read_all_1"),
    ("stop", "tools"),
)

_STOPS = {
    "end": ("end_turn", "stop", "stop"),
    "tools": ("tool_use", "tool_calls", "stop"),
    "length": ("max_tokens", "length", "length"),
    "filter": ("refusal", "content_filter", "content_filter"),
    "odd": ("odd\x1b", "odd\x1b", "odd\x1b"),
}


def event(document: Any) -> bytes:
    """A document as a server-sent event, bytes as they are."""
    return b"data: %s\n\n" % (document if isinstance(document, bytes) else json.dumps(document).encode())


def line(document: Any) -> bytes:
    """A document on a line, bytes as they are."""
    return b"%s\n" % (document if isinstance(document, bytes) else json.dumps(document, ensure_ascii=False).encode())


def anthropic_stream(steps: Steps) -> list[bytes]:
    """The events in which Anthropic tells these steps."""
    message = {"model": "claude-real-1", "usage": {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 1}}
    told: list[dict[str, Any]] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, (kind, *rest) in enumerate(steps):
        if kind == "stop":
            told.append(
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": _STOPS[rest[0]][0]},
                    "usage": {"output_tokens": 5},
                }
            )
            continue
        block = {"type": "text", "text": ""}
        if kind == "use":
            use_id, name, *rest = rest
            block = {"type": "tool_use", "id": use_id, "name": name, "input": {}}  # type: ignore[dict-item]
        told.append({"type": "content_block_start", "index": index, "content_block": block})
        field_name = "text" if kind == "text" else "partial_json"
        told.extend(
            {"type": "content_block_delta", "index": index, "delta": {"type": f"{field_name}_delta", field_name: part}}
            for part in rest
        )
        told.append({"type": "content_block_stop", "index": index})
    told.append({"type": "message_stop"})
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in told]


def chunk(**delta: Any) -> dict[str, Any]:
    """A piece of an answer as OpenAI and those compatible with it write it."""
    return {"choices": [{"delta": delta, "finish_reason": None}]}


def openai_stream(steps: Steps) -> list[bytes]:
    """The chunks in which Chat Completions tells these steps."""
    told: list[Any] = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}]
    uses = 0
    for kind, *rest in steps:
        if kind == "text":
            told.extend({"choices": [{"index": 0, "delta": {"content": part}}]} for part in rest)
        elif kind == "use":
            use_id, name, *parts = rest
            first = {"index": uses, "id": use_id, "type": "function", "function": {"name": name, "arguments": ""}}
            calls = [first, *({"index": uses, "function": {"arguments": part}} for part in parts)]
            told.extend({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls)
            uses += 1
        else:
            told.append({"choices": [{"index": 0, "delta": {}, "finish_reason": _STOPS[rest[0]][1]}]})
    told.append({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}})
    chunks = [json.dumps({"model": "gpt-real-1", **each}, ensure_ascii=False) for each in told]
    return [f"data: {chunk}\n\n".encode() for chunk in (*chunks, "[DONE]")]


def ollama_stream(steps: Steps) -> list[bytes]:
    """The lines in which Ollama tells these steps."""
    told: list[dict[str, Any]] = []
    for kind, *rest in steps:
        if kind == "text":
            told.extend({"message": {"role": "assistant", "content": part}, "done": False} for part in rest)
        elif kind == "use":
            use_id, name, *parts = rest
            call = {"id": use_id, "function": {"index": 0, "name": name, "arguments": _arguments("".join(parts))}}
            told.append({"message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": False})
        else:
            counts = {"total_duration": 9, "prompt_eval_count": 10, "eval_count": 5}
            end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": _STOPS[rest[0]][2]}
            told.append({**end, **counts})
    return [line({"model": "qwen-real-1", "created_at": "2026-11-20T12:00:00Z", **each}) for each in told]


def _arguments(written: str) -> Any:
    """Arguments as a JSON value; as a text if they are not JSON."""
    try:
        value = json.loads(written or "{}")
    except (ValueError, RecursionError):
        return written
    return written if isinstance(value, str) else value


@dataclass(frozen=True)
class Vendor:
    provider: Callable[..., Any]
    reading: Callable[..., Any]
    framing: StreamFraming
    frame: Callable[[Any], bytes]
    """A document, or bytes in place of one, as in a stream."""
    stream: Callable[[Steps], list[bytes]]
    model: str
    error: Callable[[str, str], Any]
    """An error of a type and a message, as the vendor writes it in a body and in a stream."""


VENDORS: Mapping[str, Vendor] = {
    "anthropic": Vendor(
        AnthropicProvider,
        AnthropicStream,
        events,
        event,
        anthropic_stream,
        "claude-real-1",
        lambda kind, text: {"type": "error", "error": {"type": kind, "message": text}},
    ),
    "openai": Vendor(
        OpenAIProvider,
        OpenAIStream,
        events,
        event,
        openai_stream,
        "gpt-real-1",
        lambda kind, text: {"error": {"type": kind, "message": text, "code": None, "param": None}},
    ),
    "ollama": Vendor(
        OllamaProvider,
        OllamaStream,
        lines,
        line,
        ollama_stream,
        "qwen-real-1",
        lambda kind, text: {"error": text},
    ),
}

TYPED = [vendor for vendor in VENDORS if vendor != "ollama"]
"""Those whose errors have types, and not only a text."""


each_vendor = pytest.mark.parametrize("vendor", VENDORS)


def read(vendor: str, *chunks: bytes, request: Any = ASKED) -> list[ProviderEvent]:
    """The events of an answer that came in these chunks. Raises ModelError."""
    made = VENDORS[vendor]
    reading = made.reading(ModelEndpoint("big", "http://127.0.0.1/"), request, tool_names(request), "asked-for")
    told = list[ProviderEvent]()
    for data in framed(made.framing, *chunks):
        told += reading.feed(None if data == "[DONE]" else json.loads(data))
    return [*told, *reading.finish()]


def framed(framing: StreamFraming, *chunks: bytes, limit: int = MOST_EVENT) -> list[str | bytes]:
    """The documents that these chunks are cut into."""

    async def given() -> AsyncGenerator[bytes, None]:
        for chunk in chunks:
            yield chunk

    async def documents() -> list[str | bytes]:
        return [each async for each in framing(given(), limit)]

    return asyncio.run(documents())


async def gather(provider: Provider, request: ModelRequest, into: AnswerCollector | None = None) -> CollectedAnswer:
    """The whole answer. Where it fails, ``into`` holds what came before."""
    into = into or AnswerCollector()
    async with aclosing(provider.stream(request)) as events:
        async for event in events:
            into.add(event)
    assert into.done is not None
    return into.gathered


def gathered(events: list[ProviderEvent]) -> AnswerCollector:
    gathering = AnswerCollector()
    for each in events:
        gathering.add(each)
    return gathering


Answer = Callable[[Talk], None]


def streams_begin(talk: Talk, *events: bytes) -> None:
    """Sends the head of a stream, and these events."""
    lines = events and events[0].startswith(b"{")
    talk.head(200, content_type="application/x-ndjson" if lines else "text/event-stream", transfer_encoding="chunked")
    talk.events(*events)


def streams(*events: bytes) -> Answer:
    """Answers with these events, and ends well."""

    def answer(talk: Talk) -> None:
        streams_begin(talk, *events)
        talk.end_events()

    return answer


def breaks_off(*events: bytes) -> Answer:
    """Answers with these events, and hangs up without an end."""

    def answer(talk: Talk) -> None:
        streams_begin(talk, *events)
        talk.close_connection = True

    return answer


def stays(*events: bytes) -> Answer:
    """Answers with these events, and then with nothing, until the client hangs up."""

    def answer(talk: Talk) -> None:
        streams_begin(talk, *events)
        talk.linger()
        talk.close_connection = True

    return answer


def keeps_alive(comment: bytes, *events: bytes) -> Answer:
    """Answers with these events, and then with a comment every few hundredths of a second until the client hangs up."""

    def answer(talk: Talk) -> None:
        streams_begin(talk, *events)
        while not talk.linger(0.04):
            if talk.web.stopped.is_set():
                break
            talk.events(comment)
        talk.close_connection = True

    return answer


def refuses(status: int, document: Any = None, **headers: object) -> Answer:
    """Answers with an error."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return lambda talk: talk.whole(status, body, "application/json", **headers)


@dataclass
class Meeting:
    """A provider, the endpoint it asks, and all events that came."""

    web: Web
    provider: Any
    events: list[ProviderEvent] = field(default_factory=list)

    async def ask(self, request: ModelRequest = ASKED) -> list[ProviderEvent]:
        async with aclosing(self.provider.stream(request)) as events:
            async for event in events:
                self.events.append(event)
        return self.events

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(visit.body) for visit in self.web.visits]


@asynccontextmanager
async def meeting(
    vendor: str, *answers: Answer, limits: RetryLimits = QUICK, key: str = KEY, **more: Any
) -> AsyncIterator[Meeting]:
    """A provider of a vendor's, whose endpoint gives these answers, the last one again and again."""
    script = list(answers)
    with Web(lambda talk: (script.pop(0) if len(script) > 1 else script[0])(talk)) as web:
        base = f"http://127.0.0.1:{web.port}"
        provider = VENDORS[vendor].provider("big", "asked-for", key=key, base_url=base, limits=limits, **more)
        try:
            yield Meeting(web, provider)
        finally:
            await provider.aclose()
