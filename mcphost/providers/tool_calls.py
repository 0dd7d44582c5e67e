"""Puts tool uses together from the pieces in which models send them, and judges them.

Knows which tools were offered and what arguments may be. Refuses to repair: a name that is almost right and JSON that
is almost valid stay what they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, NoReturn

from mcphost.protocol.display import size_text
from mcphost.protocol.models.sampling import ToolResult
from mcphost.protocol.models.tools import Content, EmbeddedResource, MediaContent, ResourceLink, TextContent
from mcphost.providers.base import ModelRequest, ToolUseBegun, ToolUseReady
from mcphost.providers.tool_names import NameMapping

MOST_ARGUMENTS: Final = 1_000_000
"""Characters of the arguments of one tool use."""

RAW_KEPT: Final = 20_000
"""Characters of unreadable arguments that are kept, to be shown."""

MOST_USES: Final = 128
"""Tool uses of one answer; the ones beyond are flawed."""


@dataclass(slots=True)
class _Pieces:
    id: str
    name: str
    number: int
    """Which use of its answer it is, from 1."""
    parts: list[str] = field(default_factory=list)
    size: int = 0


class ToolUseParts:
    """The tool uses of one answer, each under the key that its vendor gives its pieces."""

    def __init__(self, request: ModelRequest, names: NameMapping) -> None:
        self._request, self._names = request, names
        self._open: dict[int, _Pieces] = {}
        self._ids = {use.id for message in request.messages for use in message.uses}
        self.count = 0
        """How many have begun."""

    def id_of(self, key: int) -> str | None:
        """The id of the use that is being written under ``key``."""
        return self._open[key].id if key in self._open else None

    def begin(self, key: int, use_id: str, spelled: str) -> ToolUseBegun:
        """A tool use begins; one without an id is given one that no use of the conversation has."""
        self.count += 1
        use = self._open[key] = _Pieces(use_id or self._free_id(), self._names.back(spelled), self.count)
        self._ids.add(use.id)
        return ToolUseBegun(use.id, use.name, self._request.offers(use.name))

    def add(self, key: int, part: str) -> None:
        """More of its arguments, as JSON."""
        use = self._open.get(key)
        if use is not None:
            if use.size <= MOST_ARGUMENTS:
                use.parts.append(part)
            use.size += len(part)

    def end(self, key: int) -> Iterator[ToolUseReady]:
        """The use under ``key`` is complete, if there is one."""
        if key in self._open:
            yield self._judged(self._open.pop(key))

    def end_all(self) -> Iterator[ToolUseReady]:
        """All uses are complete."""
        for key in tuple(self._open):
            yield from self.end(key)

    def _free_id(self) -> str:
        return next(name for number in count(len(self._ids) + 1) if (name := f"call_{number}") not in self._ids)

    def _judged(self, use: _Pieces) -> ToolUseReady:
        offered, written = self._request.offers(use.name), "".join(use.parts)
        arguments, problem = _arguments(written, use.size)
        raw = written[:RAW_KEPT] if problem else ""
        if not offered:
            problem = "no tool of exactly this name may be used in this request"
        elif use.number > MOST_USES:
            problem = f"more than {MOST_USES} tool uses in one answer"
        return ToolUseReady(use.id, use.name, arguments, offered, problem, raw)


def _arguments(written: str, size: int) -> tuple[dict[str, Any], str]:
    """The arguments, or nothing and what is wrong with them."""
    if size > MOST_ARGUMENTS:
        return {}, f"the arguments are larger than {size_text(MOST_ARGUMENTS)}"
    if not written.strip():
        return {}, ""
    try:
        arguments = json.loads(written, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {}, "the arguments are not valid JSON"
    return (arguments, "") if isinstance(arguments, dict) else ({}, "the arguments are not a JSON object")


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


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
