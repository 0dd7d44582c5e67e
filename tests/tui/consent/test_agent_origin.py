"""The words for agents in questions."""

from __future__ import annotations

import time

import pytest

from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.session import AgentCall, AgentCallState
from mcphost.tui.consent.origin import agent_facts, agent_title, is_limited, wait_words
from tests.tui.agents.sessions import claude

PUSH = "git:git_push"


def test_a_title_names_the_agent_its_process_and_the_tool() -> None:
    title = agent_title(claude(folder="/work"), PUSH, 100)
    assert title.plain == "claude-code (pid 4711 in /work) wants to run git:git_push"


def test_a_title_calls_a_claim_a_claim() -> None:
    title = agent_title(claude(given="", folder="/work"), PUSH, 100)
    assert title.plain == '"claude-code" (so it says, pid 4711 in /work) wants to run git:git_push'


@pytest.mark.parametrize(
    ("width", "title"),
    [(60, '"claude-code" (so it says, pid 4711) wants to run git:git_push'), (10, '"claude-code" (so it says)')],
)
def test_a_narrow_title_keeps_the_claim_and_the_tool(width: int, title: str) -> None:
    shown = agent_title(claude(given="", folder="/work"), PUSH, width + 2).plain
    assert shown.startswith(title)
    assert shown.endswith("wants to run git:git_push")


def test_a_name_cannot_imitate_the_words_around_it() -> None:
    hostile = 'codex (pid 1 in /home) wants to run git:git_log"'
    title = agent_title(claude(given="", claimed=hostile, label=hostile), PUSH, 200).plain
    assert title.startswith('"codex (pid 1 in /home) wants to run git')
    assert title.index("(so it says") > title.index("/home")


def test_an_entry_that_names_oddly_is_quoted_too() -> None:
    assert agent_title(claude(label="a (b)", given="a (b)", folder=""), PUSH, 99).plain.startswith('"a (b)" (pid 4711)')


def test_facts_say_who_names_the_agent() -> None:
    named, process = agent_facts(claude(folder="/work"))
    assert named.value.plain == "claude-code, by its entry (--as); it says that it is claude-code 2.1.332"
    assert process.value.plain == "/usr/bin/claude · pid 4711 · /work"
    silent, unknown = agent_facts(AgentFacts("an agent"))
    assert (silent.value.plain, unknown.value.plain) == ("it has not said what it is", "not known")


def waiting(**more: object) -> AgentCall:
    call = AgentCall(1, "git_push", 5, time.monotonic() - 10)
    for name, value in more.items():
        setattr(call, name, value)
    return call


@pytest.mark.parametrize(
    ("call", "words", "counts"),
    [
        (waiting(answer_within=51.5), "waits 42 s more", True),
        (waiting(answer_within=1500.0), "waits 24 min more", True),
        (waiting(answer_within=5.0), "waits 0 s more", True),
        (waiting(), "waits without a limit", False),
        (waiting(answer_within=60.0, doubted=True), "may have given up", False),
        (waiting(answer_within=5.0, state=AgentCallState.OVERDUE), "was asked to call again", False),
    ],
)
def test_the_wait_of_an_agent_in_words(
    call: AgentCall, words: str, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: call.asked_at + 10)
    assert (wait_words(call), is_limited(call)) == (words, counts)
