"""Agents as scripts: the messages that real ones write, and how long they wait.

The versions are those of the real agents with which the messages were recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, Literal
from uuid import UUID

from mcphost.protocol.lifecycle.capabilities import ClientCapabilities
from mcphost.serving.gate import Finished, GateOptions, Questions
from mcphost.serving.ports import GateDecision
from tests.serving.gate_rig import ECHO, META, Rig, notification, request, result, text_result

Json = dict[str, Any]


@dataclass(frozen=True)
class AgentTwin:
    """The wire behaviour of one agent that runs without its own screen."""

    name: str
    """As ``mcphost wrap`` writes it after ``--as``."""
    client: Mapping[str, str]
    revision: str
    capabilities: Mapping[str, Any]
    refusal: Mapping[str, Any]
    """Its answer to a form of the server: a result or an error."""
    probe: str | int | None = None
    """The id of ``server/discover``, with which it opens; None: it speaks the legacy era alone."""
    token: Literal["id", "count", "uuid"] = "id"
    """Of progress: the request's id, a number of its own, or a text."""
    tokens_everywhere: bool = False
    """True if ``tools/list`` has a token, too."""
    call_meta: Mapping[str, Any] = field(default_factory=dict)
    """More in the ``_meta`` of a call."""
    silence: float = inf
    """Seconds without a message for the call, after which it gives up."""
    limit: float = inf
    """Seconds after which it gives up in any case."""
    cancels: int = 1
    """Notifications that it writes for a call that it gives up."""
    cancels_silence: bool = True
    """False if it writes none for a call that was silent."""
    cancels_interrupted: bool = False
    """True if it cancels its calls when the user interrupts it; else its stream ends."""
    cancels_answered: bool = False
    """True if it cancels each call just after its answer."""
    cancels_listening: bool = False
    """True if it cancels its subscription before its stream ends."""
    lists: Literal["at once", "after the call", "never"] = "at once"
    """When it lists after a change of the tools."""

    @property
    def first_id(self) -> int:
        return self.probe + 1 if isinstance(self.probe, int) else 0

    def __str__(self) -> str:
        return self.name


BOTH_MODES: Final[Json] = {"form": {}, "url": {}}
NO_METHOD: Final = {"error": {"code": -32601, "message": "Method not found"}}

CLAUDE_CODE = AgentTwin(
    "claude-code",
    {"name": "claude-code", "title": "Claude Code", "version": "2.1.332"},
    "2025-11-25",
    {"roots": {"listChanged": True}, "elicitation": BOTH_MODES},
    {"result": {"action": "cancel"}},
    probe="server-discover-probe-1",
    call_meta={"claudecode/toolUseId": "toolu_0"},
    silence=30 * 60,
    cancels_silence=False,
)
CODEX = AgentTwin(
    "codex",
    {"name": "codex-mcp-client", "title": "Codex", "version": "0.171.0"},
    "2025-06-18",
    {"experimental": {"codex/auth-change": {}}, "elicitation": BOTH_MODES},
    {"result": {"action": "decline"}},
    token="count",
    tokens_everywhere=True,
    call_meta={"callId": "call_0", "x-codex-turn-metadata": {"model": "gpt-5", "sandbox": "seccomp"}},
    limit=300,
    cancels_interrupted=True,
    lists="never",  # after the call, with ``features.mcp_tool_list_changed``
)
COPILOT = AgentTwin(
    "copilot-cli",
    {"name": "copilot-cli", "version": "1.0.102"},
    "2025-11-25",
    {"sampling": {}, "elicitation": BOTH_MODES},
    {"result": {"action": "decline"}},
    probe=0,
    token="count",
    tokens_everywhere=True,
    cancels_interrupted=True,
    cancels_listening=True,
    lists="after the call",
)
OPENCODE = AgentTwin(
    "opencode",
    {"name": "opencode", "version": "1.18.33"},
    "2025-11-25",
    {"roots": {}},
    NO_METHOD,
    silence=60,
    cancels=2,
    cancels_answered=True,
)
GEMINI = AgentTwin(
    "gemini-cli",
    {"name": "gemini-cli-mcp-client", "version": "0.61.0"},
    "2025-06-18",
    {"roots": {"listChanged": True}},
    NO_METHOD,
    token="uuid",
    limit=10 * 60,
)
AGENTS: Final = (CLAUDE_CODE, CODEX, COPILOT, OPENCODE, GEMINI)


@dataclass
class PendingCall:
    """A call that an agent waits for."""

    id: int
    token: object
    params: Json
    began: float
    heard: float
    """When the last message for it came."""


class ScriptedServer:
    """A server behind the gate of a rig: it opens and lists at once, and answers calls when a test says so."""

    def __init__(self, rig: Rig, *, modern: bool = False, tools: Sequence[Json] = (ECHO,)) -> None:
        self.rig, self.modern, self.tools = rig, modern, list(tools)
        self.calls: list[Json] = []
        """The calls that came, as they were sent."""
        self.others: list[Json] = []
        """The messages that ask for nothing."""
        self._read = 0

    def take(self) -> bool:
        """Read what came; False if nothing did."""
        fresh = self.rig.to_server[self._read :]
        self._read += len(fresh)
        for each in fresh:
            self._got(json.loads(each))
        return bool(fresh)

    def _got(self, message: Json) -> None:
        method, asked = message.get("method"), message.get("id")
        match method:
            case _ if method is None or asked is None:
                self.others.append(message)
            case "tools/call":
                self.calls.append(message)
            case "tools/list":
                self.answer(asked, tools=self.tools)
            case "server/discover" if self.modern:
                self.answer(asked, supportedVersions=["2026-07-28"], capabilities={"tools": {"listChanged": True}})
            case "initialize" if not self.modern:
                revision, capabilities = message["params"]["protocolVersion"], {"tools": {"listChanged": True}}
                self.answer(asked, protocolVersion=revision, capabilities=capabilities)
            case "subscriptions/listen" if self.modern:
                self.rig.server(notification("notifications/subscriptions/acknowledged"))
            case _:
                self.rig.server({"jsonrpc": "2.0", "id": asked, "error": {"code": -32601, "message": "no"}})

    def answer(self, request_id: object, **members: Any) -> None:
        self.rig.server(result(request_id, **({"resultType": "complete"} if self.modern else {}), **members))

    def finish(self, text: str = "done") -> None:
        """Answer the last call."""
        more = {"resultType": "complete"} if self.modern else {}
        self.rig.server(text_result(self.calls[-1]["id"], text, **more))

    def change(self, *tools: Json) -> None:
        """Announce these tools."""
        self.tools = list(tools)
        self.rig.server(notification("notifications/tools/list_changed"))


class ScriptedAgent:
    """An agent at the gate of a rig. Fails if it is answered twice, or for what it did not ask."""

    def __init__(self, twin: AgentTwin, rig: Rig, server: ScriptedServer) -> None:
        self.twin, self.rig, self.server = twin, rig, server
        self.modern = False
        self.listed: list[Json] | None = None
        """The tools that it knows; None: it has not listed."""
        self.pending: dict[int, PendingCall] = {}
        self.answers: dict[object, Json] = {}
        self.given_up: list[int] = []
        self.asked: list[Json] = []
        """The server's requests that it got."""
        self.noticed: list[str] = []
        """The notifications that it got, but for progress."""
        self._ids, self._tokens, self._read = twin.first_id, 0, 0
        self._lists_later = False
        self._listening: int | None = None
        self._cancelled: set[int] = set()

    # What it does.

    def open(self, *, lists: bool = True) -> None:
        """Open a session; without ``lists``, it knows the tools from an earlier one."""
        if self.twin.probe is not None:
            self._write("server/discover", self.twin.probe, _meta=self._envelope())
            self.run()
            self.modern = "result" in self.answers[self.twin.probe]
        if not self.modern:
            opened = self.request(
                "initialize",
                protocolVersion=self.twin.revision,
                capabilities=self.twin.capabilities,
                clientInfo=self.twin.client,
            )
            self.run()
            assert "result" in self.answers[opened]
            self.rig.agent(notification("notifications/initialized"))
        elif self.twin.lists != "never":
            self._listening = self.request("subscriptions/listen", notifications={"toolsListChanged": True})
        if lists:
            self.list()
        self.run()

    def list(self) -> None:
        more = {"progressToken": self._token()} if self.twin.tokens_everywhere else {}
        self.request("tools/list", more)

    def call(self, tool: str = "echo", *, again: Json | None = None, **arguments: Any) -> int:
        """Call a tool; ``again`` are the members of a retry with the server's inputs."""
        token = self._token()
        params = {"name": tool, "arguments": arguments, **(again or {})}
        asked = self.request("tools/call", {**self.twin.call_meta, "progressToken": token}, **params)
        self.pending[asked] = PendingCall(asked, token, params, self.rig.now, self.rig.now)
        self.run()
        return asked

    def cancel(self, request_id: int, times: int = 1) -> None:
        """Give up a call, in words so many times."""
        self.pending.pop(request_id, None)
        self._cancelled.add(request_id)
        for _ in range(times):
            self._cancel(request_id)
        self.run()

    def wait(self, seconds: float) -> None:
        """Wait as the real agent does, and give up calls as it does."""
        for _ in range(round(seconds / STEP)):
            self.rig.pass_time(STEP)
            self.run()
            for each in [*self.pending.values()]:
                limit = self.rig.now - each.began >= self.twin.limit
                if limit or self.rig.now - each.heard >= self.twin.silence:
                    self.given_up.append(each.id)
                    self.cancel(each.id, self.twin.cancels if limit or self.twin.cancels_silence else 0)

    def end(self) -> None:
        """End as after an interrupt of the user."""
        if self.twin.cancels_interrupted:
            for each in [*self.pending]:
                self.cancel(each)
        if self._listening is not None and self.twin.cancels_listening:
            self.rig.agent(notification("notifications/cancelled", requestId=self._listening))
        self.rig.close_agent()
        self.run()

    def run(self) -> None:
        """Let both sides read until nothing is left."""
        while self.server.take() | self.take():
            pass

    def take(self) -> bool:
        """Read what came; False if nothing did."""
        fresh = self.rig.to_agent[self._read :]
        self._read += len(fresh)
        for each in fresh:
            self._got(json.loads(each))
        return bool(fresh)

    # Messages.

    def request(self, method: str, meta: Mapping[str, Any] | None = None, **params: Any) -> int:
        self._ids += 1
        all_meta = {**(self._envelope() if self.modern else {}), **(meta or {})}
        self._write(method, self._ids - 1, **({"_meta": all_meta} if all_meta else {}), **params)
        return self._ids - 1

    def _write(self, method: str, request_id: str | int, **params: Any) -> None:
        message = request(request_id, method, **params)
        if not params:  # as the agents do
            del message["params"]
        self.rig.agent(message)

    def _envelope(self) -> Json:
        return {
            f"{META}protocolVersion": "2026-07-28",
            f"{META}clientInfo": self.twin.client,
            f"{META}clientCapabilities": self.twin.capabilities,
        }

    def _token(self) -> object:
        self._tokens += 1
        if self.twin.token == "id":
            return self._ids
        return self._tokens - 1 if self.twin.token == "count" else str(UUID(int=self._tokens))

    def _cancel(self, request_id: int) -> None:
        reason = "AbortError: The operation was aborted."
        self.rig.agent(notification("notifications/cancelled", requestId=request_id, reason=reason))

    def _got(self, message: Json) -> None:
        method, request_id = message.get("method"), message.get("id")
        if method is None:
            self._answered(message)
        elif request_id is not None:
            self.asked.append(message)
            self.rig.agent({"jsonrpc": "2.0", "id": request_id, **self.twin.refusal})
        elif method == "notifications/progress":
            token = message["params"]["progressToken"]
            (call,) = (each for each in self.pending.values() if each.token == token)
            call.heard = self.rig.now
        else:
            self.noticed.append(method)
            if method == "notifications/tools/list_changed" and self.twin.lists == "at once":
                self.list()
            self._lists_later |= self.twin.lists == "after the call"

    def _answered(self, message: Json) -> None:
        answered = message["id"]
        assert answered not in self.answers, "answered twice"
        assert answered not in self._cancelled, "answered although it was cancelled"
        self.answers[answered] = message
        call, outcome = self.pending.pop(answered, None), message.get("result", {})
        if "tools" in outcome:
            self.listed = outcome["tools"]
        if call is None:
            return
        if self.twin.cancels_answered:
            self._cancel(answered)
        if outcome.get("resultType") == "input_required":
            self._retry(call, outcome)
        elif self._lists_later and not self.pending:
            self._lists_later = False
            self.list()

    def _retry(self, call: PendingCall, outcome: Json) -> None:
        """Call again with its answers to what the server asks."""
        again = {"inputResponses": dict.fromkeys(outcome["inputRequests"], self.twin.refusal["result"])}
        if "requestState" in outcome:
            again["requestState"] = outcome["requestState"]
        self.call(call.params["name"], again=again, **call.params["arguments"])


class TwinSession:
    """An agent that has opened a server through a gate."""

    def __init__(
        self, twin: AgentTwin, *, modern: bool = False, lists: bool = True, questions: Questions = "agent", **more: Any
    ) -> None:
        answers = ClientCapabilities(roots=True, elicitation=frozenset({"form", "url"}), sampling={})
        self.rig = Rig(GateOptions(questions=questions, answers=answers, **more))
        self.server = ScriptedServer(self.rig, modern=modern)
        self.agent = ScriptedAgent(twin, self.rig, self.server)
        self.agent.open(lists=lists)

    def decide(self, decision: GateDecision) -> None:
        """Decide the call that was asked about last."""
        self.rig.decide(decision)
        self.agent.run()

    def finish(self) -> None:
        """Let the server answer its last call."""
        self.agent.run()
        self.server.finish()
        self.agent.run()

    @property
    def ends(self) -> list[str]:
        return [ended.state for ended in self.rig.all(Finished)]

    @property
    def cancelled(self) -> list[Any]:
        """The requests that the agent cancelled, as its server heard."""
        heard = [each for each in self.server.others if each.get("method") == "notifications/cancelled"]
        return [each["params"]["requestId"] for each in heard]

    def text(self, request_id: int) -> str:
        return str(self.agent.answers[request_id]["result"]["content"][0]["text"])


STEP: Final = 5.0
"""Seconds: the agents look for silence in longer steps, and all limits are multiples."""
