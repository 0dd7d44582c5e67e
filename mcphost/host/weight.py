"""About how much memory a JSON value takes, found without writing it out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PART: Final = 60
"""Bytes of a value besides its text: an object of Python's, and its place in another."""

_WITHOUT_PARTS: Final = frozenset({int, float, bool, type(None)})


def weight(value: Any) -> int:
    """Bytes of a JSON value, roughly: what each part takes, and the characters of all texts and keys."""
    total, waiting = 0, [value]
    while waiting:
        current = waiting.pop()
        total += PART
        if type(current) in _WITHOUT_PARTS:
            continue
        if isinstance(current, str):
            total += len(current)
        elif type(current) is dict or isinstance(current, Mapping):  # a Mapping is known far less quickly
            total += sum(PART + len(key) for key in current if isinstance(key, str))
            waiting.extend(current.values())
        elif isinstance(current, list | tuple):
            waiting.extend(current)
    return total
