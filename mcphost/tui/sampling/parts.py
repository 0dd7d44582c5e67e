"""The blocks of a sampling request and its answer: how they are shown, and edited."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final

from mcphost.host.sampling.request import Sampling, SamplingEdit, SamplingReply
from mcphost.lazy_dataclass import dataclass
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
"""Blocks of a conversation that are shown at first: the last ones."""

PAGE: Final = 40
"""Earlier blocks that are shown at once instead; each has a frame."""

NESTED: Final = 10
"""Blocks of one tool result that get a frame."""

EDITABLE: Final = 100_000
"""Characters that can be edited: the text area wraps all of them at each key."""


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a block: the message (None: the system prompt), and the block in it."""

    message: int | None
    block: int = 0


SYSTEM: Final = Place(None)


@dataclass(frozen=True, slots=True)
class Part:
    """A block for the screen, and its position."""

    place: Place
    shown: content.Block


@dataclass(frozen=True, slots=True)
class PartPage:
    """The shown blocks of a conversation: ``start`` to ``end`` of ``count``."""

    start: int
    end: int
    count: int

    @property
    def later(self) -> int:
        return self.count - self.end

    def turned(self) -> PartPage:
        """The previous page; before the first comes the last."""
        if self.start == 0:
            return last_page(self.count)
        return PartPage(max(0, self.start - PAGE), self.start, self.count)


def last_page(count: int) -> PartPage:
    """The last page; all of a short conversation."""
    return PartPage(0 if count <= LAST + 2 else count - LAST, count, count)


def places(sampling: Sampling) -> list[Place]:
    """The positions of all blocks in the messages."""
    messages = sampling.request.messages
    return [Place(number, at) for number, message in enumerate(messages) for at in range(max(1, len(message.blocks)))]


def parts(sampling: Sampling, page: PartPage) -> Iterator[Part]:
    """The system prompt and one page of the messages."""
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


# Edits: text as it is, arguments and results as JSON, images and audio not at all.


@dataclass(frozen=True, slots=True)
class PartDraft:
    """The editable text of a block."""

    text: str
    is_json: bool = False


def block_at(sampling: Sampling, place: Place) -> Block | None:
    """The block at a position; None if its message is empty."""
    if place.message is None:
        return text_block(sampling.request.system)
    blocks = sampling.request.messages[place.message].blocks
    return blocks[place.block] if blocks else None


def draft_of(block: Block | None) -> PartDraft | None:
    """The editable text of a block; None if it cannot be edited."""
    match block:
        case TextContent():
            return PartDraft(block.text)
        case ToolUse():
            return PartDraft(json_text(block.input), is_json=True)
        case ToolResult():
            return PartDraft(json_text(block.content), is_json=True)
    return None


def rewritten(block: Block, text: str) -> Block:
    """The block with another content. Raises ValueError with a sentence for invalid JSON."""
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
    if place.message is None:
        return SamplingEdit(replace(sampling.request, system=block.text if isinstance(block, TextContent) else ""))
    blocks = list(sampling.request.messages[place.message].blocks)
    blocks[place.block : place.block + 1] = [block]
    return _with_blocks(sampling, place.message, blocks)


def without_block(sampling: Sampling, place: Place) -> SamplingEdit | None:
    """The request without this block; None if nothing would be left to ask."""
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


def request_object(sampling: Sampling) -> dict[str, Any]:
    """The request in the protocol's terms; each vendor's API has its own."""
    request, choice = sampling.request, sampling.request.tool_choice
    sent: dict[str, Any] = {"model": sampling.model.name}
    if request.system:
        sent["systemPrompt"] = request.system
    sent["messages"] = [message.as_object() for message in request.messages]
    sent["maxTokens"] = request.max_tokens
    if request.temperature is not None:
        sent["temperature"] = request.temperature
    if request.stop:
        sent["stopSequences"] = list(request.stop)
    if request.tools:
        sent["tools"] = [tool.definition() for tool in request.tools]
        sent["toolChoice"] = {"mode": choice.mode}
    if request.metadata:
        sent["metadata"] = dict(request.metadata)
    return sent


def result_object(result: CreateMessageResult, version: str | None) -> dict[str, Any]:
    """What the server gets, in its revision."""
    return result.as_object(version) if version else result.as_object()


def preview(sampling: Sampling, reply: SamplingReply | None) -> CreateMessageResult:
    """What the server would get, made from a copy of the request."""
    spare = copy(sampling)
    if reply is not None:
        spare.write(reply)
    return spare.send(sampling.model.name)
