"""Text that can be edited although it holds what a terminal obeys or a reader cannot see.

Such a character stands in the box as ``⟨U+202E⟩`` (in JSON as ``\\u202e``), so that what is seen is what is sent; both
ways are exact. Knows nothing of fields and widgets.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from mcphost.protocol.display import MARKS_PER_BASE, show

_MARK = re.compile(r"⟨U\+([0-9A-F]{4,6})⟩")


def conceal(text: str, *, lines: bool = False) -> str:
    """Return ``text`` with a mark for each character not safe to show; line ends and tabs stay when ``lines``."""
    kept = "\n\t" if lines else ""
    if show(text) == text and not _MARK.search(text) and (lines or not re.search(r"[\n\t]", text)):
        return text
    literal = {match.start() for match in _MARK.finditer(text)}
    return "".join(
        f"⟨U+{ord(char):04X}⟩" if (unsafe or index in literal) and char not in kept else char
        for index, (char, unsafe) in enumerate(_judged(text, kept))
    )


def reveal(text: str) -> str:
    """Undo `conceal`."""
    return _MARK.sub(lambda mark: _character(mark[0], int(mark[1], 16)), text)


def escape(text: str) -> str:
    r"""Return JSON ``text`` with ``\u202e`` for each character not safe to show; still the same JSON."""
    if show(text) == text:
        return text
    return "".join(_escaped(char) if unsafe else char for char, unsafe in _judged(text, "\n\t"))


def dump(value: Any) -> str:
    """Return ``value`` as indented JSON that is safe to show and to edit."""
    try:
        return escape(json.dumps(value, indent=2, ensure_ascii=False))
    except (ValueError, RecursionError):  # a number with too many digits, or too deep
        return "{}"


def _judged(text: str, kept: str) -> Iterator[tuple[str, bool]]:
    """Yield each character and whether it has to be marked; combining marks are, from the fifth on one base."""
    run = 0
    for char in text:
        run = run + 1 if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me") else 0
        yield char, char not in kept and (run > MARKS_PER_BASE or char in "\n\t" or show(char) != char)


def _character(mark: str, code: int) -> str:
    return chr(code) if code <= 0x10FFFF else mark


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1]
