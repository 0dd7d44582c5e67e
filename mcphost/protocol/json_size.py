"""The size of a JSON value: about how much memory it takes, and if it is longer than a limit when written out."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from itertools import islice
from random import randrange
from typing import Any, Final

PART: Final = 60
"""Bytes of a value besides its text: an object of Python's, and its place in another."""

MANY: Final = 20_000
"""Parts of one array or object that are looked at; of more, every n-th, since millions would hold the event loop."""

_WITHOUT_PARTS: Final = frozenset({int, float, bool, type(None)})


def json_size(value: Any) -> int:
    """Bytes of a JSON value, roughly: what each part takes, and the characters of all texts and keys."""
    total, waiting = 0, [value]
    while waiting:
        current = waiting.pop()
        kind = type(current)  # exact types first: to ask for subclasses takes far longer
        total += PART
        if kind is str:
            total += len(current)
        elif kind in _WITHOUT_PARTS:
            continue
        elif kind is dict or isinstance(current, Mapping):
            if len(current) > MANY:
                total += _sampled(current) + _sampled(current.values())
            else:
                for key, part in current.items():
                    total += PART + (len(key) if type(key) is str else len(str(key)))
                    waiting.append(part)
        elif isinstance(current, list | tuple):
            if len(current) > MANY:
                total += _sampled(current)
            else:
                waiting.extend(current)
        elif isinstance(current, str):
            total += len(current)
    return total


def _sampled(parts: Collection[Any]) -> int:
    step = 1 + len(parts) // MANY
    # From a random place: a server could hide its weight in places that are known to be skipped.
    return step * (json_size(list(islice(parts, randrange(step), None, step))) - PART)


def is_longer(value: Any, characters: int) -> bool:
    """True if the JSON text of ``value`` has more characters. A giant is not written out."""
    least, waiting = 0, [value]
    while waiting and least <= characters:
        current = waiting.pop()
        if isinstance(current, dict | list):
            least += len(current)
            waiting.extend(current.values() if isinstance(current, dict) else current)
        elif isinstance(current, str):
            least += len(current)
    return least > characters or len(json.dumps(value, ensure_ascii=False)) > characters
