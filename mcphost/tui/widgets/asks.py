"""What a server may ask here, for its card: the folders it sees, what waits for an answer, and whether it is heard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mcphost.host.host import Host
from mcphost.host.roots import Folder, Told
from mcphost.tui.widgets.facts import Fact, fact
from mcphost.tui.widgets.seen_folders import asked_words, folder_words

SHOWN: Final = 6
"""Folders that the card lists; the picker lists all."""


@dataclass(frozen=True, slots=True)
class Asks:
    """Where a server stands with its questions."""

    muted: bool = False
    waiting: int = 0
    folders: tuple[Folder, ...] = ()
    told: Told | None = None


QUIET: Final = Asks()


def asks_of(host: Host, server: str) -> Asks:
    """As the host knows it now."""
    if server not in host.servers:
        return Asks()
    return Asks(host.muted(server), host.waiting_questions(server), host.roots(server), host.told_roots(server))


def asks_facts(server: str, asks: Asks, now: float) -> Iterator[Fact]:
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
    yield fact("asked for them", asked_words(asks.told, now))
