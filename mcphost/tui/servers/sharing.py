"""The use of a server by agents on its card: how many share it, and the processes that this saves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mcphost.protocol.display import size_text
from mcphost.tui.kit.facts_table import Fact, fact

if TYPE_CHECKING:
    from mcphost.host.connections.instances import SharingReport

_SHARES: Final = {
    "all": "all agents share one. O gives each session its own",
    "agent": "each agent has its own. O lets all share one",
    "session": "each session of an agent has its own. O lets all share one",
    None: "not known before the server has run once. O lets all share one",
}


def sharing_facts(report: SharingReport | None) -> Iterator[Fact]:
    """The agents that use a server; nothing while none came in this run."""
    if report is None:
        return
    yield fact("use", report.words if report.agents else "no agent uses it now")
    if saved := saved_words(report):
        yield fact("saves", saved)
    chosen = ", until mcphost exits" if report.by_user else ""
    yield fact("sharing", f"{_SHARES[report.share]}{chosen}")
    if report.share == "all" and report.by_user:
        yield fact("", "▲ an agent may see there what another did", "$text-warning")


def saved_words(report: SharingReport) -> str:
    """The processes that agents without mcphost would have started besides; empty if it saves none."""
    saved = report.agents - report.processes
    if not report.processes or saved <= 0:
        return ""
    memory = "" if report.memory is None else f", about {size_text(report.memory // report.processes * saved)}"
    return f"{saved} process{'' if saved == 1 else 'es'}{memory}"
