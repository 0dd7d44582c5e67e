"""Served agents as they are shown: their calls follow the tool calls, and their messages are in the traffic."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from mcphost.config import Config
from mcphost.errors import Declined
from mcphost.host.agents.connected import DECLINING, MOST_WAITING, TOO_MANY
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.served import ServedAgent
from mcphost.host.agents.service import as_json
from mcphost.host.agents.session import AgentCall, AgentCallState
from mcphost.host.dependencies import Dependencies
from mcphost.host.events import CallChanged, CallFinished
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import CallRequest, ToolCall
from mcphost.protocol.models.tools import CallToolResult
from tests.host.agents.person import Person


class Endpoint:
    """The endpoint of an agent, which records what the host wants of it."""

    def __init__(self) -> None:
        self.declined: dict[int, str] = {}
        self.disconnected = False

    def decline(self, call: int, words: str) -> None:
        self.declined[call] = words

    def disconnect(self) -> None:
        self.disconnected = True


class Stage(NamedTuple):
    host: Host
    endpoint: Endpoint
    agent: ServedAgent
    asked: set[int]

    def begin(self, request_id: int = 1, within: float | None = 50.0) -> tuple[ToolCall, AgentCall]:
        call = self.host._calls.add(CallRequest("git", "push", {}))
        return call, self.agent.began(call, request_id, within)

    def ask(self, call: ToolCall) -> None:
        """Let the user be asked about the call."""
        self.asked.add(call.number)
        self.host.bus.publish(CallChanged(call.number))

    def decide(self, call: ToolCall) -> None:
        self.asked.discard(call.number)
        call.decided("user")
        self.host.bus.publish(CallChanged(call.number))

    def run(self, call: ToolCall) -> None:
        call.sent({})
        self.host.bus.publish(CallChanged(call.number))

    def end(self, call: ToolCall) -> None:
        call.answered(CallToolResult.read({"content": []}), None)
        self.host.bus.publish(CallFinished(call.number))


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async def no_transport(config: Config, name: str) -> Any:
        raise AssertionError

    asked: set[int] = set()
    async with Host(Config.model_validate({}), Dependencies(no_transport, Person(), "1")) as host:
        monkeypatch.setattr(host.consent, "asks", asked.__contains__)
        endpoint = Endpoint()
        facts = AgentFacts("claude-code", pid=7, given="claude-code")
        agent = host.agents.add_served(facts, ["git", "files"], "work", endpoint)
        yield Stage(host, endpoint, agent, asked)
        agent.closed()


async def test_a_call_is_shown_in_the_state_of_its_tool_call(stage: Stage) -> None:
    call, shown = stage.begin()
    states = [shown.state.value]
    for step in (stage.ask, stage.decide, stage.run, stage.end):
        step(call)
        states.append(shown.state.value)
    assert states == ["begun", "waiting", "allowed", "sent", "done"]
    assert shown.by == "user"
    assert shown.put_at <= shown.decided_at <= shown.sent_at <= shown.answered_at  # type: ignore[operator]


async def test_a_call_that_no_person_saw_waited_for_none(stage: Stage) -> None:
    call, shown = stage.begin()
    call.decided("policy")
    stage.run(call)
    assert (shown.waited_for_you, shown.waited_for_server is not None) == (None, True)


async def test_a_declined_call_and_a_withdrawn_one_end(stage: Stage) -> None:
    (refused, first), (withdrawn, second) = stage.begin(1), stage.begin(2)
    refused.failed(Declined("no", by="user"))
    withdrawn.cancelled()
    for call in (refused, withdrawn):
        stage.host.bus.publish(CallFinished(call.number))
    assert [first.state, first.by, second.state] == [AgentCallState.DECLINED, "user", AgentCallState.WITHDRAWN]


async def test_an_overdue_call_waits_again_once_it_is_repeated(stage: Stage) -> None:
    call, shown = stage.begin()
    stage.ask(call)
    before = shown.until
    stage.agent.overdue(call.number)
    stage.host.bus.publish(CallChanged(call.number))
    assert shown.state.value == "overdue"
    stage.agent.repeated(call.number, 2, 50.0)
    assert shown.state.value == "waiting"
    assert before is not None
    assert (shown.until or 0) > before


async def test_declining_all_ends_what_waits_and_refuses_what_comes(stage: Stage) -> None:
    call, _ = stage.begin()
    stage.ask(call)
    running, _ = stage.begin(2)
    stage.run(running)
    stage.host.agents.decline_all(stage.agent.session.number)
    assert stage.endpoint.declined == {call.number: DECLINING}
    assert stage.agent.refusal == DECLINING
    stage.host.agents.decline_all(stage.agent.session.number, on=False)
    assert not stage.agent.refusal


async def test_more_waiting_calls_than_a_person_reads_are_refused(stage: Stage) -> None:
    for number in range(MOST_WAITING):
        stage.ask(stage.begin(number)[0])
    assert stage.agent.refusal == TOO_MANY


async def test_the_end_of_a_session_ends_its_calls(stage: Stage) -> None:
    running, shown = stage.begin()
    stage.run(running)
    stage.agent.closed()
    running._end(running.state)
    assert shown.state is AgentCallState.LOST
    assert (stage.host.agents.sessions, stage.host.agents.ended) == ((), (stage.agent.session,))


async def test_disconnecting_reaches_the_endpoint(stage: Stage) -> None:
    stage.host.agents.disconnect(stage.agent.session.number)
    assert stage.endpoint.disconnected


async def test_a_served_session_is_listed_with_the_servers_it_uses(stage: Stage) -> None:
    stage.agent.named("claude-code", "2", "2025-11-25")
    stage.agent.uses("git", "git@claude-code")
    listed = as_json(stage.agent.session)
    assert (listed["role"], listed["server"], listed["profile"]) == ("serve", "mcphost", "work")
    assert listed["servers"] == {"git": "git@claude-code", "files": "files"}
    assert listed["claimed"] == "claude-code 2"


async def test_messages_with_an_agent_name_the_call_and_its_three_times(stage: Stage) -> None:
    stage.agent.received(b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"push"}}')
    call, _ = stage.begin(5)
    stage.ask(call)
    stage.decide(call)
    stage.run(call)
    stage.end(call)
    stage.agent.sent(b'{"jsonrpc":"2.0","id":5,"result":{"content":[]}}')
    asked, answer = stage.host.traffic.since(0)
    assert (asked.place, asked.direction, answer.direction) == ("claude-code>mcphost", "out", "in")
    assert (asked.call, answer.call, asked.latency is not None) == (call.number, call.number, True)
    assert asked.waits is not None
    assert asked.waits.waited_for_you is not None
    assert asked.waits.waited_for_server is not None


async def test_the_private_metadata_of_an_agent_is_in_its_traffic(stage: Stage) -> None:
    stage.agent.received(b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"_meta":{"claudecode/toolUseId":"t1"}}}')
    assert "claudecode/toolUseId" in stage.host.traffic.raw(stage.host.traffic.since(0)[0])
