"""The rules of a gate: what passes between an agent and its server, what waits, and what mcphost says itself.

A `AgentGate` is fed with lines, decisions and the time, and returns what to do. Everything passes as it came, in its order,
except for ``tools/call``, which waits for a decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.capabilities import ClientCapabilities
from mcphost.serving.ports import GatedCall, GateDecision


class ToServer(NamedTuple):
    """Write these bytes to the server."""

    data: bytes
    ours: bool = False
    """True if they are not what the agent wrote."""


class ToAgent(NamedTuple):
    """Write these bytes to the agent."""

    data: bytes
    ours: bool = False
    """True if they are not what the server wrote."""


class Ask(NamedTuple):
    """Get a decision for this call; `AgentGate.decide` takes it, now or later."""

    call: GatedCall


class Withdraw(NamedTuple):
    """The call needs no decision any more."""

    call: int
    reason: str


class Overdue(NamedTuple):
    """The agent was answered that the call is not decided; the question stays, and a yes counts once."""

    call: int


class Doubt(NamedTuple):
    """The agent may have given up without a word."""

    call: int


class Sent(NamedTuple):
    """The call goes to the server: also a later round of it, and the repeat of an overdue one."""

    call: int


class Finished(NamedTuple):
    """A call that was asked about has its end; ``seconds`` are those of the server."""

    call: int
    state: Literal["done", "failed", "cancelled", "lost"]
    seconds: float


class AskInbox(NamedTuple):
    """Get an answer to a question of the server; `AgentGate.reply` takes it."""

    number: int
    method: str
    params: Mapping[str, Any]
    call: int | None
    """The call that it belongs to, if that is certain."""


class DropInbox(NamedTuple):
    """The server's question needs no answer any more."""

    number: int


class AgentIntroduced(NamedTuple):
    """The agent has said who it is; it may do so again."""

    name: str
    version: str
    era: Literal["legacy", "modern"]
    revision: str


class Note(NamedTuple):
    """Write this sentence to stderr."""

    text: str


GateAction = (
    ToServer | ToAgent | Ask | Withdraw | Overdue | Doubt | Sent | Finished | AskInbox | DropInbox | AgentIntroduced
    | Note
)  # fmt: skip
Questions = Literal["agent", "here", "both"]


@dataclass(frozen=True, slots=True)
class GateOptions:
    agent: str = ""
    """The agent's name by ``--as``; its own claim counts where this is empty."""
    answer_within: float | None = None
    """Seconds after which a call is answered that is not decided; None: by the agent's name; infinite: never."""
    questions: Questions = "agent"
    answers: ClientCapabilities = ClientCapabilities()
    """What mcphost answers in the agent's place, unless ``questions`` is ``agent``."""


class AgentGate:
    """The rules between one agent and one server. Not thread-safe.

    Each method returns what to do, in order. ``now`` is in seconds of a clock that never goes back.
    """

    def __init__(self, options: GateOptions) -> None:
        self.options = options

    @property
    def wake_at(self) -> float | None:
        """The time at which `wake` must be called; None: not before something else happens."""
        return None

    @property
    def waiting(self) -> Sequence[GatedCall]:
        """The calls that were asked about and are not decided, to ask another approver."""
        return ()

    @property
    def inbox(self) -> Sequence[AskInbox]:
        """The server's questions that wait for `reply`."""
        return ()

    def agent_line(self, line: bytes, now: float, *, whole: bool = True) -> list[GateAction]:
        """Take a line of the agent as it came, with its newline, or the rest before the end of the stream.

        ``whole`` is False for each piece of a line that is too long.
        """
        return [ToServer(line)]

    def server_line(self, line: bytes, now: float, *, whole: bool = True) -> list[GateAction]:
        """Take a line of the server, as `agent_line` does."""
        return [ToAgent(line)]

    def agent_closed(self, now: float) -> list[GateAction]:
        return []

    def server_closed(self, now: float) -> list[GateAction]:
        return []

    def decide(self, call: int, decision: GateDecision, now: float) -> list[GateAction]:
        """Take the decision of a call; one that is not waited for has no effect."""
        return []

    def reply(
        self, number: int, now: float, result: Mapping[str, Any] | None, error: Mapping[str, Any] | None = None
    ) -> list[GateAction]:
        """Take the answer to a server's question: a result, or a JSON-RPC error with code and message."""
        return []

    def wake(self, now: float) -> list[GateAction]:
        """Do what is due: heartbeats, answers before the agent's limit, ends of waits."""
        return []
