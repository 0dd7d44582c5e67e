"""Reads the claims of a JWT without verifying it: nothing may be allowed by them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from mcphost.json_values import as_dict, is_number

LAST_DATE: Final = 253_402_300_800
"""The end of the year 9999, in seconds since 1970."""


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a signed JWT; empty for any other text."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return as_dict(found)


def expiry_of(claims: Mapping[str, Any]) -> float | None:
    """The ``exp`` claim, in seconds since 1970; None unless it is a number that a calendar has."""
    expires = claims.get("exp")
    return float(expires) if is_number(expires) and abs(expires) < LAST_DATE else None
