"""What a model is asked, and what it answered, block by block: how each is called, and what an edit makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final

from mcphost.dataclass import dataclass
from mcphost.host.sampling.request import Sampling, SamplingEdit, SamplingReply
from mcphost.protocol.display import show_line, show_name
from mcphost.protocol.models.content import TextContent
from mcphost.protocol.models.sampling import (
    Block,
    CreateMessageResult,
    SamplingMessage,
    ToolResult,
    ToolUse,
    block_object,
    read_block,
    text_block,
)
from mcphost.tui.kit.json_text import json_text
from mcphost.tui.results import content
from mcphost.tui.results.content import describe

LAST: Final = 10
"""Blocks of a conversation that are shown at first: the last ones, with the system prompt."""

PAGE: Final = 40
"""Earlier ones that are shown at once, instead: each has a frame of its own."""

NESTED: Final = 10
"""Blocks of one tool result with a frame of their own."""

EDITABLE: Final = 100_000
"""Characters that can be edited here: a box to write in wraps all of them at each key."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block stands: which message (None: it is the system prompt), and which of its blocks."""

    message: int | None
    block: int = 0


SYSTEM: Final = Place(None)


@dataclass(frozen=True, slots=True)
class Part:
    """A block to be shown, and where it is from."""

    place: Place
    shown: content.Block


@dataclass(frozen=True, slots=True)
class PartPage:
    """What of a conversation is shown: places ``start`` to ``end`` of ``count``."""

    start: int
    end: int
    count: int

    @property
    def later(self) -> int:
        """How many come after it."""
        return self.count - self.end

    def turned(self) -> PartPage:
        """The one before it; before the first comes the last."""
        if self.start == 0:
            return last_page(self.count)
        return PartPage(max(0, self.start - PAGE), self.start, self.count)


def last_page(count: int) -> PartPage:
    """The end of a conversation, or all of a short one."""
    return PartPage(0 if count <= LAST + 2 else count - LAST, count, count)


def places(sampling: Sampling) -> list[Place]:
    """Every block of the messages, in order."""
    messages = sampling.request.messages
    return [Place(number, at) for number, message in enumerate(messages) for at in range(max(1, len(message.blocks)))]


def parts(sampling: Sampling, page: PartPage) -> Iterator[Part]:
    """The system prompt and a page of the messages, described."""
    system = sampling.request.system
    if system:
        shown = describe(text_block(system))
        words = "system prompt" if system == sampling.asked.system_prompt else "system prompt · changed"
        yield Part(SYSTEM, replace(shown, title=f"{words} · {shown.title}"))
    for place in places(sampling)[page.start : page.end]:
        message = sampling.request.messages[place.message or 0]
        who = f"{(place.message or 0) + 1} · {show_line(message.role, 20)}"
        yield from (Part(place, each) for each in _described(message, place, who))


def answer_parts(blocks: Sequence[Block]) -> Iterator[Part]:
    """The blocks of an answer, described."""
    for at, block in enumerate(blocks):
        yield from (Part(Place(0, at), each) for each in _shown(block))


def _described(message: SamplingMessage, place: Place, who: str) -> Iterator[content.Block]:
    if not message.blocks:
        yield content.Block("facts", f"{who} · nothing", facts=(("", "it is empty"),))
        return
    of = f" · {place.block + 1} of {len(message.blocks)}" if len(message.blocks) > 1 else ""
    for shown in _shown(message.blocks[place.block]):
        yield replace(shown, title=f"{who}{of} · {shown.title}")


def _shown(block: Block) -> Iterator[content.Block]:
    match block:
        case ToolUse():
            title = f"→ wants the tool {show_name(block.name, 80)} · id {show_name(block.id, 40)}"
            yield content.Block("arguments", title, json_text(block.input), mime_type="application/json")
        case ToolResult():
            yield from _result(block)
        case _:
            yield describe(block)


def _result(result: ToolResult) -> Iterator[content.Block]:
    failed = " · it failed" if result.is_error else ""
    title = f"← result for id {show_name(result.tool_use_id, 40)}{failed}"
    inner = result.blocks
    for block in inner[:NESTED]:
        shown = describe(block)
        yield replace(shown, title=f"{title} · {shown.title}")
    if result.structured_content is not None:
        text = json_text(result.structured_content)
        yield content.Block("arguments", f"{title} · structured", text, mime_type="application/json")
    if len(inner) > NESTED or not inner:
        words = f"and {len(inner) - NESTED} blocks more: v shows all" if inner else "it holds no blocks"
        yield content.Block("facts", title, facts=(("", words),))


# Edits. A text is edited as it is, arguments and results as JSON, pictures and sounds not at all.


@dataclass(frozen=True, slots=True)
class PartDraft:
    """What one edits of a block."""

    text: str
    is_json: bool = False


def block_at(sampling: Sampling, place: Place) -> Block | None:
    """The block at a place; None for one that holds nothing."""
    if place.message is None:
        return text_block(sampling.request.system)
    blocks = sampling.request.messages[place.message].blocks
    return blocks[place.block] if blocks else None


def draft_of(block: Block | None) -> PartDraft | None:
    """What can be edited of a block; None where nothing can."""
    match block:
        case TextContent():
            return PartDraft(block.text)
        case ToolUse():
            return PartDraft(json_text(block.input), is_json=True)
        case ToolResult():
            return PartDraft(json_text(block.content), is_json=True)
    return None


def rewritten(block: Block, text: str) -> Block:
    """The block with another content. Raises ValueError, with a sentence, for JSON that will not do."""
    match block:
        case TextContent():
            return read_block({**block_object(block), "text": text})
        case ToolUse():
            return _valid(read_block({**block_object(block), "input": _json(text, dict, "an object {…}")}), block)
        case ToolResult():
            return _valid(read_block({**block_object(block), "content": _json(text, list, "a list […]")}), block)
    return block


def _json(text: str, kind: type, called: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is no JSON: {error}") from None
    if not isinstance(value, kind):
        raise ValueError(f"it must be {called}")
    return value


def _valid(read: Block, block: Block) -> Block:
    if type(read) is not type(block):
        raise ValueError("it cannot be read as what it was")
    return read


def with_block(sampling: Sampling, place: Place, block: Block) -> SamplingEdit:
    """The request with another block at this place."""
    if place.message is None:
        return SamplingEdit(replace(sampling.request, system=block.text if isinstance(block, TextContent) else ""))
    blocks = list(sampling.request.messages[place.message].blocks)
    blocks[place.block : place.block + 1] = [block]
    return _with_blocks(sampling, place.message, blocks)


def without_block(sampling: Sampling, place: Place) -> SamplingEdit | None:
    """The request without the block at this place; None where nothing would be left to ask."""
    if place.message is None:
        return SamplingEdit(replace(sampling.request, system=""))
    blocks = list(sampling.request.messages[place.message].blocks)
    del blocks[place.block : place.block + 1]
    if not blocks and len(sampling.request.messages) == 1:
        return None
    return _with_blocks(sampling, place.message, blocks)


def _with_blocks(sampling: Sampling, number: int, blocks: list[Block]) -> SamplingEdit:
    messages = list(sampling.request.messages)
    messages[number : number + 1] = [replace(messages[number], blocks=tuple(blocks))] if blocks else []
    return SamplingEdit(replace(sampling.request, messages=tuple(messages)))


# As it would be sent.


def asked_object(sampling: Sampling) -> dict[str, Any]:
    """What the model is asked, in the words of the protocol; each vendor spells it in its own."""
    request, choice = sampling.request, sampling.request.tool_choice
    told: dict[str, Any] = {"model": sampling.model.name}
    if request.system:
        told["systemPrompt"] = request.system
    told["messages"] = [message.as_object() for message in request.messages]
    told["maxTokens"] = request.max_tokens
    if request.temperature is not None:
        told["temperature"] = request.temperature
    if request.stop:
        told["stopSequences"] = list(request.stop)
    if request.tools:
        told["tools"] = [tool.definition() for tool in request.tools]
        told["toolChoice"] = {"mode": choice.mode}
    if request.metadata:
        told["metadata"] = dict(request.metadata)
    return told


def sent_object(result: CreateMessageResult, version: str | None) -> dict[str, Any]:
    """What the server gets, in the revision it speaks."""
    return result.as_object(version) if version else result.as_object()


def preview(sampling: Sampling, reply: SamplingReply | None) -> CreateMessageResult:
    """What the server would get: made by the handle itself, of which a copy is used up."""
    spare = copy(sampling)
    if reply is not None:
        spare.write(reply)
    return spare.send(sampling.model.name)
