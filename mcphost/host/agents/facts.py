"""The facts about an agent at the other end of a tap or a gate."""

from __future__ import annotations

from pathlib import PurePath
from typing import NamedTuple


class AgentFacts(NamedTuple):
    named: str = ""
    """The name of ``--as``: the only one that counts in rules and approvals. Empty without one."""
    claimed: str = ""
    """The ``clientInfo`` name, as the agent sent it; foreign text."""
    version: str = ""
    """The version that the agent claims; foreign text."""
    pid: int = 0
    program: str = ""
    """The path of the agent's program as the system has it; empty where that is unknown."""
    folder: str = ""
    """The folder in which the gate or tap was started."""

    @property
    def label(self) -> str:
        """The agent's name for a person: foreign text unless ``named``."""
        return self.named or self.claimed or PurePath(self.program).name or "an agent"

    @property
    def origin(self) -> str:
        """The asking party of its calls."""
        return f"agent:{self.label}"


def audited(agent: AgentFacts | None) -> dict[str, object]:
    """The members of an audit record that say which agent it was; none for mcphost's own calls."""
    if agent is None:
        return {}
    return {
        "agent": agent.label,
        "agent_pid": agent.pid,
        "agent_program": agent.program,
        "agent_folder": agent.folder,
    }
