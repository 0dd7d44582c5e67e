"""Rules by argument: patterns that texts of a call must match for it to run without a question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from mcphost.protocol.display import hidden_count, show_line
from mcphost.protocol.schema.validation import SchemaRefused, is_cheap, problems

PATTERN_CHARACTERS: Final = 2000
"""Of one pattern that a user may make: what is longer is not read before it is agreed to."""

EXACT_CHARACTERS: Final = 120
"""Of a text that is suggested as it is; of a longer one, how it begins."""

_FIRST_WORD: Final = r"(?a)([A-Za-z_]\w*)\s+\S"
_ESCAPE: Final = r"(?s)\\."
_CLASS: Final = r"\[[^\]]*\]"
_FLAGS: Final = r"\(\?[a-zA-Z-]*[mxR]"
"""By which ``^`` and ``$`` may hold a line only, or stand in a comment."""
_SPECIAL: Final = frozenset(r"\.+*?()|[]{}^$")
_NAMED: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def fits(when: Mapping[str, str], arguments: Mapping[str, Any]) -> bool:
    """True if each argument that the rule names is a text that matches.

    A rule that names none fits nothing, and so does a pattern that cannot be tried at once.
    """
    named = {name: arguments[name] for name in when if name in arguments}
    schema = _schema(when)
    try:
        return bool(when) and is_cheap(schema, named) and not problems(schema, named, limit=1)
    except SchemaRefused:
        return False


def in_words(when: Mapping[str, str]) -> str:
    """``sql matches '^SELECT'``, safe to show and on one line."""
    each = (f"{show_line(name, 60)} matches '{show_line(when[name], PATTERN_CHARACTERS)}'" for name in when)
    return ", ".join(each)


def wrong_with(pattern: str) -> str:
    """Why this pattern cannot stand in a rule, after a name for it; empty: it can. Patterns are JSON Schema's."""
    if not pattern:
        return "is empty, which would match everything; write .* for that"
    if len(pattern) > PATTERN_CHARACTERS:
        return f"has more than {PATTERN_CHARACTERS:,} characters"
    schema = {"type": "string", "pattern": pattern}
    if not is_cheap(schema, ""):
        return "takes too long to try: leave out look-around, back references and large counts"
    try:
        problems(schema, "", limit=1)
    except SchemaRefused:
        return "is not a regular expression"
    return ""


def problem(when: Mapping[str, str]) -> str:
    """The reason why these patterns cannot be a rule, as a sentence without its full stop; empty if they can."""
    for name, pattern in when.items():
        if wrong := wrong_with(pattern):
            return f"the pattern for {show_line(name, 60)} {wrong}"
    if when and not is_cheap(_schema(when), {}):
        return "the patterns together take too long to try"
    return ""


def left_open(pattern: str) -> str:
    """The rest that a matching text may hold, in words; empty where ``^`` and ``$`` enclose all of it."""
    bare = re.sub(_CLASS, "_", re.sub(_ESCAPE, "_", pattern))
    divided = _is_divided(bare) or re.search(_FLAGS, bare) is not None
    open_ends = ("before it",) * (divided or not bare.startswith("^")), ("after it",) * (divided or bare[-1:] != "$")
    return " or ".join(open_ends[0] + open_ends[1])


def suggested(text: str) -> str:
    """A pattern that this text matches: its first word where more words follow, all of it, or how it begins."""
    if word := re.match(_FIRST_WORD, text):
        return rf"^{word[1]}\b"
    if len(text) <= EXACT_CHARACTERS:
        return f"^{escaped(text)}$"
    return f"^{escaped(text[: EXACT_CHARACTERS // 2])}"


def escaped(text: str) -> str:
    """A pattern that only this text matches, of characters that can be seen."""
    return "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character in _SPECIAL:
        return f"\\{character}"
    if character in _NAMED:
        return _NAMED[character]
    if character != " " and (hidden_count(character) or not character.isprintable()):
        return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\u{{{ord(character):x}}}"
    return character


def _is_divided(bare: str) -> bool:
    """True if a ``|`` outside of all groups makes two patterns of it."""
    depth = 0
    for character in bare:
        if character == "|" and not depth:
            return True
        depth += (character == "(") - (character == ")")
    return False


def _schema(when: Mapping[str, str]) -> dict[str, Any]:
    patterns = {name: {"type": "string", "pattern": pattern} for name, pattern in when.items()}
    return {"type": "object", "properties": patterns, "required": list(patterns)}
