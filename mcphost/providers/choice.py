"""Chooses a configured model by a server's model preferences. Pure and deterministic.

Specification: client/sampling (model preferences): hints in order, then cost, speed and intelligence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from mcphost.protocol.display import show_line
from mcphost.protocol.models.sampling import ModelPreferences


class ModelCandidate(NamedTuple):
    """One entry of ``[models]``. The ratings are 0 to 1; more is better."""

    entry: str
    model: str = ""
    """The vendor's name of the model."""
    cost: float = 0.5
    """0 expensive to 1 cheap."""
    speed: float = 0.5
    intelligence: float = 0.5


class ModelChoice(NamedTuple):
    """The chosen entry, and the reason in a line that is safe to show."""

    entry: str
    reason: str


FAMILIES: Final[Mapping[str, str]] = {
    "small and fast": (
        r"haiku|\bsmall\b|[a-z.\d]-(mini|nano|micro|lite|tiny)|flash|ministral|phi-?\d|gemma|smol|\b[1-9]b\b"
    ),
    "deep and slow": r"opus|\bo[134]\b|gpt-?5-pro|ultra|deepseek-r\d|reason|think|\b(405|671)b\b",
    "all-round": r"sonnet|gpt-?4|gpt-?5|pro\b|mistral|mixtral|llama|qwen|deepseek|command-r|grok|\bnova\b",
}
"""Families of comparable models of different vendors, by patterns of their names; the first match counts.

A vendor's name alone (claude, gpt, gemini) is not a family.
"""

_PATTERNS: Final = {family: re.compile(pattern) for family, pattern in FAMILIES.items()}

MOST_HINTS: Final = 20
"""Hints that are considered."""


def family(name: str) -> str | None:
    """The family of a model by its name; None if no pattern matches."""
    lowered = name.lower()[:200]
    return next((each for each, pattern in _PATTERNS.items() if pattern.search(lowered)), None)


def choose(models: Sequence[ModelCandidate], preferences: ModelPreferences) -> ModelChoice:
    """Choose the model for ``preferences`` among at least one.

    A hint that is part of a model's or entry's name precedes one of the same family. Among the models that a hint
    matches, or all if none does, the priorities decide, then the order of the configuration.
    """
    if len(models) == 1:
        return ModelChoice(models[0].entry, "the only model there is")
    hints = preferences.hints[:MOST_HINTS]
    return (
        _hinted(models, preferences, hints, _named, "the server's hint {hint} is part of its name")
        or _hinted(
            models, preferences, hints, _alike, "{family}, like the server's hint {hint}, which is not configured"
        )
        or _weighed(models, preferences, "")
    )


def _hinted(
    models: Sequence[ModelCandidate],
    preferences: ModelPreferences,
    hints: Sequence[str],
    fits: Callable[[str, ModelCandidate], bool],
    reason: str,
) -> ModelChoice | None:
    for hint in hints:
        if found := [model for model in models if fits(hint, model)]:
            text = reason.format(hint=f"“{show_line(hint, 40)}”", family=family(hint))
            return ModelChoice(found[0].entry, text) if len(found) == 1 else _weighed(found, preferences, text)
    return None


def _named(hint: str, model: ModelCandidate) -> bool:
    part = hint.strip().lower()
    return bool(part) and (part in model.model.lower() or part in model.entry.lower())


def _alike(hint: str, model: ModelCandidate) -> bool:
    hinted = family(hint)
    return hinted is not None and hinted in (family(model.model), family(model.entry))


def _weighed(models: Sequence[ModelCandidate], preferences: ModelPreferences, before: str) -> ModelChoice:
    """The best by the weighted priorities; the first of equals."""
    weights = {
        name: weight
        for name in ("cost", "speed", "intelligence")
        if (weight := getattr(preferences, name)) is not None and weight > 0
    }
    best = max(models, key=lambda model: sum(weight * getattr(model, name) for name, weight in weights.items()))
    weighed = ", ".join(f"{name} {weight:g}" for name, weight in weights.items())
    why = (
        f"the best of {len(models)} for what the server weighs ({weighed})"
        if weighed
        else f"the first of {len(models)}"
    )
    return ModelChoice(best.entry, f"{before}; {why}" if before else why)
