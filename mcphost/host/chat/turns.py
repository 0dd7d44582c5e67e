"""A conversation as values and live state: messages of the user, answers of the model, and the tools it used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.protocol.models.content import MediaContent, TextContent
from mcphost.protocol.models.sampling import SamplingMessage, ToolResult
from mcphost.providers.base import RetryScheduled, TokenUsage

if TYPE_CHECKING:  # few conversations have any
    from mcphost.host.skills.windows import SkillWindow
    from mcphost.protocol.models.skills import Skill

MOST_THOUGHT: Final = 100_000
"""Characters of a model's thoughts that are kept: they are shown and nothing else."""

NOT_RUN: Final = "not run"
"""The outcome of a tool use that never became a call."""

WHOLE: Final = frozenset({"endTurn", "stopSequence", "toolUse"})
"""The stop reasons of an answer that is whole."""

CUT: Final[Mapping[str, str]] = {
    "maxTokens": "the answer is cut off: the model reached chat.max_tokens, or the end of its context window",
    "contentFilter": "the answer is cut off by a content filter",
    "refusal": "the answer is cut off by a content filter",
}
"""The other stop reasons in words."""


class TurnState(Enum):
    ANSWERING = "the model is answering"
    CALLING = "tools are at work"
    REVIEWING = "results wait for your review"
    DONE = "done"
    STOPPED = "stopped by you"
    BOUNDED = "a limit was reached"
    FAILED = "the model failed"

    @property
    def ended(self) -> bool:
        return self not in (TurnState.ANSWERING, TurnState.CALLING, TurnState.REVIEWING)


@dataclass(frozen=True, slots=True)
class Attachment:
    """Something the user gave to the model besides what was typed."""

    server: str
    """The server whose resource it is; empty: a file, or what came through a pipe."""
    name: str
    """Its URI or path, as it was named."""
    title: str
    """The title on screen; may be foreign text."""
    blocks: tuple[TextContent | MediaContent, ...]
    size: int
    """Bytes of the whole, of which the model may get less."""
    tokens: int
    """About what it costs."""
    outside: bool = True
    """True unless the user wrote it."""
    note: str = ""
    """The parts that the model does not get."""
    skill: Skill | None = None
    """The entry by which it was verified, where it is a skill that the model acts on."""
    window: SkillWindow | None = field(default=None, compare=False, repr=False)
    """Reads the skill's files, as it was loaded."""

    @property
    def acting(self) -> str:
        """``NAME of SERVER`` of a skill, safe to show; empty for anything else."""
        return "" if self.skill is None else f"{show_line(self.skill.name, 64)} of {show_line(self.server, 60)}"


@dataclass(frozen=True, slots=True)
class PromptUsed:
    """A prompt of a server's that the user put into the conversation."""

    server: str
    prompt: str
    arguments: Mapping[str, str]
    messages: tuple[SamplingMessage, ...]
    outside: bool = False
    """True if it embeds resources."""
    note: str = ""
    """The parts that cannot go to a model."""


@dataclass(frozen=True, slots=True)
class UserMessage:
    text: str
    attachments: tuple[Attachment, ...] = ()
    prompts: tuple[PromptUsed, ...] = ()


@dataclass(slots=True)
class ModelToolUse:
    """A tool use that the model requested, and its outcome."""

    id: str
    """Unique in its conversation."""
    name: str
    """As the model wrote it."""
    arguments: Mapping[str, Any]
    """As the model wrote them; empty where they cannot be read."""
    server: str = ""
    """Empty where no tool has exactly this name."""
    tool: str = ""
    problem: str = ""
    """Why it cannot be carried out at all."""
    raw: str = ""
    """The arguments as they came, where they cannot be read."""
    call: ToolCall | None = None
    """None before it begins, if it never does, and in a conversation of an earlier run."""
    number: int | None = None
    """Of the call."""
    sent: Mapping[str, Any] | None = None
    """The arguments that were sent, where they are not the model's: the user edited them."""
    outcome: str = ""
    """The outcome, in the words of `CallState`, or `NOT_RUN`; empty while it goes on."""
    seconds: float = 0.0
    result: ToolResult | None = None
    """The result as the model gets it."""
    notes: tuple[str, ...] = ()
    """The parts of the result that the model does not get, or gets changed."""
    outside: bool = False
    """True if anyone but the user and the server may have written the result."""

    @property
    def state(self) -> str:
        """The state in a few words."""
        if self.outcome:
            return self.outcome
        return "waiting" if self.call is None else self.call.doing

    @property
    def edited(self) -> bool:
        """True if the user changed the arguments."""
        return self.sent is not None

    @property
    def ok(self) -> bool:
        return self.outcome == CallState.DONE.value


@dataclass(slots=True)
class ModelRound:
    """One answer of the model, and the tool uses in it."""

    entry: str
    """The model that was asked, as the configuration calls it."""
    outside: str = ""
    """The outside source that the model had read by then; empty: none."""
    model: str = ""
    """The model that answered, as it calls itself."""
    uses: list[ModelToolUse] = field(default_factory=list)
    usage: TokenUsage = field(default_factory=TokenUsage)
    guessed: bool = False
    """True if its tokens are mcphost's estimate."""
    stop_reason: str = ""
    """Empty while it is streamed, and if it broke off or was stopped."""
    error: str = ""
    """Why it broke off."""
    superseded: bool = False
    """True if the model was asked again instead; later requests then leave it out."""
    writing: str = ""
    """The name of the tool whose arguments are being written."""
    waiting: RetryScheduled | None = None
    """The model has no room, and is asked again."""
    size: int = 0
    """Characters of its text."""
    _text: list[str] = field(default_factory=list)
    _thought: list[str] = field(default_factory=list)
    _thought_size: int = 0

    @property
    def text(self) -> str:
        """The answer, as far as it came."""
        return _joined(self._text)

    @property
    def cut(self) -> str:
        """Why the answer is not whole although the model ended it, as a sentence; empty where it is."""
        if self.stop_reason in ("", *WHOLE):
            return ""
        unknown = f"the answer may be cut off: the model ended it for the reason {show_line(self.stop_reason, 60)!r}"
        return CUT.get(self.stop_reason, unknown)

    @property
    def thought(self) -> str:
        """The model's thoughts before it, as far as they came; not part of the answer."""
        return _joined(self._thought)

    def say(self, text: str) -> None:
        """More of the answer."""
        self._text.append(text)
        self.size += len(text)

    def think(self, text: str) -> None:
        """More of its thoughts."""
        if self._thought_size < MOST_THOUGHT:
            self._thought.append(text)
            self._thought_size += len(text)


@dataclass(slots=True)
class Turn:
    """A message of the user, and the model's answers to it."""

    number: int
    """From 1, in its conversation."""
    message: UserMessage
    rounds: list[ModelRound] = field(default_factory=list)
    state: TurnState = TurnState.ANSWERING
    reason: str = ""
    """Why it ended as it did, where that was not by being done; a sentence."""
    allowance: int = 1
    """The multiple of its limits it may use: one more each time the user lets it go on."""

    @property
    def text(self) -> str:
        """The model's last answer."""
        return self.rounds[-1].text if self.rounds else ""

    @property
    def silence(self) -> str:
        """A sentence where the model ended its answer without a word; else empty."""
        last = self.rounds[-1] if self.rounds else None
        if self.state is not TurnState.DONE or last is None or last.uses or last.text.strip():
            return ""
        return "the model sent its reasoning, and no answer" if last.thought else "the model sent an empty answer"

    @property
    def uses(self) -> list[ModelToolUse]:
        """All tool uses, in order."""
        return [use for each in self.rounds for use in each.uses]


def _joined(parts: list[str]) -> str:
    if len(parts) > 1:
        parts[:] = ["".join(parts)]
    return parts[0] if parts else ""
