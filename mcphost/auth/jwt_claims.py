"""Reads the claims of a JWT without verifying it: nothing may be allowed by them."""

from __future__ import annotations

import base64
import json
from typing import Any

from mcphost.json_values import as_dict


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
