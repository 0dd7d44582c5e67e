"""Agents and servers that try to get a call, an answer or a rule past a gate, one test for each way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcphost.cli.commands.gate import _note
from mcphost.composition.gate_decisions import LocalConsent
from mcphost.config import Config
from mcphost.config.gated import GatedProgram
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.gated_calls import GatedCalls, GatedServer
from mcphost.serving.gate import HELD_CALLS, GateOptions, ToServer
from mcphost.serving.ports import GateDecision
from tests.serving.gate_rig import ECHO, NO, YES, call, line, notification, opened, request, result, text_result

HIDDEN = "git\x1b]0;owned\x07_log\u202e\n\x9b2J"
GIT = GatedProgram(("git-server",), folder="/work")
RULES: Mapping[str, Any] = {
    "policy": {"allow": ["git:*", "claude-code>docs:*"]},
    "servers": {"git": {"command": "git-server"}},
}


@asynccontextmanager
async def without_screen(state: Path, config: Mapping[str, Any] = RULES) -> AsyncIterator[GatedCalls]:
    """The decisions of a gate without a screen, as its process makes them."""
    local = LocalConsent(
        lambda: (Config.model_validate(config), []), lambda: state, {}, ["mcphost", "allow"], str, pytest.fail
    )
    yield await local.calls()
    await local.aclose()


async def decided(calls: GatedCalls, server: GatedServer, agent: AgentFacts, **definition: Any) -> GateDecision:
    tool = {**ECHO, **definition}
    return await calls.decide(1, server, agent, tool["name"], tool, {})


def test_ids_that_collide_with_those_of_mcphost_do_no_harm() -> None:
    rig = opened(tools=None)
    rig.agent(call(1))
    (listing,) = rig.server_got
    own_id = listing["id"]
    rig.agent(call(own_id), request(own_id, "tools/list"))
    assert [each["error"]["code"] for each in rig.agent_got] == [-32600, -32600]
    rig.server(request(own_id, "elicitation/create"))  # a server's ids are its own
    rig.agent(result(own_id, action="decline"))
    assert rig.server_got[1:] == [result(own_id, action="decline")]
    rig.clear()
    rig.server(text_result(1), text_result(own_id))  # neither an answer to the call, nor a list
    assert rig.agent_got == []
    assert (rig.asked[0].request_id, rig.asked[0].definition) == (1, None)
    rig.decide(NO)
    assert [each["id"] for each in rig.agent_got] == [1]
    assert rig.to_server == []


def test_a_flood_of_calls_is_declined_and_not_kept() -> None:
    rig = opened()
    rig.agent(*(call(number) for number in range(1, 1001)))
    assert len(rig.asked) == HELD_CALLS
    assert len(rig.agent_got) == 1000 - HELD_CALLS
    assert all(each["result"]["isError"] for each in rig.agent_got)
    assert rig.to_server == []
    rig.close_agent()
    assert (rig.gate.waiting, rig.gate._open) == ([], {})


@pytest.mark.parametrize(
    "flood",
    [
        lambda number: text_result(number + 5),
        lambda number: text_result(f"x{number}"),
        lambda number: notification("notifications/progress", progressToken="mine", progress=number),
        lambda number: b"no message %d\n" % number,
    ],
    ids=["answers", "ids", "progress", "strays"],
)
def test_a_flood_of_a_servers_messages_reaches_no_one(flood: Callable[[int], Any]) -> None:
    rig = opened()
    rig.agent(call(1, meta={"progressToken": "mine"}))
    for number in range(500):
        rig.server(flood(number))
    assert (rig.to_agent, len(rig.notes) <= 1, len(rig.asked)) == ([], True, 1)
    rig.decide(YES)
    rig.server(text_result(1))
    assert rig.agent_got == [text_result(1)]


async def test_names_with_escapes_reach_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with without_screen(tmp_path) as calls:
        decision = await decided(calls, GatedServer(HIDDEN, GIT), AgentFacts(HIDDEN, claimed=HIDDEN), name=HIDDEN)
    assert not decision.allow
    _note(decision.words)
    (shown,) = capsys.readouterr().err.splitlines()
    assert shown.isprintable()
    (record,) = (tmp_path / "audit.jsonl").read_bytes().splitlines()
    assert record.decode("ascii").isprintable()
    rig = opened(tools=[{**ECHO, "name": HIDDEN}])
    rig.agent(call(1, HIDDEN))
    rig.decide(decision)
    assert rig.to_agent[0].isascii()
    assert rig.agent_got[0]["result"]["isError"]


def test_a_server_that_sends_the_heartbeats_token_is_not_heard() -> None:
    rig = opened(GateOptions(answer_within=30))
    rig.agent(call(1, meta={"progressToken": "t"}))
    beats = [notification("notifications/progress", progressToken="t", progress=value) for value in (0.9, 1e9, -1, "9")]
    rig.server(*beats)
    assert rig.to_agent == []
    rig.pass_time(10)
    (beat,) = rig.agent_got
    assert 0 < beat["params"]["progress"] < 0.001
    rig.server(*beats)
    rig.pass_time(20)
    assert [each.get("id") for each in rig.agent_got if "id" in each] == [1]  # answered in time all the same
    assert rig.to_server == []


async def test_an_agent_that_claims_to_be_another_gains_no_rule(tmp_path: Path) -> None:
    liar = AgentFacts("codex", given="").introduced("claude-code", "1")
    docs = GatedServer("docs", GIT)
    async with without_screen(tmp_path) as calls:
        assert not (await decided(calls, docs, liar)).allow
        assert not (await decided(calls, docs, AgentFacts("codex", given="codex").introduced("claude-code", "1"))).allow
        assert (await decided(calls, docs, AgentFacts("x", given="claude-code"))).allow
    records = [json.loads(each) for each in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [each["agent"] for each in records] == ["claude-code", "codex", "x"]  # a given name wins over a claim


@pytest.mark.parametrize(
    "program",
    [
        GatedProgram(("evil-server",), folder="/work"),
        GatedProgram(("git-server", "--hook", "evil"), folder="/work"),
        GatedProgram(("./git-server",), folder="/work"),
        GatedProgram(url="https://evil.example/git-server", folder="/work"),
    ],
)
async def test_another_command_under_a_trusted_name_gains_no_rule(program: GatedProgram, tmp_path: Path) -> None:
    agent = AgentFacts("claude-code", given="claude-code")
    async with without_screen(tmp_path) as calls:
        assert (await decided(calls, GatedServer("git", GIT), agent)).allow
        refused = await decided(calls, GatedServer("git", program), agent)
    assert not refused.allow
    assert "mcphost allow git:echo" in refused.words


def test_an_agent_cannot_answer_for_the_user() -> None:
    rig = opened()
    rig.agent(call(1))
    asked = rig.asked[0].number
    rig.agent(
        result(1, allow=True),
        request(2, "decision", call=asked, allow=True),
        notification("notifications/decision", call=asked, allow=True),
        line({"type": "decision", "call": asked, "allow": True}),
    )
    assert not any(b"tools/call" in each for each in rig.to_server)
    assert [each for each in rig.gate.agent_line(line(call(1)), rig.now) if isinstance(each, ToServer)] == []
