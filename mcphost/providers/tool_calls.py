"""Assembles tool uses from streamed pieces, validates them, and renders tool results as text.

Nothing is repaired: a name that is almost right, and JSON that is almost valid, are problems.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import count
from typing import Any, Final, NoReturn

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import size_text
from mcphost.protocol.models.content import Content, EmbeddedResource, MediaContent, ResourceLink, TextContent
from mcphost.protocol.models.sampling import ToolResult
from mcphost.providers.base import ModelRequest, ToolUseBegun, ToolUseReady, paired
from mcphost.providers.tool_names import NameMapping

MOST_ARGUMENTS: Final = 1_000_000
"""Characters of the arguments of one tool use."""

CUT: Final = frozenset({"maxTokens", "contentFilter", "refusal"})
"""Stop reasons after which the last tool use may lack its arguments."""

RAW_KEPT: Final = 20_000
"""Characters kept of arguments that could not be parsed."""

MOST_USES: Final = 128
"""Tool uses of one answer; further ones are flawed."""


@dataclass(slots=True)
class _Pieces:
    id: str
    name: str
    number: int
    """The position among the tool uses of the answer, from 1."""
    parts: list[str] = field(default_factory=list)
    size: int = 0
    replaced: bool = False
    """True if another tool use took its place before it was complete."""

    @property
    def whole(self) -> bool:
        """True if its arguments are a whole JSON object."""
        return bool(self.parts) and self.parts[-1].rstrip().endswith("}") and not _arguments(self.written, self.size)[1]

    @property
    def written(self) -> str:
        return paired("".join(self.parts))


class ToolUseParts:
    """The tool uses of one answer, each under the key that the vendor gives its pieces."""

    def __init__(self, request: ModelRequest, names: NameMapping) -> None:
        self._request, self._names = request, names
        self._open: dict[int, _Pieces] = {}
        self._unnamed: dict[int, _Pieces] = {}
        """Pieces that came before a name did."""
        self._ended: list[_Pieces] = []
        """Tool uses held until it is certain that the answer was not cut off before their arguments, and later ones."""
        self._ids = {use.id for message in request.messages for use in message.uses}
        self.count = 0
        """The number of tool uses begun."""

    def key_of(self, use_id: str) -> int | None:
        return next((key for key, use in self._open.items() if use.id == use_id), None)

    def continues(self, key: int, use_id: str, vendor_name: str) -> bool:
        """True if a piece with this id and name continues the unfinished tool use under ``key`` and does not begin one.

        Some servers repeat the name in each piece, and some of those give each piece another id, or none.
        """
        use = self._open.get(key)
        if use is None or use.name != self._names.original(vendor_name):
            return False
        return use_id == use.id or (not use.whole and (use.size > 0 or not use_id))

    def begin(self, key: int, use_id: str, vendor_name: str) -> ToolUseBegun:
        """Begin a tool use; without an id, it gets one that is new in the conversation."""
        self.count += 1
        early = self._unnamed.pop(key, None) or _Pieces("", "", 0)
        use = early
        use.id, use.name = use_id or early.id or self._free_id(), self._names.original(vendor_name)
        use.number, self._open[key] = self.count, use
        self._ids.add(use.id)
        return ToolUseBegun(use.id, use.name, self._request.offers(use.name))

    def hold(self, key: int, use_id: str) -> None:
        """Gather under ``key`` what comes before the name of a tool use, unless one is unfinished there."""
        if key not in self._open:
            held = self._unnamed.setdefault(key, _Pieces("", "", 0))
            held.id = held.id or use_id

    def add(self, key: int, part: str) -> None:
        """Append to its arguments, which are JSON."""
        use = self._open.get(key) or self._unnamed.get(key)
        if use is not None and part:
            if use.size <= MOST_ARGUMENTS:
                use.parts.append(part)
            use.size += len(part)

    def is_empty(self, key: int) -> bool:
        """True if no arguments have arrived yet."""
        return key in self._open and not self._open[key].size

    def end(self, key: int, *, replaced: bool = False) -> Iterator[ToolUseReady]:
        """Complete the tool use under ``key``, if there is one; ``replaced``: another begins under its key.

        One without arguments, and those after it, are complete with `end_all`.
        """
        if key in self._open:
            use = self._open.pop(key)
            use.replaced = replaced
            self._ended.append(use)
        while self._ended and self._ended[0].size:
            yield self._validated(self._ended.pop(0))

    def end_all(self, *, cut: bool = False) -> Iterator[ToolUseReady]:
        """Complete all tool uses; ``cut``: the answer was cut off, so that arguments may be missing."""
        for key in [key for key, use in self._unnamed.items() if use.size]:
            self.begin(key, "", "")
        for use in (*self._ended, *self._open.values()):
            use.replaced |= cut
            yield self._validated(use)
        self._ended.clear()
        self._open.clear()

    def _free_id(self) -> str:
        return next(name for number in count(len(self._ids) + 1) if (name := f"call_{number}") not in self._ids)

    def _validated(self, use: _Pieces) -> ToolUseReady:
        offered, written = self._request.offers(use.name), use.written
        arguments, problem = _arguments(written, use.size)
        if use.replaced and not use.size:  # it may take some or none, which is not known
            problem = "its arguments did not come"
        raw = written[:RAW_KEPT] if problem else ""
        if not offered:
            problem = "no tool of exactly this name may be used in this request"
        elif use.number > MOST_USES:
            problem = f"more than {MOST_USES} tool uses in one answer"
        return ToolUseReady(use.id, use.name, arguments, offered, problem, raw)


def _arguments(written: str, size: int) -> tuple[dict[str, Any], str]:
    """The arguments, or an empty object and what is wrong with them."""
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
"""Precedes the result of a failed tool in APIs without a flag for it."""

PICTURES: Final = "Pictures from the tools:"
"""Precedes pictures from tools in APIs that accept only text as tool result."""


def text_for(content: Content) -> str:
    """A block as text; other content is named in parentheses."""
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
    return f"({content.type}: {content.words})"


def result_text(result: ToolResult, blocks: Iterable[Content] | None = None) -> str:
    """A result as one text: its ``blocks`` (default: all), or else its structured content."""
    text = "\n".join(map(text_for, result.blocks if blocks is None else blocks))
    if not text and not result.blocks and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return text


def result_with_status(result: ToolResult) -> str:
    """A result as one text that also says if the tool failed."""
    text = result_text(result)
    return f"{FAILED}\n{text}" if result.is_error else text


def pictures(result: ToolResult, types: frozenset[str]) -> Iterator[MediaContent]:
    """The images of a result that have one of these media types."""
    for block in result.blocks:
        if isinstance(block, MediaContent) and block.type == "image" and block.mime_type in types:
            yield block
