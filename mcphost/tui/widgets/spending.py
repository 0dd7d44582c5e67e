"""What a server used of the user's language models, and what it may, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the main screen needs the words long before there is anything to count
    from mcphost.host.asked.budgets import SamplingUsage


def spent_words(spent: SamplingUsage) -> str:
    """What a server used in this run, and may."""
    tokens = _of(f"{spent.tokens:,}", None if spent.most_tokens is None else f"{spent.most_tokens:,}")
    told = [f"{spent.requests} request{'' if spent.requests == 1 else 's'}", f"{tokens} tokens"]
    if spent.cost or spent.most_cost is not None:
        told.append(f"{_of(money(spent.cost), None if spent.most_cost is None else money(spent.most_cost))} in money")
    return ", ".join(told) + ("" if has_budget(spent) else "; no budget is set")


def _of(used: str, most: str | None) -> str:
    return used if most is None else f"{used} of {most}"


def has_budget(spent: SamplingUsage) -> bool:
    """Is there one that can be raised?"""
    return spent.most_tokens is not None or spent.most_cost is not None


def money(amount: float) -> str:
    """A sum, in the currency of the configured prices."""
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.3g}"
