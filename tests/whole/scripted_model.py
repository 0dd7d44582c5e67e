"""A language model that follows a plan, in the formats of the agents' providers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import web

Json = dict[str, Any]

AGAIN = "Call again with the same arguments"
"""The words at which this model repeats its last call."""


class PlannedCall(NamedTuple):
    tool: str
    """The server's name for it; agents put a prefix before it."""
    arguments: Mapping[str, Any]


class Format:
    """One provider's requests and streams."""

    def offered(self, body: Json) -> Iterator[str]:
        """The names of the tools."""
        raise NotImplementedError

    def results(self, body: Json) -> Iterator[Any]:
        """The results of all calls of the conversation."""
        raise NotImplementedError

    def events(self, name: str | None, arguments: Mapping[str, Any], number: int) -> Iterator[Json]:
        """A stream that calls a tool, or says that all is done."""
        raise NotImplementedError

    def encode(self, event: Json) -> str:
        return _event(event)


class Messages(Format):
    """Anthropic's."""

    def offered(self, body: Json) -> Iterator[str]:
        return (str(tool.get("name")) for tool in body.get("tools", ()))

    def results(self, body: Json) -> Iterator[Any]:
        parts = (
            part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]
        )
        return (part.get("content") for part in parts if part.get("type") == "tool_result")

    def events(self, name: str | None, arguments: Mapping[str, Any], number: int) -> Iterator[Json]:
        message = {"id": f"m{number}", "type": "message", "role": "assistant", "model": "m", "content": []}
        ended: Json = {"stop_reason": None, "stop_sequence": None}
        yield {
            "type": "message_start",
            "message": {**message, **ended, "usage": {"input_tokens": 1, "output_tokens": 1}},
        }
        if name is None:
            block: Json = {"type": "text", "text": ""}
            delta: Json = {"type": "text_delta", "text": "done"}
        else:
            block = {"type": "tool_use", "id": f"t{number}", "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        reason = "end_turn" if name is None else "tool_use"
        yield {"type": "message_delta", "delta": {**ended, "stop_reason": reason}, "usage": {"output_tokens": 1}}
        yield {"type": "message_stop"}

    def encode(self, event: Json) -> str:
        return _named_event(event)


class Responses(Format):
    """OpenAI's newer one; tools of MCP servers are in namespaces."""

    def offered(self, body: Json) -> Iterator[str]:
        for tool in body.get("tools", ()):
            inner = tool.get("tools") or ()
            yield from (f"{tool['name']}\n{each['name']}" for each in inner)

    def results(self, body: Json) -> Iterator[Any]:
        return (item.get("output") for item in body["input"] if item.get("type") == "function_call_output")

    def events(self, name: str | None, arguments: Mapping[str, Any], number: int) -> Iterator[Json]:
        response: Json = {"id": f"r{number}", "object": "response", "status": "in_progress", "output": []}
        yield {"type": "response.created", "response": response}
        if name is None:
            said = [{"type": "output_text", "text": "done"}]
            item: Json = {"type": "message", "id": f"m{number}", "role": "assistant", "content": said}
        else:
            namespace, _, own = name.partition("\n")
            ids = {"id": f"f{number}", "call_id": f"t{number}"}
            item = {
                "type": "function_call",
                **ids,
                "namespace": namespace,
                "name": own,
                "arguments": json.dumps(arguments),
            }
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        usage: Json = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        done = {**response, "status": "completed", "output": [item], "usage": {**usage, **details}}
        yield {"type": "response.completed", "response": done}

    def encode(self, event: Json) -> str:
        return _named_event(event)


class Completions(Format):
    """OpenAI's older one, which others took over."""

    def offered(self, body: Json) -> Iterator[str]:
        return (tool["function"]["name"] for tool in body.get("tools", ()))

    def results(self, body: Json) -> Iterator[Any]:
        return (message.get("content") for message in body["messages"] if message["role"] == "tool")

    def events(self, name: str | None, arguments: Mapping[str, Any], number: int) -> Iterator[Json]:
        base = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        said: Json = {"role": "assistant", "content": "done"}
        if name is not None:
            function = {"name": name, "arguments": json.dumps(arguments)}
            said = {
                "role": "assistant",
                "tool_calls": [{"index": 0, "id": f"t{number}", "type": "function", "function": function}],
            }
        yield {**base, "choices": [{"index": 0, "delta": said, "finish_reason": None}]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reason = "stop" if name is None else "tool_calls"
        yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}


class Contents(Format):
    """Google's."""

    def offered(self, body: Json) -> Iterator[str]:
        return (each["name"] for tool in body.get("tools", ()) for each in tool.get("functionDeclarations", ()))

    def results(self, body: Json) -> Iterator[Any]:
        parts = (part for content in body.get("contents", ()) for part in content.get("parts", ()))
        return (part["functionResponse"].get("response") for part in parts if "functionResponse" in part)

    def events(self, name: str | None, arguments: Mapping[str, Any], number: int) -> Iterator[Json]:
        part: Json = {"text": "done"} if name is None else {"functionCall": {"name": name, "args": arguments}}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        yield {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}


FORMATS: Mapping[str, Format] = {
    "messages": Messages(),
    "responses": Responses(),
    "completions": Completions(),
    "streamGenerateContent": Contents(),
}
"""By the last word of the request's path."""


class ScriptedModel:
    """Makes the planned calls one after the other, each after the result of the last one."""

    def __init__(self, *plan: PlannedCall) -> None:
        self._plan = list(plan)
        self._made: list[PlannedCall] = []
        self.url = ""
        self.offered: Sequence[str] = ()
        """The tools of the last request that had some."""
        self.results: Sequence[str] = ()
        """All texts in the result of each call, as the agent sent them."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        form = FORMATS.get(request.path.replace(":", "/").rpartition("/")[2])
        if form is None or request.method != "POST":
            return web.json_response({"data": [], "models": [], "input_tokens": 1, "totalTokens": 1})
        body = await request.json()
        offered = list(form.offered(body))
        call = self._next(offered, [_text(each) for each in form.results(body)]) if offered else None
        name = None if call is None else _named(offered, call.tool)
        events = form.events(name, {} if call is None else call.arguments, len(self._made))
        stream = "".join(form.encode(event) for event in events)
        return web.Response(text=stream, content_type="text/event-stream")

    def _next(self, offered: list[str], results: list[str]) -> PlannedCall | None:
        self.offered = offered
        if len(results) < len(self._made):
            return self._made[len(results)]  # the agent sent its request again
        self.results = results
        if results and AGAIN in results[-1]:
            self._made.append(self._made[-1])
        elif self._plan:
            self._made.append(self._plan.pop(0))
        else:
            return None
        return self._made[-1]


def _named(offered: Sequence[str], tool: str) -> str | None:
    """The agent's name for a tool; None if it does not offer it."""
    ends = tuple(f"{separator}{tool}" for separator in "_-\n")
    return next((name for name in offered if name == tool or name.endswith(ends)), None)


def _event(event: Json) -> str:
    return f"data: {json.dumps(event)}\n\n"


def _named_event(event: Json) -> str:
    return f"event: {event['type']}\n{_event(event)}"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "\n".join(_text(each) for each in value.values())
    if isinstance(value, list):
        return "\n".join(_text(each) for each in value)
    return str(value)


@asynccontextmanager
async def model(*plan: PlannedCall) -> AsyncIterator[ScriptedModel]:
    """A model that listens at ``url``."""
    made = ScriptedModel(*plan)
    application = web.Application(client_max_size=1 << 26)
    application.router.add_route("*", "/{path:.*}", made.answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        await runner.cleanup()
