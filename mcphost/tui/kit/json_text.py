"""JSON as lines for the screen, up to a limit, and the spans of its parts for colours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from mcphost.protocol.display import show, size_text

LINES: Final = 20_000
LONGEST_STRING: Final = 10_000
"""Characters of a string that are shown: images come as one string of megabytes."""
DEEPEST: Final = 150
"""Levels of nesting. The protocol's parser allows fewer, but text that happens to be JSON may have more."""

# possessive: backtracking over a string of a million escapes would take too much memory
_PART: Final = re.compile(
    r'(?P<string>"[^"\\]*+(?>(?:\\.[^"\\]*+)*)")(?P<colon>\s*:)?|(?P<number>-?\d[\d.eE+-]*)|(?P<constant>true|false|null)'
)


class Written(str):
    """A number as it was spelled."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """An object's members in their order, repeated ones included."""


def parse(text: str) -> Any:
    """Parse an object or array, with numbers as spelled and repeated members kept; else ValueError."""
    if text.lstrip()[:1] not in ("{", "["):
        raise ValueError("neither an object nor an array")
    try:
        return json.loads(
            text, parse_int=Written, parse_float=Written, parse_constant=Written, object_pairs_hook=Members
        )
    except RecursionError:
        raise ValueError("too deep") from None


def json_lines(value: Any, limit: int = LINES, *, joiners: bool = False) -> tuple[list[str], bool]:
    """The lines of ``value``, safe to show, and whether there are more than ``limit``; ``joiners`` as for ``show``."""
    lines = [show(line, joiners=joiners) for line in islice(_write(value, "", "", 0), limit + 1)]
    return lines[:limit], len(lines) > limit


def json_text(value: Any) -> str:
    """The text of ``value`` for the clipboard and files: indented, complete, unmarked."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def json_start(value: Any, characters: int) -> str:
    """The compact JSON of ``value``, cut off at about so many characters; does not depend on its size otherwise."""
    text = ""
    for part in json.JSONEncoder(ensure_ascii=False).iterencode(value):
        text += part[:characters]
        if len(text) > characters:
            break
    return text


def json_spans(line: str) -> Iterator[tuple[int, int, str]]:
    """The spans of a line from `json_lines`: start, end and ``key``, ``string``, ``number`` or ``constant``."""
    for match in _PART.finditer(line):
        kind = match.lastgroup or ""
        if kind == "colon":
            yield *match.span("string"), "key"
        else:
            yield *match.span(), kind


def _write(value: Any, before: str, after: str, depth: int) -> Iterator[str]:
    if depth > DEEPEST:
        yield f"{before}⟨deeper than {DEEPEST} levels⟩{after}"
    elif isinstance(value, dict | Members) and value:
        pairs = value.items() if isinstance(value, dict) else value
        yield before + "{"
        yield from _items(((f"{_string(str(key))}: ", item) for key, item in pairs), len(value), depth)
        yield "  " * depth + "}" + after
    elif isinstance(value, list | tuple) and value and not isinstance(value, Members):
        yield before + "["
        yield from _items((("", item) for item in value), len(value), depth)
        yield "  " * depth + "]" + after
    else:
        yield before + scalar_text(value) + after


def _items(items: Iterable[tuple[str, Any]], count: int, depth: int) -> Iterator[str]:
    inner = "  " * (depth + 1)
    for number, (label, item) in enumerate(items, 1):
        yield from _write(item, inner + label, "," if number < count else "", depth + 1)


def scalar_text(value: Any) -> str:
    """The JSON of a scalar or an empty container; a long one is cut."""
    if isinstance(value, Written):
        return value if len(value) <= LONGEST_STRING else f"{value[:LONGEST_STRING]} … ⟨{len(value)} digits⟩"
    if isinstance(value, Members):
        return "{}"
    return _string(value) if isinstance(value, str) else json.dumps(value)


def _string(text: str) -> str:
    written = json.dumps(text[:LONGEST_STRING], ensure_ascii=False)
    rest = len(text) - LONGEST_STRING
    return written if rest <= 0 else f"{written} ⟨{size_text(rest)} more⟩"
