"""How much of the user's language models each server may use: requests a minute, tokens and money of this run.

Specification: client/sampling (rate limits).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from mcphost.config import Config, SamplingConfig
from mcphost.providers.base import Price, TokenUsage

WINDOW: Final = 60.0
"""Seconds in which requests are counted."""

CENTS: Final = 1e-9
"""Below this, sums of money are the same."""


@dataclass(frozen=True, slots=True)
class SamplingUsage:
    """What a server used in this run, and what it may. ``cost`` is in the currency of the configured prices."""

    requests: int = 0
    """Answers that a model was asked for."""
    tokens: int = 0
    cost: float = 0.0
    most_tokens: int | None = None
    """None: no limit."""
    most_cost: float | None = None
    paused: str = ""
    """Why it gets no more until the user raises its budget; empty while it does."""


class _Account:
    """The usage of one server."""

    def __init__(self) -> None:
        self.asked: deque[float] = deque()
        self.requests = 0
        self.tokens, self.cost = 0, 0.0
        self.held_tokens, self.held_cost = 0, 0.0
        """What the answers under way may still use."""
        self.more_tokens, self.more_cost = 0, 0.0
        """By how much the user raised it."""


class SamplingBudgets:
    """Usage and budgets by server; ``now`` is a monotonic clock in seconds."""

    def __init__(self, config: Callable[[], Config], now: Callable[[], float]) -> None:
        self._config, self._now = config, now
        self._accounts: dict[str, _Account] = {}

    def usage(self, server: str) -> SamplingUsage:
        """How a server stands."""
        account = self._of(server)
        tokens, cost = self._most(server)
        return SamplingUsage(account.requests, account.tokens, account.cost, tokens, cost, self.paused(server))

    def too_many(self, server: str) -> bool:
        """Count a request; is that more than the server may ask in a minute?"""
        now, asked = self._now(), self._of(server).asked
        while asked and now - asked[0] >= WINDOW:
            asked.popleft()
        if len(asked) >= self._settings(server).per_minute:
            return True
        asked.append(now)
        return False

    def paused(self, server: str) -> str:
        """Why this server gets nothing now; empty where it does."""
        account, (tokens, cost) = self._of(server), self._most(server)
        if tokens is not None and account.tokens >= tokens:
            return f"it used up its {tokens} tokens of this run"
        if cost is not None and account.cost >= cost - CENTS:
            return f"it used up its {cost:g} of this run"
        return ""

    def short(self, server: str, tokens: int, price: Price | None) -> str:
        """Why there is not enough left for a request of so many tokens; empty where there is."""
        account, (most_tokens, most_cost) = self._of(server), self._most(server)
        if most_tokens is not None and account.tokens + account.held_tokens + tokens >= most_tokens:
            return f"not enough is left of its {most_tokens} tokens of this run"
        if most_cost is None:
            return ""
        cost = None if price is None else price.of(TokenUsage(tokens, 0))
        if cost is None:
            return "what the model costs is not known, so its budget_cost cannot be kept: set input_price, output_price"
        full = account.cost + account.held_cost + cost > most_cost - CENTS and price != Price(0.0, 0.0)
        return f"not enough is left of its {most_cost:g} of this run" if full else ""

    def room(self, server: str, tokens: int, price: Price | None) -> int | None:
        """The most tokens of an answer to a request of so many tokens; None: any number."""
        account, (most_tokens, most_cost) = self._of(server), self._most(server)
        rooms = [] if most_tokens is None else [most_tokens - account.tokens - account.held_tokens - tokens]
        if most_cost is not None and price is not None and price.output > 0:
            left = most_cost - account.cost - account.held_cost - tokens * price.input / 1e6
            rooms.append(int(left * 1e6 / price.output))
        return max(1, min(rooms)) if rooms else None

    @contextmanager
    def using(self, server: str, most: TokenUsage, price: Price | None) -> Iterator[Callable[[TokenUsage], None]]:
        """Hold so much back while a model is asked; the function that is given says what it really used."""
        account = self._of(server)
        tokens, cost = _sum(most), (price.of(most) if price else None) or 0.0
        account.requests += 1
        account.held_tokens += tokens
        account.held_cost += cost

        def used(usage: TokenUsage) -> None:
            account.tokens += _sum(usage)
            account.cost += (price.of(usage) if price else None) or 0.0

        try:
            yield used
        finally:
            account.held_tokens -= tokens
            account.held_cost -= cost

    def raise_(self, server: str, tokens: int | None, cost: float | None) -> None:
        """Allow so much more; with neither, once more what the configuration allows."""
        account, settings = self._of(server), self._settings(server)
        if tokens is None and cost is None:
            tokens, cost = settings.budget_tokens, settings.budget_cost
        account.more_tokens += tokens or 0
        account.more_cost += cost or 0.0

    def _of(self, server: str) -> _Account:
        return self._accounts.setdefault(server, _Account())

    def _settings(self, server: str) -> SamplingConfig:
        found = self._config().servers.get(server)
        return SamplingConfig.model_construct() if found is None else found.sampling

    def _most(self, server: str) -> tuple[int | None, float | None]:
        account, settings = self._of(server), self._settings(server)
        tokens, cost = settings.budget_tokens, settings.budget_cost
        return (
            None if tokens is None else tokens + account.more_tokens,
            None if cost is None else cost + account.more_cost,
        )


def _sum(usage: TokenUsage) -> int:
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)
