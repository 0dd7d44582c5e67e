"""Takes secrets out of what is shown and stored of the traffic: those mcphost knows, and those that look like one.

Specification: server/utilities/logging, security considerations.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mcphost.redaction import mask_credentials

Mask = Callable[[str], str]


def redacted(text: str, mask: Mask) -> str:
    """``text`` with each secret masked; what is JSON stays JSON, however a secret is spelled in it."""
    plain = _plainly_redacted(text, mask)
    return plain if "\\" not in plain else _redacted_inside(plain, mask)


def masked_value(value: Any, mask: Mask) -> Any:
    """A JSON value with each secret masked that mcphost knows; URLs in it stay usable."""
    return _every_text(value, mask)


def _plainly_redacted(text: str, mask: Mask) -> str:
    return mask_credentials(mask(text))


def _redacted_inside(text: str, mask: Mask) -> str:
    """Look at the strings themselves: an escape may stand in the middle of a secret."""
    try:
        value = json.loads(text)
        hidden = _every_text(value, lambda part: _plainly_redacted(part, mask))
    except (ValueError, RecursionError):
        return text
    return text if hidden == value else json.dumps(hidden, ensure_ascii=False, separators=(",", ":"))


def _every_text(value: Any, hide: Mask) -> Any:
    if type(value) is str:
        return hide(value)
    if type(value) is list:
        return [_every_text(item, hide) for item in value]
    if type(value) is dict:
        return {hide(key): _every_text(item, hide) for key, item in value.items()}
    return value
