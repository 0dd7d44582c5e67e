"""A tool of the demo server: its definition, the decorator that makes one of a function, and a running call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from mcphost.demo.lighthouse import Lighthouse

Json = dict[str, Any]

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class ToolFailedError(Exception):
    """The tool ran and failed: a result with ``isError``, which a model can read."""


class RpcError(Exception):
    """A request that gets an error: its JSON-RPC code and a sentence."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(code, sentence)


class InvalidParamsError(RpcError):
    def __init__(self, sentence: str) -> None:
        super().__init__(-32602, sentence)


class CallCancelledError(Exception):
    """The client cancelled the call: nothing is answered."""


class Outbox(Protocol):
    """Sends what a call has to say besides its result."""

    def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""

    def log(self, level: str, data: Any, logger: str) -> None:
        """Send a log message, if the client wants to see that level."""

    def resource_changed(self, uri: str) -> None:
        """Send a notification if the client subscribed to that resource."""

    def offered(self, capability: str) -> Json | None:
        """The client's declaration of this capability; None without one."""

    def ask(self, method: str, params: Json, cancelled: threading.Event) -> Json | None:
        """The client's answer; None when the call was cancelled. Raises ToolFailedError."""


class DemoCall:
    """A running call: its arguments, the lighthouse it acts on, and what it can send."""

    def __init__(self, arguments: Json, state: Lighthouse, outbox: Outbox, token: str | int | None = None) -> None:
        self.arguments = arguments
        self.state = state
        self._outbox = outbox
        self._token = token
        self.last_message = ""
        """The last message of its progress."""
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """End the present or next `wait` of this call."""
        self._cancelled.set()

    @property
    def cancelled(self) -> bool:
        """True once the client has cancelled the call."""
        return self._cancelled.is_set()

    def wait(self, seconds: float) -> None:
        """Sleep; raises CallCancelledError as soon as the call is cancelled."""
        if self._cancelled.wait(seconds):
            raise CallCancelledError

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report progress, if the client gave a token for it."""
        self.last_message = message or self.last_message
        if self._token is None:
            return
        report: Json = {"progressToken": self._token, "progress": done}
        if total is not None:
            report["total"] = total
        if message:
            report["message"] = message
        self._outbox.notify("notifications/progress", report)

    def log(self, level: str, data: Any, logger: str = "keeper") -> None:
        """Send a log message."""
        self._outbox.log(level, data, logger)

    def offers(self, capability: str, part: str) -> bool:
        """True if the client declared this part of a capability."""
        return part in (self._outbox.offered(capability) or {})

    def ask(self, capability: str, method: str, **params: Any) -> Json:
        """Send a request; the client's answer. Raises CallCancelledError; ToolFailedError without the capability."""
        if self._outbox.offered(capability) is None:
            raise ToolFailedError(f"Your host does not answer this: it declares no {capability}.")
        answer = self._outbox.ask(method, params, self._cancelled)
        if answer is None:
            raise CallCancelledError
        return answer

    def notify(self, method: str, params: Json) -> None:
        self._outbox.notify(method, params)

    def resource_changed(self, uri: str) -> None:
        """Notify a subscribed client of the changed resource."""
        self._outbox.resource_changed(uri)

    def tools_changed(self) -> None:
        """Notify the client of the changed list of tools."""
        self._outbox.notify("notifications/tools/list_changed")


Run = Callable[[DemoCall], Json]


@dataclass(frozen=True, slots=True)
class DemoTool:
    """A tool's definition, its function, and when it is listed."""

    name: str
    title: str
    description: str
    inputs: Json
    run: Run
    output: Json | None = None
    hints: Json | None = None
    slow: bool = False
    as_task: bool = False
    """True if it runs as a task in the revision that has tasks."""
    shown: Callable[[Lighthouse], bool] = lambda state: True
    fit: Callable[[Lighthouse, DemoTool], DemoTool] = lambda state, tool: tool

    def definition(self) -> Json:
        """The item of tools/list, in the newest revision's shape."""
        members: Json = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.inputs,
            "outputSchema": self.output,
            "annotations": self.hints,
            "execution": {"taskSupport": "required"} if self.as_task else None,
        }
        return {name: value for name, value in members.items() if value is not None}


def tool(
    title: str, fields: Json | None = None, required: tuple[str, ...] = (), **more: Any
) -> Callable[[Run], DemoTool]:
    """Turn a function into a tool named like it and described by its docstring.

    `fields` maps argument names to schemas; the other keywords are members of Tool.
    """
    inputs: Json = {"type": "object", "properties": fields or {}, "additionalProperties": False}
    if required:
        inputs["required"] = list(required)

    def made(run: Run) -> DemoTool:
        description = " ".join((run.__doc__ or "").split())
        return DemoTool(run.__name__, title, description, inputs, run, **more)

    return made


def listed_tools(tools: Iterable[DemoTool], state: Lighthouse) -> list[DemoTool]:
    """The tools that are listed now, with their present definitions."""
    return [each.fit(state, each) for each in tools if each.shown(state)]


def text(words: str, **more: Any) -> Json:
    """A result that says ``words``; the keywords become members beside its content."""
    return {"content": [{"type": "text", "text": words}], **more}


TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def with_defaults(schema: Json, given: Json) -> Json:
    """``given`` with the schema's defaults for missing arguments."""
    fields = schema["properties"]
    return {name: field["default"] for name, field in fields.items() if "default" in field} | given


def complaints(schema: Json, value: Any, where: str = "") -> Iterator[str]:
    """Yield each problem of ``value`` as a phrase that starts with its place."""
    if branches := schema.get("anyOf"):
        nearest = [branch for branch in branches if _is(branch["type"], value)] or branches
        yield from min((list(complaints(branch, value, where)) for branch in nearest), key=len)
        return
    kind = schema["type"]
    if not _is(kind, value):
        yield f"{where}: should be of type {kind}"
        return
    yield from _wrong_choice(schema, value, where)
    yield from _out_of_range(schema, value, where)
    if kind == "object":
        yield from _wrong_members(schema, value, where)
    elif kind == "array":
        for number, item in enumerate(value):
            yield from complaints(schema["items"], item, f"{where}[{number}]")


def _is(kind: str, value: Any) -> bool:
    """True if the value is of that JSON type. In JSON, unlike Python, true is not a number."""
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _wrong_choice(schema: Json, value: Any, where: str) -> Iterator[str]:
    choices = schema.get("enum") or [choice["const"] for choice in schema.get("oneOf", ())]
    if choices and value not in choices:
        yield f"{where}: should be one of {', '.join(map(str, choices))}"


def _out_of_range(schema: Json, value: Any, where: str) -> Iterator[str]:
    size = len(value) if isinstance(value, str | list) else value
    least = schema.get("minimum", schema.get("minLength"))
    most = schema.get("maximum", schema.get("maxLength", schema.get("maxItems")))
    if least is not None and size < least:
        yield f"{where}: {size} is below {least}"
    if most is not None and size > most:
        yield f"{where}: {size} is above {most}"


def _wrong_members(schema: Json, value: Json, where: str) -> Iterator[str]:
    fields, prefix = schema["properties"], f"{where}." if where else ""
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{prefix}{name}: is required"
    for name, member in value.items():
        if name in fields:
            yield from complaints(fields[name], member, prefix + name)
        else:
            yield f"{prefix}{name}: no such argument"
