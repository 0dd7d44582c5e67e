"""Shows the ``requestState`` of a modern server by its size and digest: what it holds is the server's own affair.

Specification: 2026-07-28 basic/patterns/mrtr.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Final

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import size_text

MEMBER: Final = "requestState"

DIGEST: Final = 12
"""Hexadecimal digits of a digest: enough to see that two states are the same."""

_STATE: Final = r'("requestState"\s*:\s*)("(?:[^"\\]+|\\.)*)("|\Z)'
_HIDDEN: Final = r"⟨(\d+) bytes, sha256 ([0-9a-f]{12})…⟩"


@dataclass(frozen=True, slots=True)
class StateSummary:
    """The visible part of a state."""

    size: int
    """Bytes."""
    digest: str
    """The first `DIGEST` digits of its SHA-256."""

    def __str__(self) -> str:
        return f"{size_text(self.size)}, sha256 {self.digest}…"


def state_summary(state: object) -> StateSummary | None:
    """The summary of a state, or of one that was hidden in an export; None for anything else."""
    if not isinstance(state, str):
        return None
    if hidden := re.fullmatch(_HIDDEN, state):
        return StateSummary(int(hidden[1]), hidden[2])
    data = state.encode("utf-8", "surrogatepass")
    return StateSummary(len(data), sha256(data).hexdigest()[:DIGEST])


def hide_state(text: str) -> str:
    """The text of a message with each state replaced by its size and digest. JSON stays JSON."""
    return re.sub(_STATE, _hidden, text) if MEMBER in text else text


def _hidden(found: re.Match[str]) -> str:
    if not found[3]:  # only the start of the message was kept
        return f'{found[1]}"⟨cut⟩'
    summary = state_summary(json.loads(f'{found[2]}"', strict=False))
    assert summary is not None
    return f'{found[1]}"⟨{summary.size} bytes, sha256 {summary.digest}…⟩"'
