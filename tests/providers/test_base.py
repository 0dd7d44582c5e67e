from __future__ import annotations

import pytest

from mcphost.errors import ModelError
from mcphost.providers.base import Price, TokenUsage, estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("four", 1), ("five!", 2), ("x" * 4000, 1000), ("日本語", 3), ("né", 2), ("\U0001f600", 1)],
)
def test_tokens_are_estimated_by_a_rule_of_thumb(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@pytest.mark.hostile("M06")
@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (TokenUsage(1_000_000, 100_000), 4.5),
        (TokenUsage(0, 0), 0),
        (TokenUsage(None, 5), None),
        (TokenUsage(5, None), None),
    ],
)
def test_a_cost_is_known_or_unknown_and_never_a_guess(usage: TokenUsage, cost: float | None) -> None:
    assert Price(input=3, output=15).cost_of(usage) == cost


def test_an_error_says_which_model_it_is_about() -> None:
    assert str(ModelError("big", "went away")) == "model big: went away"
