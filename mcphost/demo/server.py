"""The demo server: a lighthouse behind a server's session, over stdio; slow calls run in threads."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

from mcphost.demo import lighthouse, progress, results, server_requests, state_changes
from mcphost.demo.prompts import PromptMethods
from mcphost.demo.resources import ResourceMethods
from mcphost.demo.revisions import trimmed, trimmed_result
from mcphost.demo.skills import METHODS as SKILL_METHODS
from mcphost.demo.tool import (
    CallCancelledError,
    DemoCall,
    DemoTool,
    ToolFailedError,
    complaints,
    listed_tools,
    text,
    with_defaults,
)
from mcphost.protocol.extensions import SKILLS_EXTENSION, TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import InvalidParamsError, RpcError, ServerIntroduction
from mcphost.serving.pages import page
from mcphost.serving.served_request import Json, RequestKey, ServedRequest
from mcphost.serving.session import CACHEABLE, ServedContent, ServerSession

PAGE_TOOLS = 15  # so that the demo's list has two pages
TOOLS = (*results.TOOLS, *progress.TOOLS, *server_requests.TOOLS, *state_changes.TOOLS)

CAPABILITIES: Json = {
    "logging": {},
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "prompts": {},
    "completions": {},
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
    "extensions": {TASKS_EXTENSION: {}, SKILLS_EXTENSION: {}},
}
FRESH_MILLISECONDS = {"resources/templates/list": 600_000, "prompts/list": 600_000}
"""Milliseconds for which results that do not change are fresh; all others are so for a minute."""


class Server(ServedContent):
    """One client's lighthouse."""

    def __init__(self, source: IO[bytes], sink: IO[bytes]) -> None:
        self._source, self._sink = source, sink
        self._lock = threading.RLock()
        """Of the session, which the threads of slow calls use, too."""
        self._state = lighthouse.Lighthouse()
        self._session = ServerSession(self, self._send)
        self._methods: dict[str, Callable[[Json, Revision], Json]] = {
            "tools/list": self._list_tools,
            **ResourceMethods(self._state).methods,
            **PromptMethods(self._state).methods,
            **SKILL_METHODS,
        }

    def serve(self) -> None:
        """Answer until the input ends."""
        sys.stderr.write(f"{lighthouse.TITLE} {lighthouse.VERSION}: reading JSON-RPC lines from stdin.\n")
        sys.stderr.flush()
        for line in self._source:
            if line.strip():
                with self._lock:
                    self._session.receive(line)
        with self._lock:
            self._session.close()

    # For the session (`ServedContent`).

    def introduction(self, revision: Revision) -> ServerIntroduction:
        identity = {
            "name": lighthouse.NAME,
            "title": lighthouse.TITLE,
            "version": lighthouse.VERSION,
            "description": lighthouse.DESCRIPTION,
        }
        return ServerIntroduction(
            trimmed("identity", identity, revision), CAPABILITIES, lighthouse.INSTRUCTIONS, fresh_milliseconds=3_600_000
        )

    def opened(self) -> None:
        self._session.log(LogLevel.INFO, "Good evening. The lamp is lit and the kettle is on.", "keeper")

    def begin(self, request: ServedRequest) -> None:
        if request.method == "tools/call":
            self._call_tool(request)
            return
        result = self._methods[request.method](request.params, request.revision)
        hint = {"ttlMs": FRESH_MILLISECONDS.get(request.method, 60_000)} if request.method in CACHEABLE else {}
        request.finish(hint | result)

    def _send(self, message: Any, about: RequestKey | None) -> None:
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        self._sink.write(line.encode() + b"\n")
        self._sink.flush()

    def _list_tools(self, params: Json, revision: Revision) -> Json:
        tools = [trimmed("tool", each.definition(), revision) for each in listed_tools(TOOLS, self._state)]
        return page("tools", tools, params, PAGE_TOOLS)

    def _call_tool(self, request: ServedRequest) -> None:
        name, given = request.params.get("name"), request.params.get("arguments") or {}
        tool = next((each for each in listed_tools(TOOLS, self._state) if each.name == name), None)
        if tool is None:
            raise InvalidParamsError(f"There is no tool {name} on this rock.")
        if not isinstance(given, dict):
            raise InvalidParamsError("arguments is an object.")
        if request.revision.tasks and ("task" in request.params) is not tool.as_task:
            words = f"{tool.name} {'only' if tool.as_task else 'never'} runs as a task."
            raise RpcError(ErrorCode.METHOD_NOT_FOUND, words)
        if wrong := list(complaints(tool.inputs, given)):
            request.finish(text("The keeper cannot read this: " + "; ".join(wrong), isError=True))
            return
        call = DemoCall(with_defaults(tool.inputs, given), self._state, request, self._session, self._lock)
        if tool.as_task and request.may_start_task:
            request.start_task()
        if tool.slow:
            threading.Thread(target=self._run, args=(tool, call, request), daemon=True).start()
        else:
            self._run(tool, call, request)

    def _run(self, tool: DemoTool, call: DemoCall, request: ServedRequest) -> None:
        try:
            result = trimmed_result(tool.run(call), request.revision)
        except ToolFailedError as failure:
            result = text(str(failure), isError=True)
        except CallCancelledError:
            with self._lock:
                self._session.log(LogLevel.NOTICE, f"{tool.title}: called back", "keeper")
            return
        except RpcError as error:
            with self._lock:
                request.fail(error)
            return
        with self._lock:
            request.finish(result)
