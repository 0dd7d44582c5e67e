"""The port to language models: a request in the protocol's own words, and the events of an answer as it comes.

Knows what can be asked and told. Refuses to know any vendor, and imports nothing that talks to a network.

Specification: client/sampling.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final, Protocol, Self

from mcphost.errors import ModelRefused
from mcphost.protocol.models.sampling import (
    AUTO,
    Block,
    CreateMessageRequest,
    CreateMessageResult,
    SamplingMessage,
    ToolChoice,
    ToolResult,
    ToolUse,
    text_block,
)
from mcphost.protocol.models.tools import MediaContent, Tool

IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Media types that all vendors take."""

ASCII_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a model is asked."""

    messages: tuple[SamplingMessage, ...]
    max_tokens: int
    """The most tokens of the answer."""
    system: str = ""
    temperature: float | None = None
    """None: the model's own."""
    stop: tuple[str, ...] = ()
    """Texts that end the answer; they are not part of it."""
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = AUTO
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What a server wants the vendor to be told; each takes what it knows of it."""

    @classmethod
    def of(cls, asked: CreateMessageRequest, *, most_tokens: int) -> Self:
        """What a server asked for, with at most ``most_tokens`` of answer."""
        return cls(
            messages=asked.messages,
            max_tokens=min(asked.max_tokens, most_tokens),
            system=asked.system_prompt,
            temperature=asked.temperature,
            stop=asked.stop_sequences,
            tools=asked.tools,
            tool_choice=asked.tool_choice or AUTO,
            metadata=asked.metadata,
        )

    def offers(self, name: str) -> bool:
        """May the model use a tool of exactly this name?"""
        named = self.tool_choice.name
        allowed = self.tool_choice.mode != "none" and named in ("", name)
        return allowed and any(tool.name == name for tool in self.tools)


# The events of an answer, in the order they come.


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """It has no room: asked again after ``seconds``, for the ``attempt``-th time of ``most``. Before all others."""

    seconds: float
    attempt: int
    most: int
    reason: str
    """A sentence; safe to show."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """More of what the model thinks before it answers; no part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolUseBegun:
    """The model begins to write a tool use."""

    id: str
    name: str
    offered: bool


@dataclass(frozen=True, slots=True)
class ToolUseReady:
    """A tool use is complete. With a ``problem`` it must not be carried out: the model is told of the problem."""

    id: str
    name: str
    input: Mapping[str, Any]
    """The arguments; empty where they could not be read."""
    offered: bool
    """Was a tool of exactly this name offered, and the use of it allowed?"""
    problem: str = ""
    """What is wrong, in a sentence; empty where nothing is."""
    raw: str = ""
    """The arguments as they came, where they could not be read."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of the whole exchange so far, each as last told. None: unknown, which a nonsense number is too."""

    input_tokens: int | None = None
    """All of the request, also what a vendor had in its cache or put there."""
    output_tokens: int | None = None

    def later(self, other: TokenUsage) -> TokenUsage:
        """What is known after ``other`` was told."""
        return TokenUsage(
            self.input_tokens if other.input_tokens is None else other.input_tokens,
            self.output_tokens if other.output_tokens is None else other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class AnswerFinished:
    """The answer is whole. ``stop_reason`` as in `CreateMessageResult`; ``model`` is the one that really answered."""

    stop_reason: str
    model: str


ProviderEvent = RetryScheduled | TextDelta | ThoughtDelta | ToolUseBegun | ToolUseReady | TokenUsage | AnswerFinished


@dataclass(frozen=True, slots=True)
class ModelCapabilities:
    """What a model takes besides text."""

    images: frozenset[str] = frozenset()
    """Media types."""
    audio: frozenset[str] = frozenset()
    tools: bool = False


class Provider(Protocol):
    """One entry of ``[models]``, ready to be asked."""

    @property
    def entry(self) -> str:
        """Its name in the configuration."""

    @property
    def capabilities(self) -> ModelCapabilities:
        """What it takes."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask, and give the answer as it comes; the last event is `AnswerFinished`, or there is a ModelError.

        Closing the generator, or cancelling who waits for it, drops the connection at once. Use it in
        ``contextlib.aclosing``: an ``async for`` that is left early does not close it.
        """

    async def aclose(self) -> None:
        """Drop all connections."""


# What can be said of requests and answers.


def check(entry: str, request: ModelRequest, able: ModelCapabilities) -> None:
    """Raise ModelRefused where the model cannot take what ``request`` holds."""
    if kind := lacking(request, able):
        raise ModelRefused(entry, f"it takes no {kind}; choose another model or leave that out")


def lacking(request: ModelRequest, able: ModelCapabilities) -> str:
    """The first kind of content in ``request`` that a model of these capabilities cannot take; empty where none is."""
    return next(_lacking(request, able), "")


def _lacking(request: ModelRequest, able: ModelCapabilities) -> Iterator[str]:
    takes = {"image": able.images, "audio": able.audio}
    for message in request.messages:
        for block in message.blocks:
            if isinstance(block, MediaContent) and block.mime_type not in takes.get(block.type, ()):
                yield block.type if not takes.get(block.type) else f"{block.type} of the type {block.mime_type[:60]!a}"
            elif isinstance(block, ToolUse | ToolResult) and not able.tools:
                yield "tools"
            elif not isinstance(block, MediaContent | ToolUse | ToolResult) and block.type != "text":
                yield f"content of the type {block.type[:60]!a}"
    if request.tools and not able.tools:
        yield "tools"


def estimate_tokens(text: str) -> int:
    """About how many tokens ``text`` is: four ASCII characters a token, every other character one.

    Within a third for prose and code in English; an overestimate for most other alphabets, which is the safe side.
    """
    other = len(text) - len(text.encode("ascii", "ignore"))  # by far the fastest way: a prompt may have megabytes
    return ceil((len(text) - other) / ASCII_PER_TOKEN) + other


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in any one currency, for a million tokens.

    What a vendor has in its cache, or puts there, has no price of its own: both count as any other input. Anthropic
    takes a tenth for the one and a quarter more for the other, so a long conversation costs less than is told, and
    a single request up to a quarter more.
    """

    input: float
    output: float

    def of(self, usage: TokenUsage) -> float | None:
        """What an exchange cost; None where that is not known."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        return (usage.input_tokens * self.input + usage.output_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class CollectedAnswer:
    """A whole answer. ``flawed`` are tool uses among its blocks that must not be carried out."""

    result: CreateMessageResult
    usage: TokenUsage = TokenUsage()
    flawed: tuple[ToolUseReady, ...] = ()


class AnswerCollector:
    """Puts an answer together from its events; what is there can be had at any time."""

    def __init__(self) -> None:
        self.usage = TokenUsage()
        self.done: AnswerFinished | None = None
        self._blocks: list[str | ToolUseReady] = []
        self._text: list[str] = []

    def add(self, event: ProviderEvent) -> None:
        """Take the next event."""
        match event:
            case TextDelta():
                self._text.append(event.text)
            case ToolUseReady():
                self._end_text()
                self._blocks.append(event)
            case TokenUsage():
                self.usage = self.usage.later(event)
            case AnswerFinished():
                self.done = event

    @property
    def gathered(self) -> CollectedAnswer:
        """What came so far; without a stop reason and model until it is done."""
        self._end_text()
        done = self.done
        result = CreateMessageResult(
            tuple(map(_block, self._blocks)) or (text_block(""),),
            done.model if done else "",
            done.stop_reason if done else None,
        )
        flawed = tuple(each for each in self._blocks if isinstance(each, ToolUseReady) and each.problem)
        return CollectedAnswer(result, self.usage, flawed)

    def _end_text(self) -> None:
        if text := "".join(self._text):
            self._blocks.append(text)
        self._text.clear()


def _block(part: str | ToolUseReady) -> Block:
    return text_block(part) if isinstance(part, str) else ToolUse.of(part.id, part.name, part.input)
