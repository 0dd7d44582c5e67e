"""What a tool answered, in the words and pictures that models take.

Knows the kinds of content. Refuses to fetch anything: a link stays a link.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from mcphost.protocol.sampling import ToolResult
from mcphost.protocol.types import Content, EmbeddedResource, MediaContent, ResourceLink, TextContent

FAILED: Final = "The tool reports an error:"
"""Stands before the result of a tool that failed, where an API has no other word for it."""

PICTURES: Final = "Pictures from the tools:"
"""Stands before pictures that tools answered with, where an API takes only text from tools."""


def words(content: Content) -> str:
    """A block as text; what is none is named."""
    match content:
        case TextContent():
            return content.text
        case MediaContent():
            return f"({content.type}, {content.mime_type})"
        case EmbeddedResource() if content.resource.text is not None:
            return f"Resource {content.resource.uri}:\n{content.resource.text}"
        case EmbeddedResource():
            return f"(resource {content.resource.uri}, {content.resource.mime_type or 'binary'})"
        case ResourceLink():
            return f"(link to resource {content.label}: {content.uri})"
    return f"({content.type}: {content.reason})"


def all_words(result: ToolResult, blocks: Iterable[Content] | None = None) -> str:
    """A result as one text: its ``blocks`` (all, where none are given), or else its structured content."""
    text = "\n".join(map(words, result.blocks if blocks is None else blocks))
    if not text and not result.blocks and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return text


def reported(result: ToolResult) -> str:
    """A result as one text that also says whether the tool failed."""
    said = all_words(result)
    return f"{FAILED}\n{said}" if result.is_error else said


def pictures(result: ToolResult, types: frozenset[str]) -> Iterator[MediaContent]:
    """The images of a result that are of one of these media types."""
    for block in result.blocks:
        if isinstance(block, MediaContent) and block.type == "image" and block.mime_type in types:
            yield block
