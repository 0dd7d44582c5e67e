"""Sessions of agents as values."""

from __future__ import annotations

import time
from typing import Any, Literal

from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.session import AgentCall, AgentSession

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
    made = AgentCall(number, tool, number, time.monotonic(), **more)
    of.calls[number] = made
    of.call_count += 1
    return made
