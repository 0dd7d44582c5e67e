"""Agents at the host: their calls, their servers' questions, and their end, with a scripted gate."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mcphost.config import Config
from mcphost.config.gated import GatedProgram
from mcphost.errors import UnknownName
from mcphost.host.agents.connected import DECLINING, MOST_WAITING, ConnectedAgent
from mcphost.host.agents.facts import CLAIM_BYTES, claim_in
from mcphost.host.agents.kernel_facts import ProcessFacts, agent_of, caller_of
from mcphost.host.agents.service import KEPT_SESSIONS, AgentService, Introduction
from mcphost.host.agents.session import AgentCallState, AgentSession
from mcphost.host.consent.questions import Answer, FormQuestion, ToolCallQuestion
from mcphost.host.dependencies import Dependencies
from mcphost.host.events import AgentsChanged
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.serving.ports import GateDecision
from tests.conftest import Until
from tests.host.agents.person import Person

PUSH = {"name": "push", "inputSchema": {"type": "object"}}


class Gate:
    """The port of a gate, with what the host sent to it."""

    def __init__(self) -> None:
        self.decisions: dict[int, GateDecision] = {}
        self.replies: dict[int, Mapping[str, Any]] = {}
        self.refusals: dict[int, str] = {}
        self.disconnected = False

    def decided(self, call: int, decision: GateDecision) -> None:
        assert call not in self.decisions
        self.decisions[call] = decision

    def replied(self, number: int, result: Mapping[str, Any]) -> None:
        self.replies[number] = result

    def refused(self, number: int, code: int, message: str) -> None:
        self.refusals[number] = message

    def disconnect(self) -> None:
        self.disconnected = True


class Stage(NamedTuple):
    host: Host
    person: Person
    gate: Gate
    agent: ConnectedAgent
    audit: Path

    @property
    def session(self) -> AgentSession:
        return self.agent.session

    def ask(self, number: int, **arguments: Any) -> None:
        self.agent.asked(number, f"id-{number}", "push", PUSH, arguments, 50.0)

    def states(self) -> list[str]:
        return [call.state.value for call in self.session.calls.values()]

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


async def connect(agents: AgentService, gate: Gate, name: str = "git", folder: str = "/w") -> ConnectedAgent:
    program = GatedProgram(("git-mcp",), folder=folder)
    return await agents.connect(
        Introduction("gate", name, "claude-code", program, 1.0, None, "here"), os.getpid(), gate
    )


@asynccontextmanager
async def staged(tmp_path: Path, config: Mapping[str, Any]) -> AsyncIterator[Stage]:
    async def no_transport(config: Config, name: str) -> Any:
        raise AssertionError

    person, gate, audit = Person(), Gate(), tmp_path / "audit.jsonl"
    parts = Dependencies(no_transport, person, "1", audit_path=audit, answers=SCREEN_KINDS)
    async with Host(Config.model_validate(config), parts) as host:
        agent = await connect(host.agents, gate)
        yield Stage(host, person, gate, agent, audit)
        agent.closed()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path, {}) as made:
        yield made


async def test_an_allowed_call_keeps_its_three_times(stage: Stage, until: Until) -> None:
    stage.ask(1, branch="main")
    await until(lambda: stage.person.open)
    question = stage.person.open[0][0]
    assert isinstance(question, ToolCallQuestion)
    assert (question.origin, question.server, question.arguments) == ("agent:claude-code", "git", {"branch": "main"})
    call = stage.host.agents.call(question.call)
    assert call is not None
    assert (call.until, stage.session.waiting) == (call.asked_at + 50.0, 1)
    stage.person.answer(Answer(True, arguments={"branch": "dev"}))
    await until(lambda: stage.gate.decisions)
    assert stage.gate.decisions[1] == GateDecision(True, {"branch": "dev"}, by="user")
    stage.agent.sent(1)
    stage.agent.finished(1, "done", 0.5)
    assert call.state is AgentCallState.DONE
    assert call.asked_at <= (call.decided_at or 0) <= (call.sent_at or 0) <= (call.answered_at or 0)


async def test_the_audit_log_names_the_agent(stage: Stage, until: Until) -> None:
    stage.ask(1)
    await until(lambda: stage.person.open)
    stage.person.answer(Answer(True))
    await until(lambda: stage.gate.decisions)
    stage.agent.sent(1)
    stage.agent.finished(1, "failed", 0.5)
    decision, outcome = stage.records()
    facts = caller_of(os.getpid())
    for record in (decision, outcome):
        assert record["agent"] == "claude-code"
        assert record["agent_pid"] == facts.pid == os.getppid()
        assert (record["agent_program"], record["agent_folder"]) == (facts.program, facts.folder)
    assert (decision["event"], decision["allowed"], decision["sent_to"]) == ("decision", True, "git-mcp (in /w)")
    assert (outcome["event"], outcome["outcome"], outcome["sent"]) == ("outcome", "failed", True)


async def test_several_calls_wait_at_once(stage: Stage, until: Until) -> None:
    for number in range(1, 4):
        stage.ask(number)
    await until(lambda: len(stage.person.open) == 3)
    stage.person.open[1][1].set_result(Answer(False, reason="not now"))
    await until(lambda: stage.gate.decisions)
    assert [*stage.gate.decisions] == [2]
    assert stage.states() == ["waiting", "declined", "waiting"]


async def test_a_withdrawn_call_closes_its_question(stage: Stage, until: Until) -> None:
    stage.ask(1)
    await until(lambda: stage.person.open)
    stage.agent.withdrawn(1)
    await until(lambda: not stage.person.open)
    assert (stage.states(), stage.gate.decisions) == (["withdrawn"], {})
    assert [(each["outcome"], each["sent"]) for each in stage.records()] == [("withdrawn", False)]


async def test_an_overdue_question_stays(stage: Stage, until: Until) -> None:
    stage.ask(1)
    await until(lambda: stage.person.open)
    stage.agent.overdue(1)
    stage.agent.doubted(1)
    assert (stage.states(), stage.session.waiting) == (["overdue"], 1)
    call = next(iter(stage.session.calls.values()))
    assert call.doubted
    stage.ask(1)  # again, which the agent was told to do
    assert ([call.state.value], call.doubted, len(stage.person.open)) == (["waiting"], False, 1)
    assert (call.until or 0) > call.asked_at + 50.0
    stage.agent.overdue(1)
    assert stage.states() == ["overdue"]
    stage.person.answer(Answer(True))
    await until(lambda: stage.gate.decisions)
    assert stage.gate.decisions[1].allow


async def test_declining_all_ends_open_questions_and_new_ones(stage: Stage, until: Until) -> None:
    stage.ask(1)
    stage.agent.requested(7, "elicitation/create", FORM)
    await until(lambda: len(stage.person.open) == 2)
    stage.host.agents.decline_all(stage.session.number)
    stage.ask(2)
    await until(lambda: len(stage.gate.decisions) == 2 and not stage.person.open)
    assert all(not each.allow and DECLINING in each.words for each in stage.gate.decisions.values())
    assert stage.gate.refusals == {7: DECLINING}
    assert [each["allowed"] for each in stage.records() if each["event"] == "decision"] == [False, False]
    stage.host.agents.decline_all(stage.session.number, on=False)
    stage.ask(3)
    await until(lambda: stage.person.open)


async def test_a_call_is_decided_once_although_all_is_declined(
    stage: Stage, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decided(call: int, decision: GateDecision) -> None:
        stage.gate.decisions[call] = decision
        stage.host.agents.decline_all(stage.session.number)

    monkeypatch.setattr(stage.gate, "decided", decided)
    stage.ask(1)
    await until(lambda: stage.person.open)
    stage.person.answer(Answer(True))
    await until(lambda: stage.gate.decisions)
    stage.ask(2)  # its decision is after all that went before
    await until(lambda: 2 in stage.gate.decisions)
    assert stage.states() == ["allowed", "declined"]
    assert [each["allowed"] for each in stage.records()] == [True, False]


async def test_the_end_of_a_session_withdraws_all(stage: Stage, until: Until) -> None:
    stage.ask(1)
    await until(lambda: stage.person.open)
    stage.agent.closed()
    await until(lambda: not stage.person.open)
    assert stage.states() == ["withdrawn"]
    assert (stage.host.agents.sessions, stage.host.agents.ended) == ((), (stage.session,))
    with pytest.raises(UnknownName):
        stage.host.agents.disconnect(stage.session.number)


async def test_a_call_that_its_gate_did_not_finish_is_lost(stage: Stage, until: Until) -> None:
    stage.ask(1)
    await until(lambda: stage.person.open)
    stage.person.answer(Answer(True))
    await until(lambda: stage.gate.decisions)
    stage.agent.sent(1)
    stage.agent.closed()
    assert stage.states() == ["lost"]


async def test_disconnecting_reaches_the_gate(stage: Stage) -> None:
    stage.host.agents.disconnect(stage.session.number)
    assert stage.gate.disconnected


async def test_the_number_of_waiting_calls_is_bounded(stage: Stage, until: Until) -> None:
    for number in range(MOST_WAITING + 1):
        stage.ask(number)
    await until(lambda: stage.gate.decisions)
    assert [*stage.gate.decisions] == [MOST_WAITING]


async def test_a_claim_changes_only_the_label_it_may(stage: Stage) -> None:
    stage.agent.named("codex", "1", "2025-06-18")
    agent = stage.session.agent
    assert (agent.label, agent.claimed, agent.given) == ("claude-code", "codex", "claude-code")


async def test_twenty_agents_come_and_go(stage: Stage) -> None:
    changes = list[AgentsChanged]()
    stage.host.bus.observe(changes.append, AgentsChanged)
    for _ in range(KEPT_SESSIONS // 20 + 1):
        agents = [await connect(stage.host.agents, Gate(), folder=f"/{each}") for each in range(20)]
        for each in agents:
            each.closed()
    assert len(stage.host.agents.sessions) == 1
    assert len(stage.host.agents.ended) == KEPT_SESSIONS
    assert changes


FORM = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


async def test_a_form_of_the_server_is_answered_here(stage: Stage, until: Until) -> None:
    stage.agent.requested(7, "elicitation/create", FORM)
    await until(lambda: stage.person.open)
    question = stage.person.open[0][0]
    assert isinstance(question, FormQuestion)
    assert question.origin == "git through claude-code"
    stage.person.answer(Answer(True, content={"name": "x"}))
    await until(lambda: stage.gate.replies)
    assert stage.gate.replies[7] == {"action": "accept", "content": {"name": "x"}}


async def test_a_form_names_the_call_that_it_is_for(stage: Stage, until: Until) -> None:
    stage.ask(1)
    await until(lambda: stage.person.open)
    stage.person.answer(Answer(True))
    await until(lambda: stage.gate.decisions)
    stage.agent.sent(1)
    stage.agent.requested(7, "elicitation/create", FORM, 1)
    await until(lambda: stage.person.open)
    question = stage.person.open[0][0]
    assert isinstance(question, FormQuestion)
    assert ([question.call], question.tool) == ([*stage.session.calls], "push")


async def test_a_muted_server_of_an_agent_asks_no_more(stage: Stage, until: Until) -> None:
    stage.agent.requested(7, "elicitation/create", FORM)
    await until(lambda: stage.person.open)
    stage.host.pending_requests.mute("git through claude-code")
    stage.agent.requested(8, "elicitation/create", FORM)
    await until(lambda: len(stage.gate.replies) == 2)
    assert [*stage.gate.replies.values()] == [{"action": "decline"}] * 2
    assert stage.host.pending_requests.muted_servers == ["git through claude-code"]
    stage.host.pending_requests.unmute("git through claude-code")
    stage.agent.requested(9, "elicitation/create", FORM)
    await until(lambda: stage.person.open)


async def test_a_question_that_is_gone_is_withdrawn(stage: Stage, until: Until) -> None:
    stage.agent.requested(7, "elicitation/create", FORM)
    await until(lambda: stage.person.open)
    stage.agent.request_gone(7)
    await until(lambda: not stage.person.open)
    assert (stage.gate.replies, stage.gate.refusals) == ({}, {})


@pytest.mark.parametrize(("command", "shared"), [("git-mcp", 1), ("another", 0)])
async def test_roots_are_those_of_the_entry_that_runs_the_same(
    command: str, shared: int, tmp_path: Path, until: Until
) -> None:
    entry = {"command": command, "roots": [str(tmp_path)], "enabled": True, "start": "manual"}
    async with staged(tmp_path, {"servers": {"git": entry}}) as stage:
        stage.agent.requested(7, "roots/list", {})
        await until(lambda: stage.gate.replies)
        assert len(stage.gate.replies[7]["roots"]) == shared


async def test_what_passes_is_kept_under_agent_and_server(stage: Stage) -> None:
    stage.agent.copied("agent", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', 1.0, to_server=False, dropped=3)
    messages = stage.host.traffic.since(0)
    assert {(each.server, each.agent) for each in messages} == {("claude-code>git", "claude-code")}
    assert (stage.session.messages, stage.session.dropped) == (1, 3)


INITIALIZE = b'{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":%s}}'
DISCOVER = b'{"id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/clientInfo":%s}}}'


@pytest.mark.parametrize("message", [INITIALIZE, DISCOVER], ids=["handshake", "modern"])
async def test_an_agent_behind_a_tap_is_known_by_its_messages(message: bytes, stage: Stage) -> None:
    program = GatedProgram(("git-mcp",), folder="/w")
    introduction = Introduction("tap", "git", "", program, 1.0, None, "agent")
    agent = await stage.host.agents.connect(introduction, os.getpid(), stage.gate)
    agent.copied("agent", message % b'{"name":"codex-mcp-client","version":"1"}', 1.0, to_server=True, dropped=0)
    agent.copied("agent", b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}', 1.0, to_server=True, dropped=0)
    agent.closed()
    assert agent.session.call_count == 1
    assert (agent.session.agent.label, agent.session.agent.version) == ("codex-mcp-client", "1")
    assert {each.place for each in stage.host.traffic.since(0)} == {"codex-mcp-client>git"}


@pytest.mark.parametrize("info", [b"7", b'{"name":7}', b"[" * 20_000, b'"' + b"x" * CLAIM_BYTES + b'"'])
def test_a_claim_of_another_shape_is_ignored(info: bytes) -> None:
    assert claim_in(INITIALIZE % info) is None


async def test_the_end_of_the_host_withdraws_what_agents_ask(tmp_path: Path, until: Until) -> None:
    async with staged(tmp_path, {}) as stage:
        stage.ask(1)
        form = {"type": "object", "properties": {"n": {"type": "string"}}}
        stage.agent.requested(1, "elicitation/create", {"message": "Name?", "requestedSchema": form})
        await until(lambda: len(stage.person.open) == 2)
        stage.host.agents.close()
        await until(lambda: not stage.person.open)
    assert (stage.states(), stage.gate.decisions) == (["withdrawn"], {})


def test_the_program_of_a_caller_names_it() -> None:
    agent = agent_of(ProcessFacts(7, "/usr/bin/node", "/w", "claude"), "")
    assert (agent.label, agent.program, agent.pid, agent.given) == ("claude", "/usr/bin/node", 7, "")
    assert agent_of(ProcessFacts(), "cc").label == "cc"


def test_a_process_that_is_gone_has_no_caller() -> None:
    assert caller_of(2**22 + 1).pid is None
