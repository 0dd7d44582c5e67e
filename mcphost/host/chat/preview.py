"""What a message would be to the model, before it is sent: its parts with their sizes, and what hides in them.

Specification: server/prompts (user interaction), server/resources (user interaction).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mcphost.host.chat.attachments import PICTURE_TOKENS
from mcphost.host.chat.model_messages import attached_blocks, fitting
from mcphost.host.chat.tool_results import links_in
from mcphost.host.chat.turns import UserMessage
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import hidden_count, show_line, size_text
from mcphost.protocol.models.content import MediaContent, TextContent
from mcphost.protocol.models.sampling import Block, text_block
from mcphost.providers.base import ModelCapabilities, estimate_tokens


@dataclass(frozen=True, slots=True)
class PreviewPart:
    """A part of a message."""

    title: str
    """What it is, safe to show."""
    text: str
    """As the model gets it; pictures in words."""
    size: int
    """Bytes."""
    tokens: int
    """About what it costs."""
    foreign: bool = False
    """Did a server write it?"""
    note: str = ""
    """What the model does not get of it; may quote."""
    of_prompt: bool = False


@dataclass(frozen=True, slots=True)
class MessagePreview:
    """A whole message. ``besides`` are about the tokens of the request without it: tools and what was said before."""

    model: str
    pieces: tuple[PreviewPart, ...]
    besides: int

    @property
    def has_prompt(self) -> bool:
        """Does it hold words of a server's as if a person, or the model, had said them?"""
        return any(piece.of_prompt for piece in self.pieces)

    @property
    def tokens(self) -> int:
        return sum(piece.tokens for piece in self.pieces)

    @property
    def size(self) -> int:
        """Of all parts, in bytes."""
        return sum(piece.size for piece in self.pieces)

    @property
    def hidden(self) -> int:
        """Characters that would be unseen, had they no marks."""
        return sum(hidden_count(piece.text) for piece in self.pieces)

    @property
    def links(self) -> tuple[str, ...]:
        """Addresses in what servers wrote."""
        return tuple(dict.fromkeys(link for piece in self.pieces if piece.foreign for link in links_in(piece.text)))


def pieces_of(message: UserMessage, able: ModelCapabilities) -> Iterator[PreviewPart]:
    """The parts of a message, in the order in which a model of these capabilities gets them."""
    for prompt in message.prompts:
        name, note = f"/{show_line(prompt.server, 60)}:{show_line(prompt.prompt, 80)}", prompt.note
        given = "".join(f" {show_line(key, 60)}={show_line(value, 200)}" for key, value in prompt.arguments.items())
        for number, each in enumerate(prompt.messages, 1):
            title = f"{name}{given if number == 1 else ''} · message {number} of {len(prompt.messages)}, as "
            title += "said by you" if each.role == "user" else "said by the model"
            piece = _piece(title, each.blocks, able, foreign=True, note=note if number == 1 else "")
            yield replace(piece, of_prompt=True)
    for attached in message.attachments:
        title = f"@{show_line(attached.server, 60)}{':' * bool(attached.server)}{show_line(attached.name, 200)}"
        blocks = attached_blocks(attached)
        yield _piece(title, blocks, able, foreign=attached.outside, note=attached.note)
    if message.text.strip():
        yield _piece("your words", [text_block(message.text)], able)


def _piece(
    title: str, blocks: Iterable[Block], able: ModelCapabilities, *, foreign: bool = False, note: str = ""
) -> PreviewPart:
    texts, size, tokens = [], 0, 0
    for block in (fitting(each, able) for each in blocks):
        if isinstance(block, MediaContent):
            data = len(block.data) * 3 // 4
            texts.append(f"({block.type}, {block.mime_type}, {size_text(data)})")
            size, tokens = size + data, tokens + PICTURE_TOKENS
        elif isinstance(block, TextContent):
            texts.append(block.text)
            size, tokens = size + len(block.text.encode("utf-8", "replace")), tokens + estimate_tokens(block.text)
    return PreviewPart(title, "\n".join(texts), size, tokens, foreign, note)
