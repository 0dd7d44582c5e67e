"""The result of a call in a few words."""

from __future__ import annotations

from typing import Any, Final

from mcphost.host.tool_calls.call import ToolCall
from mcphost.protocol.display import show_line
from mcphost.protocol.models.content import TextContent
from mcphost.tui.kit.json_text import json_start
from mcphost.tui.results.content import describe
from mcphost.tui.results.failure import failure_of, first_line

WORDS: Final = 80
"""Characters of a summary."""


def result_words(call: ToolCall) -> str:
    """Return the start of a text, the number of rows, or the failure, on one line and safe to show."""
    if not call.state.ended:
        return call.doing
    if (failure := failure_of(call)) is not None:
        return failure.headline
    if call.outcome is None:
        return ""
    if call.outcome.has_structured:
        return structured_words(call.outcome.structured)
    content = call.outcome.content
    said = first_line(*(block.text for block in content if isinstance(block, TextContent)))
    return said or (describe(content[0]).title if content else "no content")


def structured_words(value: Any) -> str:
    """``ships · 41 items``, or the start of the JSON."""
    if isinstance(value, list):
        return _count(value)
    lists = [(name, member) for name, member in value.items() if isinstance(member, list)] if _is_small(value) else []
    if len(lists) == 1:
        name, member = lists[0]
        return f"{show_line(name, 40)} · {_count(member)}"
    return show_line(json_start(value, WORDS), WORDS)


def _is_small(value: Any) -> bool:
    return isinstance(value, dict) and len(value) <= 20


def _count(items: list[Any]) -> str:
    return f"{len(items):,} item{'' if len(items) == 1 else 's'}"
