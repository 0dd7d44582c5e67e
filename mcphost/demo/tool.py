"""A tool of the demo server: its definition, the decorator that makes one of a function, and a running call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from queue import SimpleQueue
from typing import Any

from mcphost.demo.lighthouse import Lighthouse
from mcphost.demo.revisions import trimmed
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.logging import LogLevel
from mcphost.serving.negotiation import UndeclaredError
from mcphost.serving.served_request import ClientAnswer, ClientAsk, Json, ServedRequest
from mcphost.serving.session import ServerSession


class ToolFailedError(Exception):
    """The tool ran and failed: a result with ``isError``, which a model can read."""


class CallCancelledError(Exception):
    """The client cancelled the call: nothing is answered."""


class DemoCall:
    """A running call: its arguments, the lighthouse it acts on, and what it can send.

    Its methods may be called from any thread; ``lock`` is that of the session.
    """

    def __init__(
        self,
        arguments: Json,
        state: Lighthouse,
        request: ServedRequest,
        session: ServerSession,
        lock: AbstractContextManager[bool],
    ) -> None:
        self.arguments = arguments
        self.state = state
        self._request, self._session, self._lock = request, session, lock
        self._cancelled = threading.Event()
        request.on_cancel = self._cancelled.set

    def wait(self, seconds: float) -> None:
        """Sleep; raises CallCancelledError as soon as the call is cancelled."""
        if self._cancelled.wait(seconds):
            raise CallCancelledError

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report progress, if the client gave a token for it."""
        report: Json = {"progress": done}
        if total is not None:
            report["total"] = total
        if message:
            report["message"] = message
        with self._lock:
            self._request.progress(trimmed("progress", report, self._request.revision))

    def log(self, level: LogLevel, data: Any, logger: str = "keeper") -> None:
        """Send a log message."""
        with self._lock:
            self._request.log(level, data, logger)

    def offers(self, capability: str, part: str) -> bool:
        """True if the client declared this part of a capability."""
        return part in as_dict(self._request.declaration.capabilities.get(capability))

    def ask(self, method: str, **params: Any) -> Json:
        """Send a request; the client's answer. Raises CallCancelledError; ToolFailedError if the client refuses."""
        answers: SimpleQueue[ClientAnswer] = SimpleQueue()
        try:
            with self._lock:
                self._request.ask(ClientAsk(method, params, answers.put))
        except UndeclaredError as error:
            if self._request.revision.modern:
                raise
            raise ToolFailedError(f"Your host does not answer this. {error.message}") from None
        answer = answers.get()
        if answer.error is not None:
            raise ToolFailedError(f"Your host refused: {answer.error.message} ({answer.error.code})")
        if answer.result is None:
            raise CallCancelledError
        return dict(answer.result)

    def complete_elicitation(self, elicitation_id: str) -> None:
        with self._lock:
            self._request.complete_elicitation(elicitation_id)

    def resource_changed(self, uri: str) -> None:
        """Notify a subscribed client of the changed resource."""
        with self._lock:
            self._session.resource_updated(uri)

    def tools_changed(self) -> None:
        """Notify the client of the changed list of tools."""
        with self._lock:
            self._session.list_changed("tools")


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
