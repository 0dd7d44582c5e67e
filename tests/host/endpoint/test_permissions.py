"""The tool `approve`: an agent asks whether it may run a tool of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcphost.host.agents.connected import DECLINING
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer
from mcphost.host.endpoint import permissions
from mcphost.host.endpoint.permissions import OVERDUE
from mcphost.serving import heartbeat
from tests.conftest import Until
from tests.host.conftest import NO, YES, ScriptedApprover, Waiting
from tests.host.endpoint.rig import Agent, ServerContent, rig, says, texts

ASK = {"default": "ask"}
LS = {"tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "toolu_1"}


async def approve(agent: Agent, arguments: Mapping[str, Any] = LS) -> Any:
    (text,) = texts(await agent.call("approve", arguments))
    return json.loads(text)


async def test_an_allowed_tool_runs_with_its_input() -> None:
    approver = ScriptedApprover(YES)
    async with rig({}, approver=approver, policy=ASK) as running:
        agent = await running.agent(approve=True)
        assert await approve(agent) == {"behavior": "allow", "updatedInput": {"command": "ls"}}
        (question,) = approver.questions
        assert (question.server, question.tool.name, question.own_tool) == ("agent", "Bash", True)
        assert question.arguments == {"command": "ls"}
        assert question.agent is not None
        assert question.agent.given == "claude-code"


async def test_a_declined_tool_gets_the_users_words() -> None:
    async with rig({}, approver=ScriptedApprover(Answer(False, reason="not today", by="user")), policy=ASK) as running:
        answer = await approve(await running.agent(approve=True))
        assert answer["behavior"] == "deny"
        assert "not today" in answer["message"]


async def test_an_edited_input_is_the_one_that_runs() -> None:
    edited = Answer(True, arguments={"command": "ls -l"}, by="user")
    async with rig({}, approver=ScriptedApprover(edited), policy=ASK) as running:
        answer = await approve(await running.agent(approve=True))
        assert answer == {"behavior": "allow", "updatedInput": {"command": "ls -l"}}


@pytest.mark.parametrize(
    ("policy", "behavior"),
    [
        ({"allow": ["agent:Bash"]}, "allow"),
        ({"allow": ["claude-code>agent:B*"]}, "allow"),
        ({"allow": ["codex>agent:Bash"]}, "deny"),
        ({"allow": ["agent:*"], "deny": ["agent:Bash"]}, "deny"),
    ],
)
async def test_rules_decide_on_the_tools_of_agents(policy: Mapping[str, Any], behavior: str) -> None:
    async with rig({}, approver=ScriptedApprover(NO), policy={"default": "ask", **policy}) as running:
        assert (await approve(await running.agent(approve=True)))["behavior"] == behavior


async def test_a_server_called_agent_has_its_own_rules() -> None:
    policy = {"default": "ask", "allow": ["agent:Bash"]}
    async with rig({"agent": ServerContent()}, approver=ScriptedApprover(NO), policy=policy) as running:
        assert (await approve(await running.agent(approve=True)))["behavior"] == "deny"


async def test_patterns_allow_later_calls_that_match() -> None:
    always = Answer(True, lifetime=Lifetime.SESSION, when={"command": "^ls"}, by="user")
    approver = ScriptedApprover(always, NO)
    async with rig({}, approver=approver, policy=ASK) as running:
        agent = await running.agent(approve=True)
        await approve(agent)
        assert (await approve(agent, {"tool_name": "Bash", "input": {"command": "ls /"}}))["behavior"] == "allow"
        assert len(approver.questions) == 1
        assert (await approve(agent, {"tool_name": "Bash", "input": {"command": "rm x"}}))["behavior"] == "deny"


async def test_the_decision_is_in_the_audit_log(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    files = {"audit_path": audit}
    async with rig({}, approver=ScriptedApprover(YES), policy=ASK, dependencies=files) as running:
        await approve(await running.agent(approve=True))
    (record,) = [json.loads(line) for line in audit.read_text().splitlines()]
    assert (record["event"], record["server"], record["tool"]) == ("decision", "agent", "Bash")
    assert record["arguments"] == {"command": "ls"}
    assert record["agent"] == "claude-code"


async def test_a_call_that_the_agent_cancels_is_withdrawn(until: Until) -> None:
    waiting = Waiting()
    async with rig({}, approver=ScriptedApprover(waiting), policy=ASK) as running:
        agent = await running.agent(approve=True)
        key = agent.start("tools/call", {"name": "approve", "arguments": LS})
        await waiting.asked.wait()
        agent.notify("notifications/cancelled", {"requestId": key})
        await until(lambda: waiting.withdrawn)


async def test_an_agent_that_is_muted_is_denied() -> None:
    approver = ScriptedApprover(YES)
    async with rig({}, approver=approver, policy=ASK) as running:
        agent = await running.agent(approve=True)
        (session,) = running.host.agents.sessions
        running.host.agents.decline_all(session.number)
        assert DECLINING in (await approve(agent))["message"]
        assert approver.questions == []


async def test_what_waits_is_denied_when_all_is_declined() -> None:
    waiting = Waiting()
    async with rig({}, approver=ScriptedApprover(waiting), policy=ASK) as running:
        agent = await running.agent(approve=True)
        key = agent.start("tools/call", {"name": "approve", "arguments": LS})
        await waiting.asked.wait()
        running.host.agents.decline_all(running.host.agents.sessions[0].number)
        (text,) = texts((await agent.answer(key))["result"])
        assert json.loads(text) == {"behavior": "deny", "message": DECLINING}


async def test_an_agent_is_answered_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.01)
    async with rig({}, approver=ScriptedApprover(Waiting()), policy=ASK, serve={"answer_within": 0.05}) as running:
        agent = await running.agent(approve=True)
        key = agent.start("tools/call", {"name": "approve", "arguments": LS}, progressToken=7)
        (text,) = texts((await agent.answer(key))["result"])
        assert json.loads(text) == {"behavior": "deny", "message": OVERDUE}
        assert {each["progressToken"] for each in agent.notices("progress")} == {7}


@pytest.mark.parametrize("arguments", [{}, {"tool_name": "", "input": {}}, {"tool_name": "a" * 201, "input": {}}])
async def test_what_is_no_question_is_refused(arguments: Mapping[str, Any]) -> None:
    async with rig({}) as running:
        agent = await running.agent(approve=True)
        assert (await agent.error("tools/call", {"name": "approve", "arguments": arguments}))["code"] == -32602


async def test_the_tool_is_there_only_if_it_is_wanted() -> None:
    async with rig({"s": ServerContent(approve=says("mine"))}) as running:
        plain, asking = await running.agent(), await running.agent(approve=True)
        assert texts(await plain.call("approve")) == ["mine"]
        names = [tool["name"] for tool in (await asking.result("tools/list"))["tools"]]
        assert names[0] == "approve"
        assert texts(await asking.call(names[1])) == ["mine"]
        assert permissions.DEFINITION["name"] == "approve"
