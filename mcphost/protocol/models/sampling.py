"""Sampling requests and results, and the rules that a request must meet.

Specification: client/sampling; schema of every revision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final, Literal

from pydantic import Field

from mcphost.errors import InvalidResult, InvalidSampling
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.base import Hint, Wire
from mcphost.protocol.models.content import Content, MediaContent, TextContent, UnreadableContent, read_content
from mcphost.protocol.models.tools import Tool
from mcphost.protocol.wire.error_codes import ErrorCode

REFUSAL: Final = ErrorCode.INVALID_PARAMS
"""The error code for a request that breaks these rules."""

AUDIO_SINCE: Final = "2025-03-26"
TOOLS_SINCE: Final = "2025-11-25"
"""The first revision with tools, and with several blocks in a message."""

ROLES: Final = ("user", "assistant")

Problem = tuple[str, str]
"""Where (``messages[2].content``), and a sentence."""


class ToolUse(Wire):
    """A tool call by the model; ``id`` links its result to it."""

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: dict[str, Any]

    @classmethod
    def create(cls, use_id: str, name: str, arguments: Mapping[str, Any]) -> ToolUse:
        return cls(type="tool_use", id=use_id, name=name, input=dict(arguments))


class ToolResult(Wire):
    """The result of a `ToolUse`."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: list[Any] = Field(default_factory=list)
    """The blocks as received; see ``blocks``."""
    structured_content: Hint[dict[str, Any]] = None
    is_error: Hint[bool] = None

    @classmethod
    def create(cls, use_id: str, content: list[dict[str, Any]], *, is_error: bool = False) -> ToolResult:
        """Create a result; ``content`` are blocks as JSON objects."""
        failed: dict[str, Any] = {"is_error": True} if is_error else {}
        return cls(type="tool_result", tool_use_id=use_id, content=content, **failed)

    @cached_property
    def blocks(self) -> tuple[Content, ...]:
        """The blocks, parsed at first use."""
        return tuple(map(read_content, self.content))


Block = TextContent | MediaContent | ToolUse | ToolResult | UnreadableContent
"""A block of a message."""


def text_block(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def read_block(item: object) -> Block:
    """Parse one block of a message. Never raises: other content is unreadable."""
    kind = as_dict(item).get("type")
    try:
        if kind == "tool_use":
            return ToolUse.read(item)
        if kind == "tool_result":
            return ToolResult.read(item)
    except InvalidResult as error:
        return UnreadableContent(str(kind), str(error), item)
    block = read_content(item)
    if isinstance(block, TextContent | MediaContent | UnreadableContent):
        return block
    return UnreadableContent(block.type, "a message cannot hold this type of content", item)


def block_object(block: Block) -> Any:
    """A block as JSON, with its unknown members."""
    return block.raw if isinstance(block, UnreadableContent) else block.definition()


@dataclass(frozen=True, slots=True)
class SamplingMessage:
    """One message: ``role`` is ``user`` or ``assistant``."""

    role: str
    blocks: tuple[Block, ...]
    several: bool = False
    """True if its content was a list; revisions before 2025-11-25 allow one block only."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Its other members, ``_meta`` among them."""

    @classmethod
    def create(cls, role: str, *blocks: Block) -> SamplingMessage:
        return cls(role, blocks, several=len(blocks) != 1)

    @classmethod
    def read(cls, item: object) -> SamplingMessage:
        """Parse one message. Never raises: an invalid one has an unreadable block."""
        if not isinstance(item, dict):
            return cls("?", (UnreadableContent("?", "not a message", item),))
        role, content = item.get("role"), item.get("content")
        extra = {name: value for name, value in item.items() if name not in ("role", "content")}
        blocks = content if isinstance(content, list) else [content]
        named = role if isinstance(role, str) else "?"
        return cls(named, tuple(map(read_block, blocks)), isinstance(content, list), extra)

    @property
    def text(self) -> str:
        """Its text blocks, joined."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextContent))

    @property
    def uses(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolResult))

    def as_object(self) -> dict[str, Any]:
        content = [block_object(block) for block in self.blocks]
        one = len(content) == 1 and not self.several
        return {"role": self.role, "content": content[0] if one else content, **self.extra}


class _Preferences(Wire):
    hints: Hint[list[Any]] = None
    cost_priority: Hint[float] = None
    speed_priority: Hint[float] = None
    intelligence_priority: Hint[float] = None


@dataclass(frozen=True, slots=True)
class ModelPreferences:
    """A server's preferences for the model: name hints in order, then priorities from 0 to 1."""

    hints: tuple[str, ...] = ()
    """Parts of model names, the most preferred first."""
    cost: float | None = None
    """Weight of a low price, 0 to 1; None: not stated."""
    speed: float | None = None
    intelligence: float | None = None

    @classmethod
    def read(cls, value: object) -> ModelPreferences:
        """Parse ``modelPreferences``. Never raises: invalid parts are ignored."""
        try:
            parsed = _Preferences.read(value)
        except InvalidResult:
            return cls()
        names = (item.get("name") for item in parsed.hints or () if isinstance(item, dict))
        return cls(
            tuple(name for name in names if isinstance(name, str) and name.strip()),
            _share(parsed.cost_priority),
            _share(parsed.speed_priority),
            _share(parsed.intelligence_priority),
        )


def _share(number: float | None) -> float | None:
    return None if number is None else min(max(number, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """``auto``: the model may use tools; ``required``: it must; ``none``: it must not."""

    mode: str = "auto"
    name: str = ""
    """The only tool it must use; an addition of mcphost that no server can set."""

    @classmethod
    def read(cls, value: object) -> ToolChoice | None:
        """Parse ``toolChoice``; None if it is not an object. An invalid mode is kept for `problems`."""
        if not isinstance(value, dict):
            return None
        mode = "auto" if (given := value.get("mode")) is None else given
        return cls(mode if isinstance(mode, str) else "?")


AUTO: Final = ToolChoice()
"""The default."""


class _Params(Wire):
    messages: list[Any]
    max_tokens: int
    system_prompt: str | None = None
    include_context: Hint[str] = None
    temperature: Hint[float] = None
    stop_sequences: list[str] | None = None
    metadata: Hint[dict[str, Any]] = None
    tools: list[Any] | None = None


@dataclass(frozen=True, slots=True)
class CreateMessageRequest:
    """A sampling request. Everything but ``messages`` and ``max_tokens`` is advice."""

    messages: tuple[SamplingMessage, ...]
    max_tokens: int
    preferences: ModelPreferences = ModelPreferences()
    system_prompt: str = ""
    include_context: str = "none"
    """``none``, ``thisServer`` or ``allServers``."""
    temperature: float | None = None
    stop_sequences: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    """None: not stated, which means ``auto``."""
    wants_tools: bool = False
    """True if it mentions tools, which is an error unless they were declared."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The params as received."""

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> CreateMessageRequest:
        """Parse the params of sampling/createMessage. Raises InvalidSampling."""
        parsed = _read_params(params)
        return cls(
            messages=tuple(map(SamplingMessage.read, parsed.messages)),
            max_tokens=parsed.max_tokens,
            preferences=ModelPreferences.read(params.get("modelPreferences")),
            system_prompt=parsed.system_prompt or "",
            include_context=parsed.include_context or "none",
            temperature=parsed.temperature,
            stop_sequences=tuple(parsed.stop_sequences or ()),
            metadata=parsed.metadata or {},
            tools=tuple(_tools(parsed.tools or [])),
            tool_choice=ToolChoice.read(params.get("toolChoice")),
            wants_tools=params.get("tools") is not None or params.get("toolChoice") is not None,
            raw=params,
        )


def _read_params(params: Mapping[str, Any]) -> _Params:
    try:
        if isinstance(params.get("maxTokens"), bool):
            raise InvalidResult("maxTokens: is not a number")
        return _Params.read(params)
    except InvalidResult as error:
        place, _, text = str(error).partition(": ")
        raise InvalidSampling([(place, text)]) from None


def _tools(items: list[Any]) -> Iterator[Tool]:
    for index, item in enumerate(items):
        try:
            yield Tool.read(item)
        except InvalidResult as error:
            raise InvalidSampling([(f"tools[{index}]", str(error))]) from None


@dataclass(frozen=True, slots=True)
class CreateMessageResult:
    """The result for the server. ``stop_reason``: endTurn, maxTokens, stopSequence, toolUse, or any other."""

    blocks: tuple[Block, ...]
    model: str
    stop_reason: str | None = None
    role: str = "assistant"

    @property
    def message(self) -> SamplingMessage:
        """The answer as the next message of the conversation."""
        return SamplingMessage.create(self.role, *self.blocks)

    def as_object(self, version: str = TOOLS_SINCE) -> dict[str, Any]:
        """The result of revision ``version``: before 2025-11-25 it is one block, its texts joined."""
        blocks = self.blocks if version >= TOOLS_SINCE else _one(self.blocks)
        content = [block_object(block) for block in blocks]
        alone = len(content) == 1 and not isinstance(blocks[0], ToolUse)
        reason = {} if self.stop_reason is None else {"stopReason": self.stop_reason}
        return {"role": self.role, "content": content[0] if alone else content, "model": self.model, **reason}


def _one(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    texts = [block.text for block in blocks if isinstance(block, TextContent)]
    return blocks if len(blocks) == 1 else (text_block("".join(texts)),)


MODES: Final = ("auto", "required", "none")

MOST_PROBLEMS: Final = 10
"""Problems that are reported of one request."""

QUOTED: Final = 60
"""Characters of a foreign name in a sentence."""


def check(request: CreateMessageRequest, *, version: str, tools: bool) -> None:
    """Raise InvalidSampling if there are `problems`."""
    if found := problems(request, version=version, tools=tools):
        raise InvalidSampling(found)


def problems(request: CreateMessageRequest, *, version: str, tools: bool) -> tuple[Problem, ...]:
    """The rules that ``request`` breaks in revision ``version``, at most `MOST_PROBLEMS`.

    ``tools``: did the host declare ``sampling.tools``?
    """
    found = chain(
        _numbers(request),
        _offered(request, tools and version >= TOOLS_SINCE),
        (each for index, message in enumerate(request.messages) for each in _message(index, message, version)),
        _pairs(request.messages),
    )
    return tuple(islice(found, MOST_PROBLEMS))


def _numbers(request: CreateMessageRequest) -> Iterator[Problem]:
    if not request.messages:
        yield "messages", "is empty"
    if request.max_tokens < 1:
        yield "maxTokens", "must be at least 1"


def _offered(request: CreateMessageRequest, declared: bool) -> Iterator[Problem]:
    if request.wants_tools and not declared:
        yield "tools", "this host did not declare sampling.tools"
        return
    names = Counter(tool.name for tool in request.tools)
    yield from (("tools", f"two tools are called {name[:QUOTED]!a}") for name, count in names.items() if count > 1)
    choice = request.tool_choice
    if choice is not None and choice.mode not in MODES:
        yield "toolChoice.mode", "must be auto, required or none"
    if choice is not None and choice.mode == "required" and not request.tools:
        yield "toolChoice.mode", "required, and there are no tools"


def _message(index: int, message: SamplingMessage, version: str) -> Iterator[Problem]:
    where = f"messages[{index}]"
    if message.role not in ROLES:
        yield f"{where}.role", "must be user or assistant"
    if not message.blocks:
        yield f"{where}.content", "is empty"
    if message.several and version < TOOLS_SINCE:
        yield f"{where}.content", f"must be one block before {TOOLS_SINCE}"
    if message.results and len(message.results) < len(message.blocks):
        yield f"{where}.content", "tool results are mixed with other content"
    for place, block in enumerate(message.blocks):
        inside = f"{where}.content[{place}]" if message.several else f"{where}.content"
        yield from ((inside, text) for text in _block(message.role, block, version))


def _block(role: str, block: Block, version: str) -> Iterator[str]:
    match block:
        case UnreadableContent():
            yield block.reason
        case MediaContent(type="audio") if version < AUDIO_SINCE:
            yield f"audio is not part of the protocol before {AUDIO_SINCE}"
        case ToolUse() | ToolResult() if version < TOOLS_SINCE:
            yield f"tools are not part of sampling before {TOOLS_SINCE}"
        case ToolUse() if role != "assistant":
            yield "only the assistant uses tools"
        case ToolResult() if role != "user":
            yield "a tool result is the user's to bring"


def _pairs(messages: tuple[SamplingMessage, ...]) -> Iterator[Problem]:
    # The next message must answer each tool use exactly once.
    uses: Counter[str] = Counter()
    for index, message in enumerate(messages):
        where = f"messages[{index}].content"
        yield from _answered(index, uses, Counter(result.tool_use_id for result in message.results))
        uses = Counter(use.id for use in message.uses)
        yield from ((where, f"two tool uses have the id {use[:QUOTED]!a}") for use, count in uses.items() if count > 1)
    yield from _answered(len(messages), uses, Counter())


def _answered(index: int, uses: Counter[str], given: Counter[str]) -> Iterator[Problem]:
    missing, unmatched = uses - given, given - uses
    yield from ((f"messages[{index - 1}].content", f"the tool use {use[:QUOTED]!a} has no result") for use in missing)
    yield from (
        (f"messages[{index}].content", f"no tool use before it has the id {use[:QUOTED]!a}") for use in unmatched
    )
