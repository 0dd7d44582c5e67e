"""What the user may want of a request for a model's answer between the questions about it.

Knows wishes only: the screen posts them, and whoever can fulfils them.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from mcphost.host.sampling.request import Sampling, SamplingEdit


@dataclass
class SamplingEditWanted(Message):
    """Ask this instead, or another model."""

    sampling: Sampling
    edit: SamplingEdit


@dataclass
class SamplingContextWanted(Message):
    """Add what the server said before to the system prompt."""

    sampling: Sampling


@dataclass
class SamplingStopWanted(Message):
    """Stop the answer; what came is kept."""

    sampling: Sampling


@dataclass
class SamplingRefuseWanted(Message):
    """Stop the answer and refuse; ``words`` are for the server."""

    sampling: Sampling
    words: str


class SamplingInFront(Message):
    """A request is what the user looks at now: what is asked about it can be asked there."""
