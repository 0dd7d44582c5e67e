"""An agent, a server and an approver around an `AgentGate`, whose tests say what happens and when."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mcphost.serving.gate import (
    AgentGate,
    Ask,
    AskInbox,
    GateAction,
    GateOptions,
    Note,
    ToAgent,
    ToServer,
)
from mcphost.serving.ports import GatedCall, GateDecision

Kind = TypeVar("Kind")

YES, NO = GateDecision(True), GateDecision(False, words="Not this one.")
ECHO = {"name": "echo", "inputSchema": {"type": "object"}}
META = "io.modelcontextprotocol/"


def line(message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


def request(request_id: object, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def call(request_id: object, tool: str = "echo", *, meta: dict[str, Any] | None = None, **arguments: Any) -> Any:
    params = {"name": tool, "arguments": arguments}
    return request(request_id, "tools/call", **(params if meta is None else {**params, "_meta": meta}))


def notification(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def result(request_id: object, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": members}


def text_result(request_id: object, text: str = "done", **members: Any) -> dict[str, Any]:
    return result(request_id, content=[{"type": "text", "text": text}], **members)


class Rig:
    def __init__(self, options: GateOptions | None = None) -> None:
        self.gate = AgentGate(options or GateOptions())
        self.now = 1000.0
        self.to_server: list[bytes] = []
        self.to_agent: list[bytes] = []
        self.facts: list[GateAction] = []
        self.forward: Callable[[GateAction], None] = lambda fact: None
        """Called with each fact."""

    def agent(self, *messages: object) -> None:
        """The agent writes messages, or lines as bytes."""
        for each in messages:
            self._do(self.gate.agent_line(each if isinstance(each, bytes) else line(each), self.now))

    def server(self, *messages: object) -> None:
        for each in messages:
            self._do(self.gate.server_line(each if isinstance(each, bytes) else line(each), self.now))

    def decide(self, decision: GateDecision, number: int | None = None) -> None:
        """Decide the call of this number, else the last that was asked about."""
        self._do(self.gate.decide(self.asked[-1].number if number is None else number, decision, self.now))

    def reply(self, outcome: dict[str, Any] | None, number: int | None = None, error: Any = None) -> None:
        self._do(self.gate.reply(self.all(AskInbox)[-1].number if number is None else number, self.now, outcome, error))

    def close_agent(self) -> None:
        self._do(self.gate.agent_closed(self.now))

    def close_server(self) -> None:
        self._do(self.gate.server_closed(self.now))

    def pass_time(self, seconds: float) -> None:
        """Wake the gate whenever it wants that, until so many seconds have passed."""
        end = self.now + seconds
        while (due := self.gate.wake_at) is not None and due <= end:
            self.now = max(self.now, due)
            self._do(self.gate.wake(self.now))
        self.now = end

    def _do(self, actions: Sequence[GateAction]) -> None:
        for each in actions:
            match each:
                case ToServer():
                    self.to_server += each.data.splitlines(keepends=True)
                case ToAgent():
                    self.to_agent += each.data.splitlines(keepends=True)
                case _:
                    self.facts.append(each)
                    self.forward(each)

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [each for each in self.facts if isinstance(each, kind)]

    @property
    def asked(self) -> list[GatedCall]:
        return [each.call for each in self.all(Ask)]

    @property
    def notes(self) -> list[str]:
        return [each.text for each in self.all(Note)]

    @property
    def server_got(self) -> list[Any]:
        return [json.loads(each) for each in self.to_server]

    @property
    def agent_got(self) -> list[Any]:
        return [json.loads(each) for each in self.to_agent]

    def clear(self) -> None:
        """Forget what was said so far."""
        self.to_server.clear()
        self.to_agent.clear()
        self.facts.clear()


def opened(
    options: GateOptions | None = None,
    *,
    tools: Sequence[dict[str, Any]] | None = (ECHO,),
    client: str = "",
    capabilities: dict[str, Any] | None = None,
) -> Rig:
    """A rig whose agent opened in the legacy era, and listed these tools; None: it did not list."""
    rig = Rig(options)
    info = {"name": client, "version": "1"}
    rig.agent(request(0, "initialize", protocolVersion="2025-11-25", capabilities=capabilities or {}, clientInfo=info))
    rig.server(result(0, protocolVersion="2025-11-25", capabilities={"tools": {}}))
    rig.agent(notification("notifications/initialized"))
    if tools is not None:
        rig.agent(request("list", "tools/list"))
        rig.server(result("list", tools=list(tools)))
    rig.clear()
    return rig


def modern_meta(**capabilities: Any) -> dict[str, Any]:
    return {
        f"{META}protocolVersion": "2026-07-28",
        f"{META}clientInfo": {"name": "agent", "version": "1"},
        f"{META}clientCapabilities": capabilities,
    }
