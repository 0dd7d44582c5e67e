"""One agent that speaks to a server through a tap or gate, or to mcphost as its server, and its calls."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import Enum
from typing import Final, Literal

from mcphost.host.agents.facts import AgentFacts
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.redaction import safe_command

KEPT_CALLS: Final = 200
"""Ended calls of a session that are kept."""

PROGRAM_CHARACTERS: Final = 600
"""Characters of a program's words that are shown."""


def shown_program(words: str) -> str:
    """The words of a program, in the quotes of a shell, without secrets and safe to show."""
    # Cut twice, since an agent may send a megabyte, and the start of a secret would not be known for one.
    return show_line(safe_command(words[: 2 * PROGRAM_CHARACTERS]), PROGRAM_CHARACTERS)


class AgentCallState(Enum):
    """The state of a call of an agent."""

    BEGUN = "begun"
    """The server starts, or its tools are listed."""
    WAITING = "waiting"
    """The person is asked."""
    OVERDUE = "overdue"
    """The agent was answered "not decided yet"; the person is still asked."""
    ALLOWED = "allowed"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"
    SENT = "sent"
    """The server has it."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"

    @property
    def waits(self) -> bool:
        """True if the person is asked."""
        return self in (AgentCallState.WAITING, AgentCallState.OVERDUE)

    @property
    def ended(self) -> bool:
        return not self.waits and self not in (AgentCallState.BEGUN, AgentCallState.ALLOWED, AgentCallState.SENT)


@dataclass(slots=True)
class AgentCall:
    """A call of an agent. Times are of the monotonic clock in seconds."""

    number: int
    """Its number among all calls of the host, that of its question and of its records in the audit log."""
    tool: str
    request_id: str | int | float
    asked_at: float
    answer_within: float | None = None
    """Seconds after ``asked_at`` in which the agent is answered, decided or not."""
    state: AgentCallState = AgentCallState.WAITING
    allowed: bool | None = None
    by: str = ""
    """The source of the decision: ``user`` or ``policy``."""
    doubted: bool = False
    """True if the agent may have given up without a word."""
    decided_at: float | None = None
    sent_at: float | None = None
    answered_at: float | None = None
    server: str = ""
    put_at: float | None = None
    """When the person was asked, if that was later than ``asked_at``."""

    def wait_again(self, within: float | None) -> None:
        """The agent has repeated the overdue call."""
        passed = time.monotonic() - self.asked_at
        self.answer_within = None if within is None else passed + within
        self.state, self.doubted = AgentCallState.WAITING, False

    @property
    def until(self) -> float | None:
        """When the agent is answered at the latest."""
        return None if self.answer_within is None else self.asked_at + self.answer_within

    @property
    def waited_for_you(self) -> float | None:
        """Seconds from the question to the decision, or until now; None if no person was asked."""
        if self.by == "policy" or self.state is AgentCallState.BEGUN:
            return None
        return (self.decided_at or time.monotonic()) - (self.put_at or self.asked_at)

    @property
    def waited_for_server(self) -> float | None:
        """Seconds from the server's request to its answer, or until now; None if it was not sent."""
        return None if self.sent_at is None else (self.answered_at or time.monotonic()) - self.sent_at


class AgentSession:
    """One agent at its server, or its servers through mcphost. Read-only outside `mcphost.host.agents`."""

    def __init__(
        self,
        number: int,
        role: Literal["tap", "gate", "serve"],
        server: str,
        agent: AgentFacts,
        *,
        servers: Sequence[str] = (),
        profile: str | None = None,
        command: Sequence[str] = (),
        url: str = "",
        identity: str = "",
        since: float = 0.0,
        child: int | None = None,
        questions: Literal["agent", "here", "both"] = "agent",
    ) -> None:
        self.number, self.role, self.server, self.agent = number, role, server, agent
        self.servers: dict[str, str] = {name: name for name in servers}
        """The entries that a served agent may use, each with the name of the running server that it uses."""
        self.profile = profile
        """The profile that limits a served agent."""
        self.command, self.url = tuple(command), url
        self.identity = identity
        """The words of the program, its folder included; approvals are bound to them."""
        self.since = since
        """Unix time at which the server was started."""
        self.child = child
        """The process id of the server."""
        self.questions = questions
        """The side that answers the server's questions."""
        self.traffic_name = f"{agent.label}>{server}"
        """The name of its messages in the traffic book."""
        self.ended_at: float | None = None
        """Unix time; None while it is connected."""
        self.dropped = 0
        """Copies of messages that were left out."""
        self.messages = 0
        """Copies of messages that came."""
        self.declining = False
        """True if everything that the agent asks is declined."""
        self.revision = ""
        """The revision that the agent speaks with the server."""
        self.calls: dict[int, AgentCall] = {}
        """By number, oldest first: those that have not ended, and the last that have."""
        self.call_count = 0
        """Calls that were asked for, the forgotten ones included."""

    @property
    def asker(self) -> str:
        """The asking party in questions of the server; safe to show."""
        return f"{show_line(self.server, 60)} through {show_line(self.agent.label, 60)}"

    @property
    def waiting(self) -> int:
        """Calls about which the person is asked."""
        return sum(call.state.waits for call in self.calls.values())

    @property
    def connected(self) -> bool:
        return self.ended_at is None
