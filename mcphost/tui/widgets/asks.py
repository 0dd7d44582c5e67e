"""What a server may ask here, for its card: the folders it sees, what it used of models, and whether it is heard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mcphost.host.asked.roots import OfferedRoot, SentRoots
from mcphost.host.host import Host
from mcphost.host.policy import PolicyVerdict, SamplingPolicy, sampling_policy
from mcphost.protocol.display import show_line
from mcphost.tui.widgets.facts import Fact, fact
from mcphost.tui.widgets.seen_folders import asked_words, folder_words
from mcphost.tui.widgets.spending import spent_words

if TYPE_CHECKING:
    from mcphost.host.asked.budgets import SamplingUsage

SHOWN: Final = 6
"""Folders that the card lists; the picker lists all."""


@dataclass(frozen=True, slots=True)
class ServerQuestions:
    """Where a server stands with its questions."""

    muted: bool = False
    waiting: int = 0
    folders: tuple[OfferedRoot, ...] = ()
    told: SentRoots | None = None
    rule: SamplingPolicy | None = None
    """What holds for its requests for a model's answer; None: it was not told that it may ask."""
    spent: SamplingUsage | None = None


QUIET: Final = ServerQuestions()


def asks_of(host: Host, server: str) -> ServerQuestions:
    """As the host knows it now."""
    if server not in host.servers:
        return ServerQuestions()
    settings = host.config.servers.get(server)
    rule = sampling_policy(host.config, server) if settings and settings.capabilities.sampling else None
    waiting, spent = host.waiting_questions(server), host.spent(server)
    return ServerQuestions(host.muted(server), waiting, host.roots(server), host.told_roots(server), rule, spent)


def asks_facts(server: str, asks: ServerQuestions, now: float) -> Iterator[Fact]:
    """What the card says of it."""
    if asks.muted:
        yield fact("asks", "all of it is declined until mcphost exits: M listens again", "bold $text-warning")
    elif asks.waiting:
        yield fact("asks", f"{asks.waiting} waiting for you: f2 lists them, M declines all until exit", "$text-warning")
    else:
        yield fact("asks", "nothing now: M declines whatever comes, until mcphost exits")
    for number, folder in enumerate(asks.folders[:SHOWN]):
        yield Fact("" if number else "sees folders", folder_words(folder, server))
    if not asks.folders:
        yield fact("sees folders", "none: f chooses some")
    elif len(asks.folders) > SHOWN:
        yield fact("", f"and {len(asks.folders) - SHOWN} more: f lists all")
    yield fact("last asked", asked_words(asks.told, now))
    yield from _models(asks)


def _models(asks: ServerQuestions) -> Iterator[Fact]:
    if asks.rule is None or asks.spent is None:
        yield fact("models", "it may ask for none: its capabilities.sampling is off")
        return
    yield fact("models", f"{_VERDICTS[asks.rule.verdict, asks.rule.review]} · {show_line(asks.rule.rule, 80)}")
    yield fact("used of them", f"{spent_words(asks.spent)} (this run)")
    if asks.spent.paused:
        yield fact("▲ paused", f"{show_line(asks.spent.paused, 120)}: b lets it go on", "bold $text-warning")


_VERDICTS: Final[Mapping[tuple[PolicyVerdict, bool], str]] = {
    (PolicyVerdict.ASK, True): "you are asked before one is, and before its answer is sent",
    (PolicyVerdict.ASK, False): "you are asked before one is; its answer is sent at once",
    (PolicyVerdict.ALLOW, True): "one is asked at once; you see its answer before it is sent",
    (PolicyVerdict.ALLOW, False): "one is asked at once, and its answer sent: you see neither",
    (PolicyVerdict.DENY, True): "none is asked",
    (PolicyVerdict.DENY, False): "none is asked",
}
"""What becomes of a request for a model's answer."""
