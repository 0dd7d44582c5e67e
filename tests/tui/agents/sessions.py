"""Sessions of agents: as values, and connected to a host."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

from mcphost.config.gated import GatedProgram
from mcphost.host.agents.connected import ConnectedAgent
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.service import Introduction
from mcphost.host.agents.session import AgentCall, AgentSession
from mcphost.host.host import Host
from mcphost.serving.ports import GateDecision

WORK = "/work/lighthouse"


def claude(**more: Any) -> AgentFacts:
    facts: dict[str, Any] = {
        "label": "claude-code",
        "claimed": "claude-code",
        "version": "2.1.332",
        "pid": 4711,
        "program": "/usr/bin/claude",
        "folder": WORK,
        "given": "claude-code",
    }
    return AgentFacts(**{**facts, **more})


def session(
    number: int = 1,
    server: str = "git",
    agent: AgentFacts | None = None,
    *,
    role: Literal["tap", "gate"] = "gate",
    **more: Any,
) -> AgentSession:
    settings: dict[str, Any] = {"command": ("uvx", "mcp-server-git"), "since": time.time() - 300}
    return AgentSession(number, role, server, agent or claude(), **{**settings, **more})


def call(of: AgentSession, number: int, tool: str = "git_push", **more: Any) -> AgentCall:
    """A call of this session, which was asked for just now."""
    made = AgentCall(number, tool, number, time.monotonic(), server=of.server, **more)
    of.calls[number] = made
    of.call_count += 1
    return made


class RecordingPort:
    """The end of a gate, which records what the screen says."""

    def __init__(self) -> None:
        self.decisions: list[GateDecision] = []
        self.replies: dict[int, Mapping[str, Any]] = {}
        self.refusals: dict[int, str] = {}
        self.agent: ConnectedAgent | None = None

    def decided(self, call: int, decision: GateDecision) -> None:
        self.decisions.append(decision)

    def replied(self, number: int, result: Mapping[str, Any]) -> None:
        self.replies[number] = result

    def refused(self, number: int, code: int, message: str) -> None:
        self.refusals[number] = message

    def disconnect(self) -> None:
        if self.agent is not None:
            self.agent.closed()


async def connect(host: Host, facts: AgentFacts, server: str = "git") -> tuple[ConnectedAgent, RecordingPort]:
    """Let a gate of this agent connect to the host."""
    program = GatedProgram(
        command=("uvx", "mcp-server-git"), url=None, folder="/home/ada/lighthouse", names=frozenset()
    )
    port = RecordingPort()
    introduction = Introduction("gate", server, facts.given, program, time.time(), 4714, "agent")
    port.agent = await host.agents.connect(introduction, 0, port)
    port.agent.session.agent = facts
    port.agent.named(facts.claimed, facts.version, "2025-11-25")
    return port.agent, port


@asynccontextmanager
async def connected(host: Host) -> AsyncIterator[tuple[ConnectedAgent, RecordingPort]]:
    """The gate of an agent that goes away at the end, and with it all that waits."""
    agent, port = await connect(host, claude())
    try:
        yield agent, port
    finally:
        agent.closed()


def ask(agent: ConnectedAgent, number: int = 1, within: float | None = 50.0) -> None:
    """Let the agent call ``git_push``."""
    agent.asked(number, number, "git_push", PUSH, {"remote": "origin", "branch": "main"}, within)


PUSH: Final = {
    "name": "git_push",
    "description": "Pushes a branch to a remote.",
    "inputSchema": {
        "type": "object",
        "properties": {"remote": {"type": "string"}, "branch": {"type": "string"}},
    },
    "annotations": {"destructiveHint": False},
}
