"""Reads JSON that a person wrote, for the command line."""

from __future__ import annotations

import json
import math
from typing import Any


def read_json(text: str) -> Any:
    """Parse JSON. Raises RecursionError, and ValueError also for a repeated key or a value that cannot be sent."""
    try:
        value = json.loads(
            text,
            parse_constant=_refuse_number,
            parse_float=_float,
            parse_int=_int,
            object_pairs_hook=_without_doubles,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg}, line {error.lineno}, column {error.colno}") from None
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("an escape such as \\ud83d is half of a character; its other half is missing") from None
    return value


def _refuse_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _float(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"{text[:40]} is too large for a number")
    return value


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # Python reads a limited number of digits
        raise ValueError(f"a number of {len(text):,} digits is too long") from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name[:100]!a} is there twice")
        found[name] = value
    return found
