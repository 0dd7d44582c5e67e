from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.models.sampling import ModelPreferences
from mcphost.providers.choice import ModelCandidate, choose, family

OPUS = ModelCandidate("deep", "claude-opus-4-1", cost=0.1, speed=0.3, intelligence=1.0)
SONNET = ModelCandidate("daily", "claude-sonnet-4-5", cost=0.5, speed=0.6, intelligence=0.8)
HAIKU = ModelCandidate("quick", "claude-haiku-4-5", cost=0.8, speed=0.9, intelligence=0.5)
GPT = ModelCandidate("gpt", "gpt-4o", cost=0.4, speed=0.6, intelligence=0.8)
MINI = ModelCandidate("mini", "gpt-4o-mini", cost=0.9, speed=0.9, intelligence=0.4)
LOCAL = ModelCandidate("local", "qwen2.5:7b", cost=1.0, speed=0.4, intelligence=0.3)
ALL = (OPUS, SONNET, HAIKU, GPT, MINI, LOCAL)


def wants(*hints: str, **priorities: float) -> ModelPreferences:
    return ModelPreferences(hints, **priorities)


@pytest.mark.requirement("SAMP-05", "SAMP-06")
@pytest.mark.parametrize(
    ("models", "preferences", "entry", "reason"),
    [
        ((GPT,), wants("sonnet", intelligence=1), "gpt", "the only model there is"),
        (ALL, wants(), "deep", "the first of 6"),
        (ALL, wants("sonnet", "claude"), "daily", "the server's hint “sonnet” is part of its name"),
        (ALL, wants("SONNET "), "daily", "part of its name"),
        (ALL, wants("claude-3-sonnet-20240229", "haiku"), "quick", "hint “haiku” is part of its name"),
        (ALL, wants("local"), "local", "part of its name"),
        (ALL, wants("claude", speed=1), "quick", "; the best of 3 for what the server weighs (speed 1)"),
        (ALL, wants("claude"), "deep", "hint “claude” is part of its name; the first of 3"),
        (ALL, wants("haiku", intelligence=1), "quick", "part of its name"),
        ((GPT, MINI), wants("sonnet"), "gpt", "all-round, like the server's hint “sonnet”, which is not configured"),
        ((GPT, MINI), wants("gemini-1.5-flash"), "mini", "small and fast, like"),
        ((SONNET, HAIKU), wants("gpt-4o-mini"), "quick", "small and fast, like"),
        ((SONNET, OPUS), wants("o3"), "deep", "deep and slow, like"),
        ((SONNET, MINI), wants("gpt-4.1", "gpt-4o-mini"), "mini", "hint “gpt-4o-mini” is part of its name"),
        ((GPT, MINI), wants("gemini", cost=1), "mini", "the best of 2 for what the server weighs (cost 1)"),
        ((GPT, MINI), wants("nobody-knows"), "gpt", "the first of 2"),
        (ALL, wants(cost=0.2, intelligence=0.9), "deep", "(cost 0.2, intelligence 0.9)"),
        (ALL, wants(cost=1, speed=1), "mini", "(cost 1, speed 1)"),
        (ALL, wants(cost=0.0, speed=0.0), "deep", "the first of 6"),
        (ALL, wants("\x1b[2J\u202e", cost=1), "local", "cost 1"),
        (ALL, wants("", "  "), "deep", "the first of 6"),
    ],
)
def test_a_servers_wishes_mean_a_model(
    models: tuple[ModelCandidate, ...], preferences: ModelPreferences, entry: str, reason: str
) -> None:
    choice = choose(models, preferences)
    assert choice.entry == entry
    assert reason in choice.reason


@pytest.mark.parametrize(
    ("name", "niche"),
    [
        ("claude-3-haiku-20240307", "small and fast"),
        ("gpt-5-nano", "small and fast"),
        ("mistral-small-latest", "small and fast"),
        ("gemini-2.5-flash-lite", "small and fast"),
        ("llama3.2:3b", "small and fast"),
        ("claude-3-5-sonnet-latest", "all-round"),
        ("gemini-2.5-pro", "all-round"),
        ("gpt-5", "all-round"),
        ("llama-3.3-70b", "all-round"),
        ("deepseek-r1", "deep and slow"),
        ("o3", "deep and slow"),
        ("claude", None),
        ("gpt", None),
        ("gemini", None),
        ("foo3", None),
    ],
)
def test_models_of_different_vendors_share_niches(name: str, niche: str | None) -> None:
    assert family(name) == niche


@given(
    st.lists(st.sampled_from(["a{x}", "{0}", "sonnet", "mini", "", "é"]), max_size=3),
    st.permutations(ALL),
    st.none() | st.floats(0, 1),
)
def test_a_choice_is_one_of_the_models_and_always_the_same(
    hints: list[str], models: list[ModelCandidate], cost: float | None
) -> None:
    preferences = ModelPreferences(tuple(hints), cost)
    choice = choose(models, preferences)
    assert choice == choose(models, preferences)
    assert choice.entry in {model.entry for model in models}
    assert "\n" not in choice.reason
