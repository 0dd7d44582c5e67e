"""Members of foreign JSON as what they should be, or else as nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def object_of(value: Any) -> Mapping[str, Any]:
    """An object; empty where it is none."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> Sequence[Any]:
    """An array; empty where it is none."""
    return value if isinstance(value, list) else ()


def text_of(value: Any) -> str:
    """A string; empty where it is none."""
    return value if isinstance(value, str) else ""


def number(value: Any, default: int = 0) -> int:
    """A whole number; ``default`` where it is none."""
    return value if type(value) is int else default
