"""Turns the result of a tool call into the message that a model gets.

Texts as they came; structured content as JSON where no text says the same; images where the model takes them; an
embedded text under its URI; everything else, links above all, by reference: its title and URI. What is meant for
the user only stays here, what is too long is cut, and both are said. A failure of any kind is a result with an
error, so that the model can correct itself.

Specification: server/tools (error handling, security considerations), server/resources (annotations).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from mcphost.errors import Declined
from mcphost.host.tool_calls.call import NOTHING_SENT, CallState, ToolCall
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import hidden_count, show_line, size_text
from mcphost.protocol.models.content import (
    Content,
    EmbeddedResource,
    MediaContent,
    ResourceLink,
    TextContent,
    UnreadableContent,
)
from mcphost.protocol.models.sampling import ToolResult
from mcphost.protocol.models.tools import CallToolResult
from mcphost.providers.base import ModelCapabilities

MOST_PICTURES: Final = 8
"""Images of one result that a model gets."""

PICTURE_CHARACTERS: Final = 5_000_000
"""Of an image's base64: more is refused by vendors, and the whole conversation with it."""

MOST_LINKS: Final = 50
"""Links that are listed when the user reviews a text."""

FOR_USER: Final = "(a part that is meant for the user only was left out)"
NOTHING: Final = "(the tool answered nothing)"

_LINK: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>)\]]{1,500}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelResult:
    """The result that the model gets, and sentences on what was left out."""

    result: ToolResult
    notes: tuple[str, ...] = ()


def failure(use_id: str, text: str) -> ToolResult:
    return ToolResult.create(use_id, [_text(text)], is_error=True)


def told(use_id: str, call: ToolCall, able: ModelCapabilities, limit: int) -> ModelResult:
    """The result of an ended call for a model of these capabilities, in about ``limit`` characters."""
    if call.outcome is None:
        return ModelResult(failure(use_id, bounded([_why(call)], limit)[0][0]))
    notes: list[str] = []
    words: list[str] = [_edited(call)] if call.edited else []
    pictures: list[dict[str, Any]] = []
    for block in call.outcome.content:
        if _for_user(block):
            words.append(FOR_USER)
        elif isinstance(block, MediaContent) and _takes(block, able) and len(pictures) < MOST_PICTURES:
            pictures.append(block.definition())
        else:
            words.append(_words(block))
    if call.outcome.unread:
        words.append(f"({call.outcome.unread}: {json.dumps(dict(call.outcome.raw), ensure_ascii=False)})")
    words.extend(_structured(call.outcome))
    words.extend(_doubts(call))
    texts, left = bounded([text for text in words if text] or ([] if pictures else [NOTHING]), limit)
    notes.extend(_notes(call.outcome, texts, left))
    content = [*map(_text, texts), *pictures]
    return ModelResult(ToolResult.create(use_id, content, is_error=call.outcome.is_error), tuple(notes))


def said(result: ToolResult) -> str:
    return "\n".join(block.text for block in result.blocks if isinstance(block, TextContent))


def links_in(text: str) -> tuple[str, ...]:
    """The addresses in a text, each once, at most `MOST_LINKS`."""
    found = (match[0].rstrip(".,;:!?") for match in _LINK.finditer(text))
    return tuple(dict.fromkeys(found))[:MOST_LINKS]


_DECLINERS: Final = {"user": "The user", "policy": "The user's policy"}


def declined(by: str, reason: str) -> str:
    """The text for the model when a call was declined."""
    return f"{_DECLINERS[by]} declined this call" + (f" and says: {reason}" if reason else f"; {NOTHING_SENT}.")


def stopped(call: ToolCall) -> str:
    """The text for the model when the user stopped the call."""
    return "The user stopped this call" + ("; it may have had effects." if call.sent_at is not None else ".")


def _why(call: ToolCall) -> str:
    error = call.error
    if isinstance(error, Declined) and error.by in _DECLINERS:
        return declined(error.by, error.reason)
    if error is not None:
        told = call.sent_at is not None or NOTHING_SENT in str(error)
        return str(error) if told else f"Nothing was sent to the tool: {error}"
    return stopped(call) if call.state is CallState.CANCELLED else str(call.state.value)


def _edited(call: ToolCall) -> str:
    return f"(The user changed the arguments to {json.dumps(dict(call.arguments), ensure_ascii=False)})"


def _for_user(block: Content) -> bool:
    hints = None if isinstance(block, UnreadableContent) else block.annotations
    return hints is not None and hints.audience == ["user"]


def _takes(block: MediaContent, able: ModelCapabilities) -> bool:
    return block.type == "image" and block.mime_type in able.images and len(block.data) <= PICTURE_CHARACTERS


def _words(block: Content) -> str:
    match block:
        case TextContent():
            return block.text
        case MediaContent():
            return f"({block.type}, {block.mime_type}, {size_text(len(block.data) * 3 // 4)}; not shown to you)"
        case EmbeddedResource() if block.resource.text is not None:
            return f"Resource {block.resource.uri}:\n{block.resource.text}"
        case EmbeddedResource():
            size = size_text(len(block.resource.blob or "") * 3 // 4)
            return f"(resource {block.resource.uri}, {block.resource.mime_type or 'binary'}, {size}; not shown to you)"
        case ResourceLink():
            return f"(link to the resource {block.label}: {block.uri})"
    return f"({block.type}: {block.words})"


def _structured(outcome: CallToolResult) -> Iterator[str]:
    if outcome.has_structured and not any(_says(block, outcome.structured) for block in outcome.content):
        yield json.dumps(outcome.structured, ensure_ascii=False)


def _says(block: Content, value: Any) -> bool:
    """True if this text is the same value as JSON, as the specification wants it for older clients."""
    if not isinstance(block, TextContent) or block.text[:1].isspace():
        return False
    try:
        return bool(json.loads(block.text) == value)
    except (ValueError, RecursionError):
        return False


def _doubts(call: ToolCall) -> Iterator[str]:
    problems = () if call.validity is None else call.validity.problems
    for problem in problems[:3]:
        place = problem.path or "structured content"
        yield f"(This does not match the tool's output schema: {show_line(f'{place}: {problem.message}')})"


def bounded(texts: Sequence[str], limit: int) -> tuple[list[str], int]:
    """The texts in at most ``limit`` characters and a note; how many were left out."""
    left = sum(map(len, texts)) - limit
    if left <= 0:
        return list(texts), 0
    kept, room = [], limit
    for text in texts:
        kept.append(text[:room])
        room -= len(kept[-1])
        if room == 0:
            break
    return [*kept, f"(cut here: {left} more characters were left out; ask for a smaller part)"], left


def _notes(outcome: CallToolResult, texts: Sequence[str], left: int) -> Iterator[str]:
    if left:
        yield f"{left} characters were left out"
    if any(map(_for_user, outcome.content)):
        yield "a part for you only was left out"
    if hidden := sum(map(hidden_count, texts)):
        yield f"it has {hidden} hidden characters"


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
