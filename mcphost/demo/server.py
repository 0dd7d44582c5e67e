"""The demo server: JSON-RPC over stdio, every revision from 2024-11-05 on; slow calls run in threads."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import IO, Any, NoReturn

from mcphost.demo import lighthouse, progress, results, server_requests, state_changes
from mcphost.demo.modern import Announcements, CallOutbox, WaitingCalls, discovery, finished, is_modern
from mcphost.demo.prompts import PromptMethods
from mcphost.demo.resources import ResourceMethods
from mcphost.demo.revisions import BATCHES, CAPABILITIES, MODERN, NEWEST, agreed, has, trimmed, trimmed_result
from mcphost.demo.server_requests import RefusedError, ServerRequests
from mcphost.demo.tasks import DemoTask, DemoTasks
from mcphost.demo.tool import (
    LEVELS,
    CallCancelledError,
    DemoCall,
    DemoTool,
    InvalidParamsError,
    Json,
    RpcError,
    ToolFailedError,
    complaints,
    listed_tools,
    text,
    with_defaults,
)

PAGE_TOOLS = 15  # so that the demo's list has two pages
TOOLS = (*results.TOOLS, *progress.TOOLS, *server_requests.TOOLS, *state_changes.TOOLS)


class Server:
    """One client's lighthouse."""

    def __init__(self, source: IO[bytes], sink: IO[bytes]) -> None:
        self._source, self._sink = source, sink
        self._writing = threading.Lock()
        self._state = lighthouse.Lighthouse()
        self._revision = ""
        self._level = LEVELS.index("info")
        self._running: dict[str | int, DemoCall] = {}
        self._client: Json = {}
        self._questions = ServerRequests(self._send, self.notify)
        self._methods: dict[str, Callable[[Json, str | int], Json | None]] = {
            "initialize": self._initialize,
            "ping": lambda params, request_id: {},
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "logging/setLevel": self._set_level,
        }
        self._resources = ResourceMethods(self._state, lambda: self._revision)
        prompts = PromptMethods(self._state, lambda: self._revision)
        self._tasks = DemoTasks(self.notify)
        self._methods["tasks/result"] = self._task_result
        self._announcements = Announcements(self.notify)
        self._waiting = WaitingCalls()
        self._methods["server/discover"] = lambda params, request_id: discovery()
        self._methods["subscriptions/listen"] = self._listen
        more = self._resources.methods | prompts.methods | self._tasks.methods
        self._methods |= {name: _without_id(method) for name, method in more.items()}

    def serve(self) -> None:
        """Answer until the input ends."""
        sys.stderr.write(f"{lighthouse.TITLE} {lighthouse.VERSION}: reading JSON-RPC lines from stdin.\n")
        sys.stderr.flush()
        for line in self._source:
            if line.strip():
                self._receive(line)

    def notify(self, method: str, params: Json | None = None) -> None:
        message: Json = {"jsonrpc": "2.0", "method": method}
        self._send(message if params is None else message | {"params": trimmed(method, params, self._revision)})

    def log(self, level: str, data: Any, logger: str) -> None:
        """Send a log message, unless the client asked for louder ones only."""
        if LEVELS.index(level) >= self._level:
            self.notify("notifications/message", {"level": level, "logger": logger, "data": data})

    def resource_changed(self, uri: str) -> None:
        """Send a notification if the client subscribed to that resource."""
        if self._resources.is_subscribed(uri):
            self.notify("notifications/resources/updated", {"uri": uri})

    def offered(self, capability: str) -> Json | None:
        """The client's declaration of this capability; None without one."""
        declared = self._client.get(capability)
        return declared if isinstance(declared, dict) else None

    def ask(self, method: str, params: Json, cancelled: threading.Event) -> Json | None:
        """The client's answer; None when the call was cancelled. Raises ToolFailedError."""
        try:
            return self._questions.ask(method, params, cancelled)
        except RefusedError as refused:
            raise ToolFailedError(f"Your host refused: {refused}") from None

    def _send(self, message: Any) -> None:
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        with self._writing:  # a lone surrogate has no UTF-8, and is not worth a call
            self._sink.write(line.encode("utf-8", "replace") + b"\n")
            self._sink.flush()

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            self._send(_error(None, -32700, "That line is not JSON in UTF-8."))
            return
        if isinstance(message, list) and message and self._revision == BATCHES:
            answer: Any = [each for each in map(self._handle, message) if each]
        else:
            answer = self._handle(message)
        if answer:
            self._send(answer)

    def _handle(self, message: Any) -> Json | None:
        """The answer that ``message`` gets now, if any."""
        if not isinstance(message, dict):
            return _error(None, -32600, "A message is one JSON object.")
        method, params = message.get("method"), message.get("params", {})
        if "id" not in message:
            self._notified(method, params)
            return None
        if method is None:
            self._questions.answered(message)
            return None
        request_id = message["id"]
        if not isinstance(request_id, str | int) or isinstance(request_id, bool):
            return _error(None, -32600, "An id is a string or an integer.")
        return self._answer(request_id, lambda: self._result(request_id, method, params))

    def _answer(self, request_id: str | int, produce: Callable[[], Json | None]) -> Json | None:
        """The answer made of what ``produce`` returns or raises; None when it returns None."""
        try:
            result = produce()
        except RpcError as error:
            return _error(request_id, *error.args)
        return None if result is None else {"jsonrpc": "2.0", "id": request_id, "result": result}

    def _result(self, request_id: str | int, method: Any, params: Any) -> Json | None:
        if not self._revision and is_modern(params):
            self._revision = MODERN
        handler = self._methods.get(method) if isinstance(method, str) else None
        if handler is None or not has("method", method, self._revision or NEWEST):
            raise RpcError(-32601, f"The lighthouse knows no method {method}.")
        if not isinstance(params, dict):
            raise InvalidParamsError("params is an object.")
        if not self._revision and method not in ("initialize", "ping"):
            raise RpcError(-32600, "Say initialize first.")
        result = handler(params, request_id)
        return finished(method, result) if result is not None and self._revision == MODERN else result

    def _listen(self, params: Json, request_id: str | int) -> None:
        self._announcements.listen(request_id, params)

    def _notified(self, method: Any, params: Any) -> None:
        if method == "notifications/initialized":
            self.log("info", "Good evening. The lamp is lit and the kettle is on.", "keeper")
        elif method == "notifications/cancelled" and isinstance(params, dict):
            request_id = params.get("requestId")
            self._announcements.end(request_id)
            if isinstance(request_id, str | int) and (call := self._running.get(request_id)):
                call.cancel()

    def _initialize(self, params: Json, request_id: str | int) -> Json:
        self._revision = agreed(params.get("protocolVersion"))
        declared = params.get("capabilities")
        self._client = declared if isinstance(declared, dict) else {}
        identity = {
            "name": lighthouse.NAME,
            "title": lighthouse.TITLE,
            "version": lighthouse.VERSION,
            "description": lighthouse.DESCRIPTION,
        }
        return {
            "protocolVersion": self._revision,
            "capabilities": trimmed("capabilities", CAPABILITIES, self._revision),
            "serverInfo": trimmed("identity", identity, self._revision),
            "instructions": lighthouse.INSTRUCTIONS,
        }

    def _set_level(self, params: Json, request_id: str | int) -> Json:
        if params.get("level") not in LEVELS:
            raise InvalidParamsError(f"level is one of {', '.join(LEVELS)}.")
        self._level = LEVELS.index(params["level"])
        return {}

    def _list_tools(self, params: Json, request_id: str | int) -> Json:
        tools = [trimmed("tool", each.definition(), self._revision) for each in listed_tools(TOOLS, self._state)]
        starts = {f"page-{start // PAGE_TOOLS + 1}": start for start in range(0, len(tools), PAGE_TOOLS)}
        cursor = params.get("cursor", "page-1")
        if not isinstance(cursor, str) or cursor not in starts:
            raise InvalidParamsError("That cursor is none of ours.")
        end = starts[cursor] + PAGE_TOOLS
        page: Json = {"tools": tools[starts[cursor] : end]}
        return page | ({"nextCursor": f"page-{end // PAGE_TOOLS + 1}"} if end < len(tools) else {})

    def _call_tool(self, params: Json, request_id: str | int) -> Json | None:
        tool = next((each for each in listed_tools(TOOLS, self._state) if each.name == params.get("name")), None)
        if tool is None:
            raise InvalidParamsError(f"There is no tool {params.get('name')} on this rock.")
        given = params.get("arguments") or {}
        if not isinstance(given, dict):
            raise InvalidParamsError("arguments is an object.")
        if wrong := list(complaints(tool.inputs, given)):
            return text("The keeper cannot read this: " + "; ".join(wrong), isError=True)
        if self._revision == MODERN:
            return self._call_in_rounds(tool, with_defaults(tool.inputs, given), params, request_id)
        call = DemoCall(with_defaults(tool.inputs, given), self._state, self, _token(params))
        if has("tool", "execution", self._revision) and ("task" in params or tool.as_task):
            return self._start_task(tool, call, params)
        if not tool.slow:
            return self._run(tool, call)
        self._running[request_id] = call
        threading.Thread(target=self._run_slowly, args=(tool, call, request_id), daemon=True).start()
        return None

    def _call_in_rounds(self, tool: DemoTool, given: Json, params: Json, request_id: str | int) -> Json | None:
        """Begin a call, or go on with one that waited for this attempt."""
        outbox = self._waiting.resume(params)
        if outbox is None:
            outbox = CallOutbox(params, self.notify, self._announcements)
            call = DemoCall(given, self._state, outbox, _token(params))
            if not tool.slow:
                return self._run(tool, call)
            self._running[request_id] = call
            threading.Thread(target=self._run_in_rounds, args=(tool, call, outbox), daemon=True).start()
        threading.Thread(target=self._send_outcome, args=(outbox, request_id), daemon=True).start()
        return None

    def _run_in_rounds(self, tool: DemoTool, call: DemoCall, outbox: CallOutbox) -> None:
        answer = self._answer("", lambda: self._run(tool, call))
        outbox.outcomes.put(answer and {key: answer[key] for key in ("result", "error") if key in answer})

    def _send_outcome(self, outbox: CallOutbox, request_id: str | int) -> None:
        try:
            outcome = self._waiting.outcome(outbox)
        except CallCancelledError:
            return
        finally:
            self._running.pop(request_id, None)
        if "error" in outcome:
            self._send({"jsonrpc": "2.0", "id": request_id, **outcome})
        else:
            result = finished("tools/call", outcome.get("result", outcome))
            self._send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def _start_task(self, tool: DemoTool, call: DemoCall, params: Json) -> Json:
        if not tool.as_task or "task" not in params:
            raise RpcError(-32601, f"{tool.name} {'only' if tool.as_task else 'never'} runs as a task.")
        task = self._tasks.begin(call, params["task"])
        begun = task.as_object()

        def run() -> None:
            self._tasks.finish(task, self._answer("", lambda: self._run(tool, call)))

        threading.Thread(target=run, daemon=True).start()
        return {"task": begun}

    def _task_result(self, params: Json, request_id: str | int) -> Json | None:
        """Answer with a task's result, now or as soon as it ends."""
        task = self._tasks.find(params)

        def answer() -> Json | None:
            task.over.wait()
            return self._answer(request_id, lambda: _task_outcome(task))

        if task.over.is_set():
            return _task_outcome(task)
        threading.Thread(target=lambda: self._send(answer()), daemon=True).start()
        return None

    def _run(self, tool: DemoTool, call: DemoCall) -> Json | None:
        """The tool's result; None if the call was cancelled."""
        try:
            return trimmed_result(tool.run(call), self._revision)
        except ToolFailedError as failure:
            return text(str(failure), isError=True)
        except CallCancelledError:
            self.log("notice", f"{tool.title}: called back", "keeper")
            return None

    def _run_slowly(self, tool: DemoTool, call: DemoCall, request_id: str | int) -> None:
        answer = self._answer(request_id, lambda: self._run(tool, call))
        del self._running[request_id]
        if answer:
            self._send(answer)


def _without_id(method: Callable[[Json], Json]) -> Callable[[Json, str | int], Json]:
    return lambda params, request_id: method(params)


def _task_outcome(task: DemoTask) -> Json:
    if task.error is not None:
        raise RpcError(*task.error)
    if task.result is None:
        raise InvalidParamsError("That errand was called off: it brought nothing.")
    return task.result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _token(params: Json) -> str | int | None:
    """The progress token of a request, if it brought a usable one."""
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, str | int) else None


def _error(request_id: str | int | None, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
