"""Takes secrets out of what is shown and stored of the traffic: those mcphost knows, and those that look like one.

Knows the marks of credentials in JSON, URLs and headers, and that JSON can spell a text in many ways. Refuses to know
where a text goes.

Specification: server/utilities/logging, security considerations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from mcphost.config import MASK

Mask = Callable[[str], str]

_MARKS: Final = (
    re.compile(r"(\b(?:Bearer|Basic)\s+)[\w.~+/=-]{8,}"),
    re.compile(
        r"""((?:\\?["'])(?:access_?token|refresh_?token|id_?token|client_?secret|code_?verifier|client_?assertion|"""
        r"""authorization|mcp-session-id)\\?["']\s*:\s*\\?["'])[^"'\\\s]{3,}""",
        re.IGNORECASE,
    ),
    re.compile(
        r"([?&#](?:access_token|refresh_token|id_token|client_secret|code_verifier|code|session_?id)=)[^&#\s\"'<>\\]{8,}",
        re.IGNORECASE,
    ),
    re.compile(r"(?im)^((?:proxy-)?authorization|(?:set-)?cookie|mcp-session-id)(:[ \t]*).+$"),
)
_SHAPES: Final = (rf"\g<1>{MASK}", rf"\g<1>{MASK}", rf"\g<1>{MASK}", rf"\g<1>\g<2>{MASK}")


def redacted(text: str, mask: Mask) -> str:
    """``text`` with `MASK` in place of each secret; what is JSON stays JSON, however a secret is spelled in it."""
    plain = _plainly_redacted(text, mask)
    return plain if "\\" not in plain else _redacted_inside(plain, mask)


def masked_value(value: Any, mask: Mask) -> Any:
    """What JSON stands for, with `MASK` in place of each secret that mcphost knows; addresses in it stay usable."""
    return _every_text(value, mask)


def _plainly_redacted(text: str, mask: Mask) -> str:
    text = mask(text)
    for mark, shape in zip(_MARKS, _SHAPES, strict=True):
        text = mark.sub(shape, text)
    return text


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
