"""The difference between two results of a tool, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from itertools import islice
from typing import Any, Final

from mcphost.json_values import as_list, as_text
from mcphost.protocol.display import show
from mcphost.tui.kit.json_text import json_lines
from mcphost.tui.kit.text_view import Spans

LINES: Final = 5_000
"""Lines of a result that are compared: more take seconds."""

CHARACTERS: Final = 1_000_000
"""Characters of a text that are compared."""

SAME: Final = "The results are the same."
ELSEWHERE: Final = "The lines that are compared are the same; the results differ elsewhere."

_PARTS: Final = {"-": "removed", "+": "added", "@": "key"}


def difference_text(before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, str]) -> str:
    """The changed lines with some around them, as ``diff -u`` prints them; safe to show."""
    was, now = (list(islice(_lines(result), LINES)) for result in (before, after))
    lines = list(unified_diff(was, now, *names, lineterm=""))
    return "\n".join(lines) or (SAME if before == after else ELSEWHERE)


def difference_spans(line: str) -> Spans:
    """Colours of a line from `difference_text`."""
    part = _PARTS.get(line[:1])
    return [(0, len(line), part)] if part else []


def _lines(result: Mapping[str, Any]) -> Iterator[str]:
    """The structured content, or without it the blocks, as lines."""
    if "structuredContent" in result:
        yield from json_lines(result["structuredContent"], LINES)[0]
        return
    for block in as_list(result.get("content")):
        if isinstance(block, dict) and block.get("type") == "text":
            yield from show(as_text(block.get("text"))[:CHARACTERS]).split("\n")
        else:
            yield from json_lines(block, LINES)[0]
