"""Values that a gate and what decides for it exchange."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple


class GatedCall(NamedTuple):
    """A tool call that waits for a `GateDecision`."""

    number: int
    """Unique in the gate's process, from 1."""
    request_id: str | int | float
    """As the agent chose it; of any length."""
    tool: str
    definition: Mapping[str, Any] | None
    """The tool as the server listed it last; None: it did not."""
    arguments: Mapping[str, Any]
    answer_within: float | None
    """Seconds in which the agent is answered; None: it waits for ever."""
    progress: bool
    """True if the agent hears of the wait."""


class GateDecision(NamedTuple):
    """Decides a `GatedCall`."""

    allow: bool
    arguments: Mapping[str, Any] | None = None
    """Those that the person changed; None: as they were asked."""
    words: str = ""
    """The reason of a refusal, for the model."""
    by: Literal["user", "policy"] = "policy"
    listed_within: float | None = None
    """Seconds that the tool's listing may be old for this decision, which an earlier answer of the user made."""
