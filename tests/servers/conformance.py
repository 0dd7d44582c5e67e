#!/usr/bin/env python
"""The server that the published conformance suite asks for, on mcphost's own sessions.

    tests/servers/conformance.py [PORT]

It prints its URL. The names, texts and schemas are those of the suite's scenarios.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import sys
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from mcphost.protocol.extensions import TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.models.logging import LogLevel
from mcphost.serving.http_listener import PATH, HttpContent, HttpListener
from mcphost.serving.negotiation import InvalidParamsError, RpcError, ServerIntroduction, UndeclaredError
from mcphost.serving.pages import page
from mcphost.serving.served_request import ClientAnswer, ClientAsk, Json, ServedRequest

PAUSE = 0.05
CAPABILITIES: Json = {
    "logging": {},
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "extensions": {TASKS_EXTENSION: {}},
}


def _png() -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    picture = header + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + picture).decode()


def _wav() -> str:
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
    return base64.b64encode(struct.pack("<4sI4s", b"RIFF", 36, b"WAVE") + form + b"data\0\0\0\0").decode()


PNG: Json = {"type": "image", "data": _png(), "mimeType": "image/png"}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def embedded(uri: str, kind: str, words: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


def form(message: str, required: bool = True, **properties: Json) -> tuple[str, Json]:
    schema: Json = {"type": "object", "properties": properties} | ({"required": [*properties]} if required else {})
    return "elicitation/create", {"message": message, "requestedSchema": schema}


def sample(words: str, tokens: int = 100) -> tuple[str, Json]:
    messages = [{"role": "user", "content": text(words)}]
    return "sampling/createMessage", {"messages": messages, "maxTokens": tokens}


NAME = form("What is your name?", name={"type": "string"})
KEYS = {"elicitation/create": "user_name", "sampling/createMessage": "capital_question", "roots/list": "client_roots"}
"""The names that the scenarios give to requests for input."""
ROOTS: tuple[str, Json] = ("roots/list", {})

SCHEMA_2020_12: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

RESOURCES: dict[str, Json] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG["data"]},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched."},
}
TEMPLATE = "test://template/{id}/data"

Call = Callable[["Content", ServedRequest], Awaitable[Json]]
TOOLS: dict[str, tuple[Json, Call]] = {}
PROMPTS: dict[str, tuple[list[str], Call]] = {}


def tool(name: str, schema: Json | None = None, /, **properties: Json) -> Callable[[Call], Call]:
    """Offer a function as a tool; its arguments are required strings unless there is a schema."""
    inputs = schema or {"type": "object", "properties": properties, "required": [*properties]}

    def offered(call: Call) -> Call:
        TOOLS[name] = inputs, call
        return call

    return offered


def prompt(name: str, *arguments: str) -> Callable[[Call], Call]:
    def offered(call: Call) -> Call:
        PROMPTS[name] = [*arguments], call
        return call

    return offered


def constant(*content: Json) -> Call:
    async def call(served: Content, request: ServedRequest) -> Json:
        return {"content": [*content]}

    return call


STRING: Json = {"type": "string"}
tool("test_simple_text")(constant(text("This is a simple text response for testing.")))
tool("test_image_content")(constant(PNG))
tool("test_audio_content")(constant({"type": "audio", "data": _wav(), "mimeType": "audio/wav"}))
tool("test_embedded_resource")(
    constant(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))
)
tool("test_multiple_content_types")(
    constant(
        text("Multiple content types test:"),
        PNG,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    )
)
tool("json_schema_2020_12_tool", SCHEMA_2020_12)(constant(text("ok")))
tool(
    "test_x_mcp_header",
    {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
)(constant(text("ok")))


@tool("test_error_handling")
async def fail(served: Content, request: ServedRequest) -> Json:
    return {"content": [text("This tool intentionally returns an error for testing")], "isError": True}


@tool("test_tool_with_logging")
async def log(served: Content, request: ServedRequest) -> Json:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        request.log(LogLevel.INFO, words, "conformance")
        await asyncio.sleep(PAUSE)
    return {"content": [text("done")]}


@tool("test_logging_tool")
async def quiet(served: Content, request: ServedRequest) -> Json:
    request.log(LogLevel.INFO, "one message", "conformance")
    return {"content": [text("done")]}


@tool("test_tool_with_progress")
async def progress(served: Content, request: ServedRequest) -> Json:
    for value in (0, 50, 100):
        request.progress({"progress": value, "total": 100})
        await asyncio.sleep(PAUSE)
    return {"content": [text("done")]}


@tool("test_sampling", prompt=STRING)
async def sampling(served: Content, request: ServedRequest) -> Json:
    (answer,) = await served.ask(request, sample(request.params["arguments"]["prompt"]))
    return {"content": [text(f"LLM response: {answer['content']['text']}")]}


@tool("test_missing_capability")
async def capability(served: Content, request: ServedRequest) -> Json:
    await served.ask(request, sample("Anything?"))
    return {"content": [text("done")]}


@tool("test_elicitation", message=STRING)
async def elicitation(served: Content, request: ServedRequest) -> Json:
    asked = form(
        request.params["arguments"]["message"],
        username={"type": "string", "description": "User's response"},
        email={"type": "string", "description": "User's email address"},
    )
    (answer,) = await served.ask(request, asked)
    return {"content": [text(f"User response: {json.dumps(answer)}")]}


def _completed(answer: Json) -> Json:
    words = f"action={answer.get('action')}, content={json.dumps(answer.get('content'))}"
    return {"content": [text(f"Elicitation completed: {words}")]}


@tool("test_elicitation_sep1034_defaults")
async def defaults(served: Content, request: ServedRequest) -> Json:
    asked = form(
        "Please accept the defaults",
        False,
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return _completed(*await served.ask(request, asked))


@tool("test_elicitation_sep1330_enums")
async def enums(served: Content, request: ServedRequest) -> Json:
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second"), 1)]
    choices = [{"const": f"value{n}", "title": f"{word} Choice"} for n, word in enumerate(("First", "Second"), 1)]
    asked = form(
        "Please choose",
        False,
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": choices}},
    )
    return _completed(*await served.ask(request, asked))


@tool("test_streaming_elicitation")
@tool("test_input_required_result_elicitation")
async def greet(served: Content, request: ServedRequest) -> Json:
    (answer,) = await served.ask(request, NAME)
    return {"content": [text(f"Hello, {answer.get('content', {}).get('name')}!")]}


@tool("test_input_required_result_sampling")
async def capital(served: Content, request: ServedRequest) -> Json:
    (answer,) = await served.ask(request, sample("What is the capital of France?"))
    return {"content": [text(answer["content"]["text"])]}


@tool("test_input_required_result_list_roots")
async def roots(served: Content, request: ServedRequest) -> Json:
    (answer,) = await served.ask(request, ROOTS)
    return {"content": [text(json.dumps(answer["roots"]))]}


@tool("test_input_required_result_tampered_state")
@tool("test_input_required_result_request_state")
async def confirm(served: Content, request: ServedRequest) -> Json:
    await served.ask(request, form("Please confirm", ok={"type": "boolean"}))
    return {"content": [text("state-ok")]}


@tool("test_input_required_result_capabilities")
async def declared(served: Content, request: ServedRequest) -> Json:
    may_sample = "sampling" in request.declaration.capabilities
    await served.ask(request, sample("Anything?") if may_sample else NAME)
    return {"content": [text("done")]}


@tool("test_input_required_result_multiple_inputs")
async def several(served: Content, request: ServedRequest) -> Json:
    answers = await served.ask(request, NAME, sample("Generate a greeting", 50), ROOTS)
    return {"content": [text(json.dumps(answers))]}


@tool("test_input_required_result_multi_round")
async def rounds(served: Content, request: ServedRequest) -> Json:
    first = await served.ask(request, form("Step 1: What is your name?", name=STRING))
    second = await served.ask(request, form("Step 2: What is your favorite color?", color=STRING))
    return {"content": [text(json.dumps([*first, *second]))]}


# Tasks. A tool that may run as one does so for each client that takes tasks.


def _as_task(request: ServedRequest) -> None:
    if request.may_start_task:
        request.start_task()


@tool("greet", name=STRING)
async def greeting(served: Content, request: ServedRequest) -> Json:
    return {"content": [text(f"Hello, {request.params['arguments']['name']}!")]}


@tool("slow_compute", seconds={"type": "number"})
async def compute(served: Content, request: ServedRequest) -> Json:
    _as_task(request)
    await asyncio.sleep(request.params["arguments"]["seconds"])
    return {"content": [text("computed")]}


@tool("failing_job")
async def failing(served: Content, request: ServedRequest) -> Json:
    request.declaration.require_tasks()
    _as_task(request)
    await asyncio.sleep(PAUSE)
    return {"content": [text("It failed.")], "isError": True}


@tool("protocol_error_job")
async def erring(served: Content, request: ServedRequest) -> Json:
    _as_task(request)
    await asyncio.sleep(PAUSE)
    raise RpcError(-32603, "The job broke.")


@tool("confirm_delete", filename=STRING)
async def delete(served: Content, request: ServedRequest) -> Json:
    _as_task(request)
    (answer,) = await served.ask(request, form("Delete it?", confirm={"type": "boolean"}))
    return {"content": [text(json.dumps(answer))]}


@tool("multi_input")
async def inputs(served: Content, request: ServedRequest) -> Json:
    _as_task(request)
    answers = await asyncio.gather(*(served.ask(request, form(each, value=STRING)) for each in ("One?", "Two?")))
    return {"content": [text(json.dumps(answers))]}


@tool("test_tool_with_task")
async def ask_then_run(served: Content, request: ServedRequest) -> Json:
    request.declaration.require_tasks()
    (answer,) = await served.ask(request, NAME)
    _as_task(request)
    return {"content": [text(json.dumps(answer))]}


def _said(content: Json) -> Json:
    return {"role": "user", "content": content}


@prompt("test_simple_prompt")
async def simple_prompt(served: Content, request: ServedRequest) -> Json:
    return {"messages": [_said(text("This is a simple prompt for testing."))]}


@prompt("test_prompt_with_arguments", "arg1", "arg2")
async def prompt_with_arguments(served: Content, request: ServedRequest) -> Json:
    given = request.params["arguments"]
    return {"messages": [_said(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))]}


@prompt("test_prompt_with_embedded_resource", "resourceUri")
async def prompt_with_resource(served: Content, request: ServedRequest) -> Json:
    uri = request.params["arguments"]["resourceUri"]
    inside = embedded(uri, "text/plain", "Embedded resource content for testing.")
    return {"messages": [_said(inside), _said(text("Please process the embedded resource above."))]}


@prompt("test_prompt_with_image")
async def prompt_with_image(served: Content, request: ServedRequest) -> Json:
    return {"messages": [_said(PNG), _said(text("Please analyze the image above."))]}


@prompt("test_input_required_result_prompt")
async def prompt_with_input(served: Content, request: ServedRequest) -> Json:
    (answer,) = await served.ask(request, form("What context should the prompt use?", context=STRING))
    return {"messages": [_said(text(f"Context: {json.dumps(answer)}"))]}


@tool("test_trigger_tool_change")
async def change_tools(served: Content, request: ServedRequest) -> Json:
    served.announce("tools")
    return {"content": [text("done")]}


@tool("test_trigger_prompt_change")
async def change_prompts(served: Content, request: ServedRequest) -> Json:
    served.announce("prompts")
    return {"content": [text("done")]}


class Content(HttpContent):
    """The content of all clients."""

    def __init__(self) -> None:
        self.listener = HttpListener(lambda token, path: self)
        self._tasks: set[asyncio.Task[None]] = set()

    def announce(self, kind: str) -> None:
        for session in self.listener.sessions:
            session.list_changed(kind)

    def introduction(self, revision: Revision) -> ServerIntroduction:
        return ServerIntroduction({"name": "conformance", "version": "1.0.0"}, CAPABILITIES)

    def input_schema(self, tool: str) -> Json:
        return TOOLS[tool][0] if tool in TOOLS else {}

    def begin(self, request: ServedRequest) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        request.on_cancel = task.cancel

    async def ask(self, request: ServedRequest, *asks: tuple[str, Json]) -> list[Json]:
        """The client's answers."""
        waiting = [asyncio.get_running_loop().create_future() for _ in asks]
        request.ask(
            *(
                ClientAsk(method, params, future.set_result, KEYS[method] if request.task_id is None else None)
                for (method, params), future in zip(asks, waiting, strict=True)
            )
        )
        answers: list[ClientAnswer] = await asyncio.gather(*waiting)
        for answer in answers:
            if answer.error is not None:
                raise answer.error
        return [dict(answer.result or {}) for answer in answers]

    async def _serve(self, request: ServedRequest) -> None:
        try:
            request.finish(await self._result(request))
        except UndeclaredError as error:
            if request.revision.modern:
                request.fail(error)
            else:
                request.finish({"content": [text(str(error))], "isError": True})
        except RpcError as error:
            request.fail(error)

    async def _result(self, request: ServedRequest) -> Json:
        params = request.params
        match request.method:
            case "tools/call":
                return await _call(TOOLS, params.get("name"))(self, request)
            case "prompts/get":
                call = _call(PROMPTS, params.get("name"))
                if missing := {*PROMPTS[params["name"]][0]} - {*params.get("arguments", {})}:
                    raise InvalidParamsError(f"Missing: {', '.join(sorted(missing))}.")
                return await call(self, request)
            case "resources/read":
                return {"contents": [_read(params.get("uri"))]}
            case "completion/complete":
                return {"completion": {"values": [], "total": 0, "hasMore": False}}
        if request.method in LISTS:
            return page(*LISTS[request.method](), params, 100)
        return {}  # to subscribe and unsubscribe


def _call(known: dict[str, tuple[Any, Call]], name: Any) -> Call:
    if name not in known:
        raise InvalidParamsError(f"There is no {name}.")
    return known[name][1]


def _tools() -> tuple[str, list[Json]]:
    return "tools", [{"name": name, "description": name, "inputSchema": schema} for name, (schema, _) in TOOLS.items()]


def _prompts() -> tuple[str, list[Json]]:
    arguments = {name: [{"name": each, "required": True} for each in given] for name, (given, _) in PROMPTS.items()}
    return "prompts", [{"name": name, "description": name, "arguments": each} for name, each in arguments.items()]


def _resources() -> tuple[str, list[Json]]:
    kinds = {uri: each["mimeType"] for uri, each in RESOURCES.items()}
    return "resources", [{"uri": uri, "name": uri, "description": uri, "mimeType": kind} for uri, kind in kinds.items()]


def _templates() -> tuple[str, list[Json]]:
    return "resourceTemplates", [{"uriTemplate": TEMPLATE, "name": "template", "mimeType": "application/json"}]


LISTS = {
    "tools/list": _tools,
    "prompts/list": _prompts,
    "resources/list": _resources,
    "resources/templates/list": _templates,
}


def _read(uri: Any) -> Json:
    if uri in RESOURCES:
        return {"uri": uri, **RESOURCES[uri]}
    head, tail = TEMPLATE.split("{id}")
    if isinstance(uri, str) and uri.startswith(head) and uri.endswith(tail):
        name = uri[len(head) : -len(tail)]
        data = {"id": name, "templateTest": True, "data": f"Data for ID: {name}"}
        return {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}
    raise RpcError(-32002, "Resource not found", {"uri": uri})


async def main(port: int) -> None:
    content = Content()
    bound = await content.listener.open(port)
    print(f"http://127.0.0.1:{bound}{PATH}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await content.listener.aclose()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
