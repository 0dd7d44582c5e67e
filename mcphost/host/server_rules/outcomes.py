"""Parts of rules: what an answer should have been. A rule yields a clause for each thing that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mcphost.host.server_rules.sighting import ProbeExchange, Sighting, Unjudged
from mcphost.protocol.display import show_line

Rule = Callable[[Sighting], Iterable[str]]
"""Yields what breaks a row, as clauses; raises Unjudged where what it needs was not seen."""

SHOWN = 60
"""Characters of a name that a clause quotes."""


def quoted(value: object) -> str:
    """A foreign value in a clause."""
    return show_line(value if isinstance(value, str) and value else repr(value), SHOWN)


def with_code(*codes: int, probe: str) -> Rule:
    """The probe gets a JSON-RPC error with one of these codes."""
    return lambda seen: _unless(seen.exchange(probe), lambda exchange: exchange.code in codes)


def with_error(probe: str) -> Rule:
    """The probe gets a JSON-RPC error, or a refusal by HTTP."""
    return lambda seen: _unless(seen.exchange(probe), refused)


def with_result(probe: str) -> Rule:
    """The probe gets a result."""
    return lambda seen: _unless(seen.exchange(probe), lambda exchange: exchange.result is not None)


def with_status(*statuses: int, probe: str, code: int | None = None) -> Rule:
    """The probe gets one of these HTTP statuses, and this error code, if one is given."""

    def rule(seen: Sighting) -> Iterator[str]:
        exchange = seen.exchange(probe)
        outcome = exchange.outcome()
        if exchange.status not in statuses or (code is not None and exchange.code != code):
            yield f"{what(exchange)} got {_with_status(exchange, outcome)}"

    return rule


def refused(exchange: ProbeExchange) -> bool:
    return exchange.code is not None or exchange.status >= 400


def what(exchange: ProbeExchange) -> str:
    """The probe in words."""
    return f"{exchange.method or 'it'} ({exchange.probe})"


def _with_status(exchange: ProbeExchange, outcome: str) -> str:
    return outcome if not exchange.status or outcome.startswith("HTTP") else f"HTTP {exchange.status} with {outcome}"


def _unless(exchange: ProbeExchange, good: Callable[[ProbeExchange], bool]) -> Iterator[str]:
    outcome = exchange.outcome()
    if not good(exchange):
        yield f"{what(exchange)} got {outcome}"


def expect_life(seen: Sighting) -> None:
    """Raise Unjudged where the server leaves the request that shows its life unanswered in any case."""
    probe = "discover" if seen.revision.modern else "ping"
    if probe in seen.exchanges and seen.exchanges[probe].response is None:
        raise Unjudged(f"{probe} is not answered in any case")


def answered(seen: Sighting, probe: str) -> ProbeExchange:
    """The exchange, if it has an answer that says something. Raises Unjudged."""
    exchange = seen.exchange(probe)
    if exchange.result is None and exchange.code is None:
        raise Unjudged(f"the probe {probe} got {exchange.outcome()}")
    return exchange
