"""The rules of a sampling request, and where one breaks them.

Knows what each revision allows in a message and how tool uses and their results belong together. Refuses to repair.

Specification: client/sampling (messages, tools, error handling), 2025-11-25.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from mcphost.errors import InvalidSampling
from mcphost.protocol.content import MediaContent, UnreadableContent
from mcphost.protocol.sampling import (
    AUDIO_SINCE,
    ROLES,
    TOOLS_SINCE,
    Block,
    CreateMessageRequest,
    Problem,
    SamplingMessage,
    ToolResult,
    ToolUse,
)

MODES: Final = ("auto", "required", "none")

MOST_PROBLEMS: Final = 10
"""That are told: whoever breaks more rules has learned enough."""

QUOTED: Final = 60
"""Characters of a foreign name in a sentence."""


def check(request: CreateMessageRequest, *, version: str, tools: bool) -> None:
    """Raise InvalidSampling with the `problems` there are."""
    if found := problems(request, version=version, tools=tools):
        raise InvalidSampling(found)


def problems(request: CreateMessageRequest, *, version: str, tools: bool) -> tuple[Problem, ...]:
    """What is wrong with ``request`` in revision ``version``, at most `MOST_PROBLEMS`.

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
    """Each message's tool uses are answered by the next one's results, every one of them once."""
    asked: Counter[str] = Counter()
    for index, message in enumerate(messages):
        where = f"messages[{index}].content"
        yield from _answered(index, asked, Counter(result.tool_use_id for result in message.results))
        asked = Counter(use.id for use in message.uses)
        yield from ((where, f"two tool uses have the id {use[:QUOTED]!a}") for use, count in asked.items() if count > 1)
    yield from _answered(len(messages), asked, Counter())


def _answered(index: int, asked: Counter[str], given: Counter[str]) -> Iterator[Problem]:
    missing, unasked = asked - given, given - asked
    yield from ((f"messages[{index - 1}].content", f"the tool use {use[:QUOTED]!a} has no result") for use in missing)
    yield from ((f"messages[{index}].content", f"no tool use before it has the id {use[:QUOTED]!a}") for use in unasked)
