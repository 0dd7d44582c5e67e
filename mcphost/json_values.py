"""Reads parsed JSON and TOML from outside, where any member may be missing or of another type."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeGuard

KeyPath = tuple[str | int, ...]
"""Keys and list positions from the top of a document down to one of its values."""


def as_dict(value: object) -> dict[str, Any]:
    """Return ``value`` itself if it is a dict, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return ``value`` itself if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return ``value`` itself if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def texts_in(value: object) -> list[str]:
    """Return the strings of a list or tuple; nothing of any other value."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list | tuple) else []


def dicts_in(value: object) -> list[dict[str, Any]]:
    """Return the dicts of a list; nothing of any other value."""
    return [each for each in as_list(value) if isinstance(each, dict)]


_canonical: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def canonical(value: Any) -> str:
    """A JSON value as text, independent of the order of members."""
    return _canonical(value)


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return ``value`` with ``change`` applied to its strings at any depth, except names of members."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: map_texts(each, change) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map_texts(each, change) for each in value)
    return value


def is_number(value: object) -> TypeGuard[int | float]:
    """True for numbers of JSON, and false for ``true``, which is an int to Python."""
    return isinstance(value, int | float) and not isinstance(value, bool)
