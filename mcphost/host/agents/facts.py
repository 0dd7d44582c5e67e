"""The names of an agent: by its configuration, by its own words, and by the kernel."""

from __future__ import annotations

from dataclasses import replace

from mcphost.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """An agent. Its claims only label: they never widen what it may do. All texts are foreign."""

    label: str
    """The name to show: of ``--as``, else what the agent claims, else the name of its program."""
    claimed: str = ""
    """The name that it claims in the protocol."""
    version: str = ""
    """The version that it claims."""
    pid: int | None = None
    program: str = ""
    """The path of its program, as the kernel knows it."""
    folder: str = ""
    """The folder that it works in, as the kernel knows it."""
    given: str = ""
    """The name of ``--as``: the only one that rules go by."""

    def introduced(self, claimed: str, version: str) -> AgentFacts:
        """The same agent, with what it now says of itself."""
        return replace(self, label=self.given or claimed or self.label, claimed=claimed, version=version)

    @property
    def origin(self) -> str:
        """The asking party in questions and in the audit log."""
        return f"agent:{self.label}"

    @property
    def record(self) -> dict[str, object]:
        """Its members of an audit record."""
        return {
            "agent": self.label,
            "agent_pid": self.pid,
            "agent_program": self.program,
            "agent_folder": self.folder,
        }
