from __future__ import annotations

import pytest

from mcphost.config import Sharing
from mcphost.host.connections.instances import SharingReport
from mcphost.tui.kit.facts_table import FactsTable
from mcphost.tui.servers.sharing import sharing_facts


def text(share: Sharing | None, by_user: bool, agents: int, processes: int, memory: int | None = None) -> str:
    return FactsTable(sharing_facts(SharingReport(share, by_user, agents, processes, memory))).text


def test_a_shared_server_says_how_many_use_it_and_what_that_saves() -> None:
    shown = text("all", False, 3, 1, 80_000_000)
    assert all(each in shown for each in ("3 agents, 1 process, 80 MB", "2 processes, about 160 MB", "O gives each"))
    assert "until mcphost exits" not in shown


def test_a_private_server_saves_nothing() -> None:
    shown = text("session", False, 3, 4, 310_000_000)
    assert "3 agents, 4 processes, 310 MB" in shown
    assert "saves" not in shown
    assert "O lets all share one" in shown


@pytest.mark.parametrize(("share", "warns"), [("all", True), ("session", False)])
def test_sharing_by_the_user_warns_of_what_agents_see(share: Sharing, warns: bool) -> None:
    assert ("an agent may see there" in text(share, True, 0, 0)) is warns


def test_a_card_says_nothing_of_agents_before_one_came() -> None:
    assert list(sharing_facts(None)) == []
