from __future__ import annotations

import time

import pytest

from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.session import AgentCallState, AgentSession
from mcphost.tui.agents.card import SHOWN_CALLS, card_facts
from mcphost.tui.agents.list import AgentRow, details_of
from mcphost.tui.kit.facts_table import FactsTable
from tests.tui.agents.sessions import call, claude, session


def card(*sessions: AgentSession) -> str:
    return FactsTable(card_facts(AgentRow(sessions), time.time())).text


def test_a_card_separates_claims_from_what_the_system_knows() -> None:
    text = card(session(1))
    claims, _, rest = text.partition("The system says")
    assert "claude-code 2.1.332" in claims
    system, _, configured = rest.partition("Its entry says")
    assert all(each in system for each in ("/usr/bin/claude", "4711", "/work/lighthouse"))
    assert "claude-code (--as): rules may name it" in configured


def test_a_card_shows_no_secret_of_the_command() -> None:
    text = card(session(1, command=("uvx", "mcp-server-git", "--token", "it's c4nary")))
    assert "--token" in text
    assert "c4nary" not in text


@pytest.mark.parametrize("agent", [claude(given=""), AgentFacts("an agent")])
def test_a_card_says_that_no_rule_can_name_the_agent(agent: AgentFacts) -> None:
    assert "no rule can name it" in card(session(1, agent=agent))


def test_a_card_lists_each_server_and_what_was_left_out() -> None:
    tap = session(2, "files", role="tap")
    tap.dropped = 1_200
    text = card(session(1), tap)
    assert all(each in text for each in ("git · gate", "files · tap", "1,200 copies left out"))


def test_a_card_shows_the_last_calls_with_their_waits() -> None:
    asked = session(1)
    now = time.monotonic()
    for number in range(1, 40):
        call(asked, number, state=AgentCallState.DONE)
    call(asked, 40, state=AgentCallState.DONE, by="user", decided_at=now + 8, sent_at=now + 8, answered_at=now + 10)
    calls = [line for line in card(asked).splitlines() if line.startswith("call ")]
    assert len(calls) == SHOWN_CALLS
    assert calls[0].endswith("git:git_push · done · you 8.0 s · server 2.0 s")


def test_a_card_obeys_no_text_of_the_agent() -> None:
    hostile = claude(claimed="\x1b]0;x\x07", version="‮", program="/tmp/\x1b[2J", folder="/tmp/\n\n")
    assert not {"\x1b", "‮"} & set(card(session(1, "\x1b[2J", hostile)))


def test_a_served_agent_shows_its_profile_and_the_servers_it_uses() -> None:
    served = AgentSession(1, "serve", "mcphost", claude(), servers=["git", "files"], profile="work", since=time.time())
    served.servers["git"] = "git@claude-code"
    call(served, 7).server = "git"
    text = card(served)
    assert all(each in text for each in ("mcphost · serve", "work", "git · git@claude-code, for this agent alone"))
    assert "git:git_push" in text
    assert next(line for line in details_of(AgentRow((served,))) if "asks" in line) == "asks: git:git_push"
