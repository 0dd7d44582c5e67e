"""Reads JSON that a person wrote, for the command line."""

from __future__ import annotations

import json
from typing import Any


def read_json(text: str) -> Any:
    """Parse JSON. Raises RecursionError, and ValueError for a key that is there twice and for NaN, too."""
    try:
        return json.loads(
            text, parse_int=_whole_number, parse_constant=_refuse_number, object_pairs_hook=_without_doubles
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg}, line {error.lineno}, column {error.colno}") from None


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # Python reads a limited number of digits
        raise ValueError(f"a number of {len(text):,} digits is too long") from None


def _refuse_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name[:100]!a} is there twice")
        found[name] = value
    return found
