"""The `Provider` protocol: a request in MCP's own words, and the events of the answer as it streams in.

Nothing here knows a vendor or imports a network library.

Specification: client/sampling.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import field
from math import ceil
from typing import Any, Final, Protocol, Self

from mcphost.errors import ModelRefused
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.content import MediaContent
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
from mcphost.protocol.models.tools import Tool

IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Image types that all vendors accept."""

ASCII_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class ModelRequest:
    messages: tuple[SamplingMessage, ...]
    max_tokens: int
    """Limit of the answer."""
    system: str = ""
    temperature: float | None = None
    """None: the model's default."""
    stop: tuple[str, ...] = ()
    """Stop sequences, which are not part of the answer."""
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = AUTO
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Metadata for the vendor; each provider uses what it knows."""

    @classmethod
    def from_sampling(cls, request: CreateMessageRequest, *, most_tokens: int) -> Self:
        """The request of a server, with an answer of at most ``most_tokens`` tokens."""
        return cls(
            messages=request.messages,
            max_tokens=min(request.max_tokens, most_tokens),
            system=request.system_prompt,
            temperature=request.temperature,
            stop=request.stop_sequences,
            tools=request.tools,
            tool_choice=request.tool_choice or AUTO,
            metadata=request.metadata,
        )

    def offers(self, name: str) -> bool:
        """True if the model may use a tool of exactly this name."""
        named = self.tool_choice.name
        allowed = self.tool_choice.mode != "none" and named in ("", name)
        return allowed and any(tool.name == name for tool in self.tools)


# The events of an answer.


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The model is overloaded: retry ``attempt`` of ``most`` follows after ``seconds``. Precedes all other events."""

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
    """More of the model's reasoning, apart from the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolUseBegun:
    """The model started a tool use."""

    id: str
    name: str
    offered: bool


@dataclass(frozen=True, slots=True)
class ToolUseReady:
    """A tool use is complete. With a ``problem`` it must not be executed; report the problem to the model."""

    id: str
    name: str
    input: Mapping[str, Any]
    """The arguments; empty if they could not be parsed."""
    offered: bool
    """True if a tool of exactly this name was offered, and may be used."""
    problem: str = ""
    """The fault, as a sentence; empty without one."""
    raw: str = ""
    """The arguments as received, if they could not be parsed."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts of the exchange so far. None: unknown."""

    input_tokens: int | None = None
    """The whole request, including what was read from or written to a cache."""
    output_tokens: int | None = None

    def later(self, other: TokenUsage) -> TokenUsage:
        """Update with the counts that ``other`` knows."""
        return TokenUsage(
            self.input_tokens if other.input_tokens is None else other.input_tokens,
            self.output_tokens if other.output_tokens is None else other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class AnswerFinished:
    """The answer is complete. ``stop_reason`` as in `CreateMessageResult`; ``model`` is the one that answered."""

    stop_reason: str
    model: str


ProviderEvent = RetryScheduled | TextDelta | ThoughtDelta | ToolUseBegun | ToolUseReady | TokenUsage | AnswerFinished


@dataclass(frozen=True, slots=True)
class ModelCapabilities:
    """The content that a model accepts besides text."""

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
        """The content that the model accepts."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask, and give the answer as it comes; the last event is `AnswerFinished`, or there is a ModelError.

        Closing the generator, or cancelling who waits for it, drops the connection at once. Use it in
        ``contextlib.aclosing``: an ``async for`` that is left early does not close it.
        """

    async def aclose(self) -> None:
        """Drop all connections."""


# What can be said of requests and answers.


def paired(text: str) -> str:
    """``text`` with each pair of surrogates as one character, and lone ones replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class SurrogatePairs:
    """Joins characters that a stream splits over two deltas of one kind."""

    def __init__(self) -> None:
        self._held: TextDelta | ThoughtDelta | None = None

    def feed(self, event: ProviderEvent) -> Iterator[ProviderEvent]:
        """The event, and what was held before it; the first half of a character is held."""
        if type(event) is not type(self._held):
            yield from self.end()
        if not isinstance(event, TextDelta | ThoughtDelta):
            yield event
            return
        text = event.text if self._held is None else self._held.text + event.text
        self._held = type(event)(text[-1]) if "\ud800" <= text[-1:] <= "\udbff" else None
        if whole := paired(text if self._held is None else text[:-1]):
            yield type(event)(whole)

    def end(self) -> Iterator[ProviderEvent]:
        """Yield the event that was held."""
        if self._held is not None:
            yield type(self._held)(paired(self._held.text))
            self._held = None


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
    """Estimate the tokens of ``text``: four ASCII characters a token, every other character one.

    Within a third for English prose and code; an overestimate for most other scripts, which is the safe side.
    """
    other = len(text) - len(text.encode("ascii", "ignore"))  # by far the fastest way: a prompt may have megabytes
    return ceil((len(text) - other) / ASCII_PER_TOKEN) + other


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens, in any one currency.

    Cached input counts at the full price. Anthropic charges a tenth for cache reads and 125 % for cache writes, so a
    long conversation costs less than stated, a single request up to a quarter more.
    """

    input: float
    output: float

    def cost_of(self, usage: TokenUsage) -> float | None:
        """The cost of an exchange; None if a count is unknown."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        return (usage.input_tokens * self.input + usage.output_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class CollectedAnswer:
    """An answer. ``flawed`` are tool uses among its blocks that must not be executed."""

    result: CreateMessageResult
    usage: TokenUsage = TokenUsage()
    flawed: tuple[ToolUseReady, ...] = ()


class AnswerCollector:
    """Assembles an answer from its events."""

    def __init__(self) -> None:
        self.usage = TokenUsage()
        self.done: AnswerFinished | None = None
        self._blocks: list[str | ToolUseReady] = []
        self._text: list[str] = []

    def add(self, event: ProviderEvent) -> None:
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
        """The answer so far; without stop reason and model until it is complete."""
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
    return text_block(part) if isinstance(part, str) else ToolUse.create(part.id, part.name, part.input)


MOST_TOKENS: Final = 10**9
"""Larger counts are treated as unknown."""


def read_usage(input_tokens: object, output_tokens: object, *more_input: object) -> TokenUsage:
    """The token counts of a response; invalid ones are unknown. ``more_input`` is added; None there counts as 0."""
    parts = [_count(each) for each in (input_tokens, *(each for each in more_input if each is not None))]
    counts = [each for each in parts if each is not None]
    return TokenUsage(sum(counts) if len(counts) == len(parts) else None, _count(output_tokens))


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None
