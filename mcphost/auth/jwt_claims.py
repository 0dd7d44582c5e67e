"""Reads the header and the claims of a JWT without verifying it: nothing may be allowed by them."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from mcphost.json_values import as_dict, is_number, texts_in
from mcphost.protocol.display import duration_text, show_line

LAST_DATE: Final = 253_402_300_800
"""The end of the year 9999, in seconds since 1970."""


def header_of(token: str) -> dict[str, Any]:
    """The header of a signed JWT; empty for any other text."""
    return _part(token, 0)


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a signed JWT; empty for any other text."""
    return _part(token, 1)


def audiences_of(claims: Mapping[str, Any]) -> list[str]:
    named = claims.get("aud")
    return [named] if isinstance(named, str) else texts_in(named)


def expiry_of(claims: Mapping[str, Any]) -> float | None:
    """The ``exp`` claim, in seconds since 1970; None unless it is a number that a calendar has."""
    expires = claims.get("exp")
    return float(expires) if is_number(expires) and abs(expires) < LAST_DATE else None


def why_unfit(claims: Mapping[str, Any], audiences: Collection[str], now: float) -> str:
    """Why a JWT with these claims must not be sent, as a predicate; empty if it may."""
    found, expires = audiences_of(claims), expiry_of(claims)
    if not found:
        return "names no audience"
    if not set(found) & set(audiences):
        meant = " or ".join(show_line(each, 200) for each in sorted(audiences))
        return f"is for {show_line(' and '.join(found), 200)}, not for {meant}: let its platform issue it for that"
    if expires is None:
        return "does not say when it expires"
    if expires <= now:
        return f"expired {duration_text(now - expires)} ago: its platform has not renewed it"
    return ""


def _part(token: str, number: int) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[number] + "=" * (-len(parts[number]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return as_dict(found)
