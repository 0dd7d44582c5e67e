"""What a conversation used of its models: tokens, and money where prices are known."""

from __future__ import annotations

from dataclasses import dataclass

from mcphost.host.models import AvailableModel
from mcphost.providers.base import TokenUsage


@dataclass(frozen=True, slots=True)
class ChatUsage:
    """What a conversation used of its models. ``cost`` is None where a price is not known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    guessed: bool = False
    """Is a part of it an estimate of ours, since a model did not say?"""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def with_answer(self, usage: TokenUsage, model: AvailableModel | None, *, guessed: bool) -> ChatUsage:
        """After one more exchange."""
        price = None if model is None or model.price is None else model.price.of(usage)
        return ChatUsage(
            self.input_tokens + (usage.input_tokens or 0),
            self.output_tokens + (usage.output_tokens or 0),
            None if self.cost is None or price is None else self.cost + price,
            self.guessed or guessed,
        )
