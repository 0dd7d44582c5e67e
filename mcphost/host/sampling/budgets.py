"""Limits each server's use of language models: requests per minute, and tokens and money per run.

Specification: client/sampling (rate limits).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from mcphost.config import Config, SamplingConfig, entry_of
from mcphost.lazy_dataclass import dataclass
from mcphost.providers.base import Price, TokenUsage

WINDOW: Final = 60.0
"""Seconds of the rate limit `SamplingConfig.per_minute`."""

CENTS: Final = 1e-9
"""Amounts of money that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class SamplingUsage:
    """A server's use of models in this run, and its limits. ``cost`` is in the currency of the configured prices."""

    requests: int = 0
    """Requests sent to a model."""
    tokens: int = 0
    cost: float = 0.0
    most_tokens: int | None = None
    """None: no limit."""
    most_cost: float | None = None
    paused: str = ""
    """Why it gets no more until the user raises its budget; empty: it does."""


class _Account:
    """The usage of one server."""

    def __init__(self) -> None:
        self.request_times: deque[float] = deque()
        self.requests = 0
        self.tokens, self.cost = 0, 0.0
        self.held_tokens, self.held_cost = 0, 0.0
        """Reserved for requests under way."""
        self.more_tokens, self.more_cost = 0, 0.0
        """Added by the user in this run."""


class SamplingBudgets:
    """Usage and budgets by server; ``now`` is a monotonic clock in seconds."""

    def __init__(self, config: Callable[[], Config], now: Callable[[], float]) -> None:
        self._config, self._now = config, now
        self._accounts: dict[str, _Account] = {}

    def usage(self, server: str) -> SamplingUsage:
        """The server's use so far, and its limits."""
        account = self._account_of(server)
        tokens, cost = self._most(server)
        return SamplingUsage(account.requests, account.tokens, account.cost, tokens, cost, self.exhausted(server))

    def exceeds_rate(self, server: str) -> bool:
        """Say whether another request now exceeds ``per_minute``; count the request if it does not."""
        now, times = self._now(), self._account_of(server).request_times
        while times and now - times[0] >= WINDOW:
            times.popleft()
        if len(times) >= self._settings(server).per_minute:
            return True
        times.append(now)
        return False

    def exhausted(self, server: str) -> str:
        """Why the server's budget is used up; empty if it is not."""
        account, (tokens, cost) = self._account_of(server), self._most(server)
        if tokens is not None and account.tokens >= tokens:
            return f"it used up its {tokens} tokens of this run"
        if cost is not None and account.cost >= cost - CENTS:
            return f"it used up its {cost:g} of this run"
        return ""

    def shortage(self, server: str, tokens: int, price: Price | None) -> str:
        """Why the rest of the budget is too small for a request of ``tokens`` tokens; empty if it is enough."""
        account, (most_tokens, most_cost) = self._account_of(server), self._most(server)
        if most_tokens is not None and account.tokens + account.held_tokens + tokens >= most_tokens:
            return f"not enough is left of its {most_tokens} tokens of this run"
        if most_cost is None:
            return ""
        cost = None if price is None else price.cost_of(TokenUsage(tokens, 0))
        if cost is None:
            return "what the model costs is not known, so its budget_cost cannot be kept: set input_price, output_price"
        over = account.cost + account.held_cost + cost > most_cost - CENTS and price != Price(0.0, 0.0)
        return f"not enough is left of its {most_cost:g} of this run" if over else ""

    def answer_tokens_left(self, server: str, tokens: int, price: Price | None) -> int | None:
        """Tokens left for the answer to a request of ``tokens`` tokens; None: no limit."""
        account, (most_tokens, most_cost) = self._account_of(server), self._most(server)
        limits = [] if most_tokens is None else [most_tokens - account.tokens - account.held_tokens - tokens]
        if most_cost is not None and price is not None and price.output > 0:
            left = most_cost - account.cost - account.held_cost - tokens * price.input / 1e6
            limits.append(int(left * 1e6 / price.output))
        return max(1, min(limits)) if limits else None

    @contextmanager
    def reserve(self, server: str, most: TokenUsage, price: Price | None) -> Iterator[Callable[[TokenUsage], None]]:
        """Reserve ``most`` while a model works; call the yielded function with what it really used."""
        account = self._account_of(server)
        tokens, cost = _sum(most), (price.cost_of(most) if price else None) or 0.0
        account.requests += 1
        account.held_tokens += tokens
        account.held_cost += cost

        def used(usage: TokenUsage) -> None:
            account.tokens += _sum(usage)
            account.cost += (price.cost_of(usage) if price else None) or 0.0

        try:
            yield used
        finally:
            account.held_tokens -= tokens
            account.held_cost -= cost

    def increase(self, server: str, tokens: int | None, cost: float | None) -> None:
        """Raise the budget by so much; with neither, by the configured budget."""
        account, settings = self._account_of(server), self._settings(server)
        if tokens is None and cost is None:
            tokens, cost = settings.budget_tokens, settings.budget_cost
        account.more_tokens += tokens or 0
        account.more_cost += cost or 0.0

    def _account_of(self, server: str) -> _Account:
        return self._accounts.setdefault(entry_of(server), _Account())

    def _settings(self, server: str) -> SamplingConfig:
        found = self._config().servers.get(entry_of(server))
        return SamplingConfig.model_construct() if found is None else found.sampling

    def _most(self, server: str) -> tuple[int | None, float | None]:
        account, settings = self._account_of(server), self._settings(server)
        tokens, cost = settings.budget_tokens, settings.budget_cost
        return (
            None if tokens is None else tokens + account.more_tokens,
            None if cost is None else cost + account.more_cost,
        )


def _sum(usage: TokenUsage) -> int:
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)
