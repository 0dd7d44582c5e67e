"""Facts of a sampling request: who asks, which model, limits and costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.content import Content

from mcphost.config.model_providers import EXAMPLE_ENTRY, OTHER_PROVIDERS
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show, show_line, show_name
from mcphost.tui.consent.origin import QuestionOrigin
from mcphost.tui.kit.facts_table import Fact, fact
from mcphost.tui.kit.json_text import json_lines

if TYPE_CHECKING:
    from mcphost.host.models import AvailableModel
    from mcphost.host.sampling.budgets import SamplingUsage
    from mcphost.host.sampling.request import Sampling
    from mcphost.protocol.models.sampling import ModelPreferences


def usage_words(usage: SamplingUsage) -> str:
    """The requests, tokens and money that a server used in this run, and its budget."""
    tokens = _of(f"{usage.tokens:,}", None if usage.most_tokens is None else f"{usage.most_tokens:,}")
    parts = [f"{usage.requests} request{'' if usage.requests == 1 else 's'}", f"{tokens} tokens"]
    if usage.cost or usage.most_cost is not None:
        parts.append(f"{_of(money(usage.cost), None if usage.most_cost is None else money(usage.most_cost))} in money")
    return ", ".join(parts) + ("" if has_budget(usage) else "; no budget")


def _of(used: str, most: str | None) -> str:
    return used if most is None else f"{used} of {most}"


def has_budget(usage: SamplingUsage) -> bool:
    return usage.most_tokens is not None or usage.most_cost is not None


def money(amount: float) -> str:
    """An amount in the currency of the configured prices."""
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.3g}"


LISTED: Final = 12
"""Names of tools, hints and the like that are listed."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Facts from outside the request."""

    origin: QuestionOrigin
    age: str
    """The time since the question was asked, in words."""
    usage: SamplingUsage
    config: Path | None
    """The path of the configuration file."""
    no_model: bool
    """True if no model is configured."""
    seconds: float | None = None
    """The duration of the last answer, if it was seen."""
    rewritten: bool = False
    """True if the user changed the answer."""


def request_facts(sampling: Sampling, context: RequestContext) -> Iterator[Fact]:
    """The facts before a model is asked."""
    yield from _model(sampling)
    yield from _edited(sampling)
    if context.no_model:
        yield fact("", "m shows how to configure a model that answers instead")
    yield from _estimate(sampling)
    yield from _used(context.usage)
    yield from _context(sampling)
    yield from _tools(sampling)
    yield from _limits(sampling)
    if not sampling.model.by_hand:
        yield fact("your ratings", qualities(sampling.model))
        yield fact("price", price_words(sampling.model))
    yield from _preferences(sampling)
    yield fact("asked", " · ".join(filter(None, (context.origin.cause, context.age))))
    if context.origin.identity:
        yield fact("goes to", f"{context.origin.server}  ({context.origin.identity})")
    if sampling.rule:
        yield fact("rule", show_line(sampling.rule, 120))
    if context.no_model:
        yield from setup_facts(context.config)


def answer_facts(sampling: Sampling, context: RequestContext) -> Iterator[Fact]:
    """The facts of an answer, with its cost."""
    nothing = sampling.error is not None and not sampling.blocks
    yield fact("model" if nothing else "answered by", answered_by(sampling))
    if sampling.attempts:
        yield fact("took", " · ".join(_took(sampling, context.seconds)))
        yield fact("ended", _ended(sampling))
    yield from _used(context.usage)
    yield fact("asked", context.origin.cause)
    if context.origin.identity:
        yield fact("goes to", f"{context.origin.server}  ({context.origin.identity})")
    yield from _edited(sampling)
    if context.rewritten:
        yield fact("answer", "edited by you")


def setup_facts(config: Path | None) -> Iterator[Fact]:
    """Instructions for configuring a model."""
    where = "mcphost.toml" if config is None else show_line(str(config), 200)
    yield Fact("", Content(""), wide=True)
    yield fact("no model", f"is configured, so you write the answer. To let a model answer, add to {where}:")
    yield Fact("", Content.styled(EXAMPLE_ENTRY, "$text-accent"), wide=True, mark="  ")
    yield fact("", f"provider can also be {OTHER_PROVIDERS}; ctrl+l reloads the file")


def answered_by(sampling: Sampling) -> str:
    """The name of the model in the response to the server."""
    name = sampling.answered_by or sampling.model.name
    answered_by_user = sampling.model.by_hand and not sampling.answered_by
    return f"{show_line(name, 80)} (you)" if answered_by_user else show_line(name, 80)


def model_words(model: AvailableModel) -> str:
    """The entry and the model's own name."""
    named = show_line(model.candidate.model, 80)
    return show_line(model.entry, 60) + (f" · {named}" if named and named != model.entry else "")


def qualities(model: AvailableModel) -> str:
    """Its weights in the configuration."""
    candidate = model.candidate
    return f"cost {candidate.cost:g} · speed {candidate.speed:g} · intelligence {candidate.intelligence:g}"


def price_words(model: AvailableModel) -> str:
    """The price of a million tokens, in and out."""
    if model.by_hand:
        return "free"
    if model.price is None:
        return "no price configured"
    return f"{model.price.input:g} in, {model.price.output:g} out per M tokens"


# Sections.


def _model(sampling: Sampling) -> Iterator[Fact]:
    yield fact("model", "you write the answer" if sampling.model.by_hand else model_words(sampling.model), "bold")
    yield fact("because", show_line(sampling.reason, 300))
    if sampling.problem:
        yield fact("▲ but", show(sampling.problem, limit=300), "bold $text-error")


def _edited(sampling: Sampling) -> Iterator[Fact]:
    """Marks a prompt of which anything was changed, be it only the temperature."""
    if sampling.edited:
        yield fact("prompt", "edited by you", "$text-warning")


def _estimate(sampling: Sampling) -> Iterator[Fact]:
    guess, by_hand = sampling.estimate, sampling.model.by_hand
    media = f" and {guess.media} picture{'s' * (guess.media > 1)} or sounds, not counted" if guess.media else ""
    cost = "cost unknown" if guess.cost is None else f"at most {money(guess.cost)} by your prices"
    tokens = f"about {guess.input_tokens:,} tokens{media}, up to {guess.most_tokens:,} more for the answer"
    yield fact("size", tokens if by_hand else f"{tokens}; {cost}")


def _used(usage: SamplingUsage) -> Iterator[Fact]:
    yield fact("used so far", f"{usage_words(usage)} (this run)")
    if usage.paused:
        yield fact("▲ paused", f"{show_line(usage.paused, 200)}: b raises it", "bold $text-warning")


def _limits(sampling: Sampling) -> Iterator[Fact]:
    request = sampling.request
    requested = sampling.asked.max_tokens
    more = f" (the server asked for {requested:,})" if requested != request.max_tokens else ""
    yield fact("max tokens", f"{request.max_tokens:,}{more}")
    yield fact("temperature", "the model's default" if request.temperature is None else f"{request.temperature:g}")
    if request.stop:
        yield fact("stop at", _quoted(request.stop))
    if request.metadata:
        yield fact("metadata", show_line(" ".join(json_lines(dict(request.metadata), LISTED)[0]), 300))


def _tools(sampling: Sampling) -> Iterator[Fact]:
    request = sampling.request
    if not request.tools:
        return
    yield fact("tools", _listed([show_name(tool.name, 60) for tool in request.tools[:LISTED]], len(request.tools)))
    meaning = {"auto": "may use them", "required": "must use one", "none": "must not use them"}
    may = meaning.get(request.tool_choice.mode, "may use them")
    yield fact("", f"the model {may}; {show_line(sampling.server, 40)} runs them")


def _context(sampling: Sampling) -> Iterator[Fact]:
    for number, note in enumerate(sampling.notes):
        yield fact("" if number else "differs", show_line(note, 300), "$text-warning")
    if sampling.context_added:
        yield fact("context", "the system prompt holds what this server sent before, nothing of other servers")
    elif sampling.context:
        yield fact(
            "context", f"c adds what this server sent before, {len(sampling.context):,} characters; nothing of others"
        )


def _preferences(sampling: Sampling) -> Iterator[Fact]:
    words = preference_words(sampling.asked.preferences)
    yield fact("preference", words or "none stated by the server")


def preference_words(preferences: ModelPreferences) -> str:
    """The server's preferences for a model."""
    weights = (("cheap", preferences.cost), ("fast", preferences.speed), ("intelligent", preferences.intelligence))
    parts = [f"{word} {weight:g}" for word, weight in weights if weight is not None]
    return " · ".join(([f"a model like {_quoted(preferences.hints)}"] if preferences.hints else []) + parts)


def _took(sampling: Sampling, seconds: float | None) -> Iterator[str]:
    usage, none = sampling.usage, "not reported"
    counts = [none if count is None else f"{count:,}" for count in (usage.input_tokens, usage.output_tokens)]
    yield f"tokens {none}" if counts == [none, none] else f"{counts[0]} tokens in, {counts[1]} out"
    yield "cost unknown" if sampling.cost is None else f"{money(sampling.cost)} by your prices"
    if seconds is not None:
        yield duration_text(seconds)
    if sampling.attempts > 1:
        yield f"asked {sampling.attempts} times"


def _ended(sampling: Sampling) -> str:
    if sampling.stopped:
        return "stopped by you"
    if sampling.error is not None:
        return "broke off" if sampling.blocks else "without an answer"
    meaning = {
        "endTurn": "at its end",
        "maxTokens": "at max tokens: it may be cut off",
        "stopSequence": "at a stop sequence",
        "contentFilter": "by a content filter: it may be cut off",
        "toolUse": "with tool calls",
    }
    return meaning.get(sampling.stop_reason or "", show_line(sampling.stop_reason or "not reported", 60))


def _quoted(texts: Sequence[str]) -> str:
    return _listed([show_name(each, 40) for each in texts[:LISTED]], len(texts))


def _listed(names: Sequence[str], count: int) -> str:
    shown = ", ".join(names)
    return shown if count <= len(names) else f"{shown} and {count - len(names)} more"
