"""Reads members of untrusted JSON: a value of the expected type, or its empty default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def object_of(value: Any) -> Mapping[str, Any]:
    """``value`` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> Sequence[Any]:
    """``value`` if it is an array, else an empty one."""
    return value if isinstance(value, list) else ()


def text_of(value: Any) -> str:
    """``value`` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def number(value: Any, default: int = 0) -> int:
    """``value`` if it is an integer, else ``default``."""
    return value if type(value) is int else default
