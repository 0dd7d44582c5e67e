"""The earlier calls of a tool, and which of them a rule by argument would have allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from mcphost.errors import ConfigError
from mcphost.host.consent.argument_rules import fits
from mcphost.host.consent.questions import ToolCallQuestion
from mcphost.host.history.call_history import CallHistory
from mcphost.host.history.past_call import PastCall, PastCallQuery
from mcphost.lazy_dataclass import dataclass

EARLIER_CALLS: Final = 200
"""More say no more."""

EARLIER_CHARACTERS: Final = 200_000
"""Characters of the arguments of all of them: a rule is tried on them with each letter that is typed."""


@dataclass(frozen=True, slots=True)
class EarlierCalls:
    """The calls of one tool, newest first. ``reaches`` says in words which runs they are of."""

    calls: Sequence[PastCall] = ()
    reaches: str = "this run"


@dataclass(frozen=True, slots=True)
class RuleTrial:
    """An earlier call, and whether the rule would have allowed it."""

    call: PastCall
    allowed: bool


def tried(when: Mapping[str, str], earlier: EarlierCalls) -> list[RuleTrial]:
    """Try a rule on each earlier call."""
    return [RuleTrial(call, fits(when, call.arguments)) for call in earlier.calls]


async def earlier_calls(question: ToolCallQuestion, history: CallHistory) -> EarlierCalls:
    """The calls of the tool that is asked about, but for the one that is asked about."""
    server, tool = question.server, question.tool.name
    here = [call for call in history.of_this_run(server, tool) if call.number != question.call]
    if not history.kept:
        return EarlierCalls(tuple(_few(here)), "this run; no history is kept")
    identity = history.masked(question.identity)
    query = PastCallQuery(server, tool, identity, without_run=history.run, most=EARLIER_CALLS)
    try:
        earlier = await history.find(query)
    except ConfigError:
        return EarlierCalls(tuple(_few(here)), "this run; the history cannot be read")
    return EarlierCalls(tuple(_few([*here, *earlier])), "this run, earlier runs")


def _few(calls: Iterable[PastCall]) -> Iterator[PastCall]:
    """The newest, as many as can be tried at once."""
    left = EARLIER_CHARACTERS
    for _, call in zip(range(EARLIER_CALLS), calls, strict=False):
        left -= len(call.argument_text or "")
        if left < 0:
            return
        yield call
