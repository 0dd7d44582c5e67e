"""The tool calls of an agent: consent, answers in time, progress, cancellation, errors and tasks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcphost.host.agents import served
from mcphost.host.agents.connected import TOO_MANY
from mcphost.host.agents.declined import AbsentApprover, DeclinedCalls
from mcphost.host.consent.approvals import Gate
from mcphost.host.consent.questions import Answer
from mcphost.host.endpoint import calls
from mcphost.host.events import CallChanged
from mcphost.protocol.extensions import TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import NEWEST_HANDSHAKE, NEWEST_MODERN, Revision
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving import heartbeat
from mcphost.serving.agents import AgentLimits
from mcphost.serving.gate_answers import OVERDUE
from mcphost.serving.negotiation import RpcError
from mcphost.serving.served_request import ServedRequest
from tests.host.conftest import NO, YES, FileStore, ScriptedApprover, Waiting
from tests.host.endpoint.rig import ALL, ERAS, EndpointRig, ServerContent, rig, says, texts

pytestmark = pytest.mark.asyncio

ASK = {"default": "ask"}
WITH_TASKS = {**ALL, "extensions": {TASKS_EXTENSION: {}}}


async def decided(running: EndpointRig) -> None:
    """Wait until the only call is decided."""
    (call,) = running.host.tool_calls.calls.values()
    changed = asyncio.Event()
    stop = running.host.bus.observe(lambda event: changed.set(), CallChanged)
    async with asyncio.timeout(20):
        while not call.decided_by:
            changed.clear()
            await changed.wait()
    stop()


def held(request: ServedRequest) -> None:
    """A tool whose request the test answers."""


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Agents wait for 50 ms, until this is called."""
    limits = [AgentLimits(0.05, 0.05, 1)]
    monkeypatch.setattr(served, "limits_of", lambda agent: limits[-1])
    return lambda: limits.append(AgentLimits(60, 60, 60))


@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_a_result_passes_unchanged(era: str, revision: Revision) -> None:
    answer = {
        "content": [{"type": "text", "text": "lit"}],
        "structuredContent": {"lit": True},
        "isError": False,
        "_meta": {"rock.example/lamp": 1},
        "own": [1],
    }
    async with rig({"rock": ServerContent(lamp=lambda request: request.finish(answer))}, era=era) as running:
        agent = await running.agent(revision)
        result = await agent.call("lamp")
    expected = answer if not revision.modern else {**answer, "resultType": "complete", "_meta": result["_meta"]}
    assert result == expected
    assert result["_meta"]["rock.example/lamp"] == 1


@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_an_error_passes_with_its_data(era: str, revision: Revision) -> None:
    def failing(request: ServedRequest) -> None:
        raise RpcError(-31999, "The lamp is wet.", {"dry": False})

    async with rig({"rock": ServerContent(lamp=failing)}, era=era) as running:
        agent = await running.agent(revision)
        error = await agent.error("tools/call", {"name": "lamp", "arguments": {}})
    assert error == {"code": -31999, "message": "The lamp is wet.", "data": {"dry": False}}


@pytest.mark.server_requirement("STOOL-20", "STOOL-21")
async def test_an_unknown_tool_is_an_error() -> None:
    async with rig({"rock": ServerContent(lamp=says("lit"))}) as running:
        agent = await running.agent()
        error = await agent.error("tools/call", {"name": "bell"})
    assert error == {"code": ErrorCode.INVALID_PARAMS, "message": "Unknown tool: bell"}


@pytest.mark.server_requirement("STOOL-23")
@pytest.mark.parametrize("params", [{}, {"name": 1}, {"name": "lamp", "arguments": []}])
async def test_params_that_do_not_fit_are_an_error(params: dict[str, object]) -> None:
    async with rig({"rock": ServerContent(lamp=says("lit"))}) as running:
        agent = await running.agent()
        assert (await agent.error("tools/call", params))["code"] == ErrorCode.INVALID_PARAMS


async def test_arguments_that_do_not_fit_are_the_servers_to_refuse() -> None:
    content = ServerContent(lamp=says("What?", isError=True))
    content.definitions["lamp"]["inputSchema"] = {"type": "object", "required": ["level"]}
    async with rig({"rock": content}) as running:
        agent = await running.agent()
        assert texts(await agent.call("lamp")) == ["What?"]


@pytest.mark.server_requirement("STOOL-25")
async def test_a_refusal_is_a_result_with_words() -> None:
    approver = ScriptedApprover(NO)
    async with rig({"rock": ServerContent(lamp=says("lit"))}, policy=ASK, approver=approver) as running:
        agent = await running.agent()
        result = await agent.call("lamp")
        assert running.contents["rock"].all("tools/call") == []
    assert result["isError"] is True
    (words,) = texts(result)
    assert words.startswith("the user declined this call of lamp in mcphost: not today")


async def test_the_question_and_the_record_name_the_agent(tmp_path: Path) -> None:
    approver, audit = ScriptedApprover(YES), tmp_path / "audit.jsonl"
    content, files = ServerContent(lamp=says("lit")), {"audit_path": audit}
    async with rig({"rock": content}, policy=ASK, approver=approver, dependencies=files) as running:
        agent = await running.agent()
        await agent.call("lamp")
    (question,) = approver.questions
    assert (question.origin, question.agent and question.agent.claimed) == ("agent:claude-code", "rig-agent")
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(each["event"], each["agent"]) for each in records] == [
        ("decision", "claude-code"),
        ("outcome", "claude-code"),
    ]


async def test_a_rule_for_the_agent_decides() -> None:
    policy = {"default": "ask", "deny": ["codex>rock:*"]}
    async with rig({"rock": ServerContent(lamp=says("lit"))}, policy=policy) as running:
        codex, claude = await running.agent(given="codex"), await running.agent()
        assert (await codex.call("lamp"))["isError"] is True
        assert texts(await claude.call("lamp")) == ["lit"]


async def test_a_claim_decides_nothing() -> None:
    policy = {"default": "deny", "allow": ["rig-agent>rock:*"]}
    async with rig({"rock": ServerContent(lamp=says("lit"))}, policy=policy) as running:
        agent = await running.agent(given="")
        assert (await agent.call("lamp"))["isError"] is True


async def test_changed_arguments_are_named_in_the_result() -> None:
    approver = ScriptedApprover(Answer(allow=True, arguments={"level": 1}))
    content = ServerContent(lamp=says("lit"))
    async with rig({"rock": content}, policy=ASK, approver=approver) as running:
        agent = await running.agent()
        result = await agent.call("lamp", {"level": 9})
    assert texts(result) == ['(The user changed the arguments of this call: {"level": 1})', "lit"]
    assert content.all("tools/call")[0].params["arguments"] == {"level": 1}


@pytest.mark.server_requirement("SPROG-01", "SPROG-03", "SPROG-05")
@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_progress_comes_with_the_agents_token(era: str, revision: Revision) -> None:
    def slow(request: ServedRequest) -> None:
        for done in (1, 2, 2):
            request.progress({"progress": done, "total": 3, "message": "turning"})
        request.finish({"content": []})

    async with rig({"rock": ServerContent(lamp=slow)}, era=era) as running:
        agent = await running.agent(revision)
        await agent.call("lamp", progressToken="t")
        assert agent.notices("progress") == [
            {"progressToken": "t", "progress": done, "total": 3, "message": "turning"} for done in (1, 2)
        ]
        await agent.call("lamp")
        assert len(agent.notices("progress")) == 2


@pytest.mark.server_requirement("SCANC-02", "SCANC-04")
@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_is_cancelled_at_the_server(era: str, revision: Revision) -> None:
    gone, begun = asyncio.Event(), asyncio.Event()

    def waits(request: ServedRequest) -> None:
        request.on_cancel = gone.set
        begun.set()

    async with rig({"rock": ServerContent(lamp=waits)}, era=era) as running:
        agent = await running.agent(revision)
        key = agent.start("tools/call", {"name": "lamp", "arguments": {}})
        await begun.wait()
        agent.notify("notifications/cancelled", {"requestId": key})
        await asyncio.wait_for(gone.wait(), 10)
        await agent.result("tools/list")
        assert [each for each in agent.sent if each.get("id") == key] == []


async def test_a_cancelled_call_withdraws_its_question() -> None:
    waiting = Waiting()
    approver = ScriptedApprover(waiting)
    async with rig({"rock": ServerContent(lamp=says("lit"))}, policy=ASK, approver=approver) as running:
        agent = await running.agent()
        key = agent.start("tools/call", {"name": "lamp"})
        await waiting.asked.wait()
        agent.notify("notifications/cancelled", {"requestId": key})
        (call,) = running.host.tool_calls.calls.values()
        await call.ended()
        assert waiting.withdrawn
        assert running.contents["rock"].all("tools/call") == []


async def test_the_end_of_the_session_cancels_its_calls() -> None:
    waiting = Waiting()
    approver = ScriptedApprover(waiting)
    async with rig({"rock": ServerContent(lamp=says("lit"))}, policy=ASK, approver=approver) as running:
        agent = await running.agent()
        agent.start("tools/call", {"name": "lamp"})
        await waiting.asked.wait()
        agent.close()
        (call,) = running.host.tool_calls.calls.values()
        await call.ended()
        assert waiting.withdrawn
        assert running.host.endpoint.sessions == ()


async def test_a_late_yes_counts_for_the_repeat(hurried: Callable[[], None]) -> None:
    waiting = Waiting()
    approver = ScriptedApprover(waiting)
    content = ServerContent(lamp=says("lit"))
    async with rig({"rock": content}, policy=ASK, approver=approver) as running:
        agent = await running.agent()
        (words,) = texts(await agent.call("lamp", {"a": 1}))
        assert words == OVERDUE
        hurried()
        waiting.answer.set_result(YES)
        await decided(running)
        assert content.all("tools/call") == []
        assert texts(await agent.call("lamp", {"a": 1})) == ["lit"]
        assert len(approver.questions) == 1
        await agent.call("lamp", {"a": 1})
        assert len(approver.questions) == 2


async def test_a_repeat_joins_the_open_question(hurried: Callable[[], None]) -> None:
    waiting = Waiting()
    async with rig(
        {"rock": ServerContent(lamp=says("lit"))}, policy=ASK, approver=ScriptedApprover(waiting)
    ) as running:
        agent = await running.agent()
        await agent.call("lamp")
        hurried()
        key = agent.start("tools/call", {"name": "lamp", "arguments": {}})
        waiting.answer.set_result(YES)
        assert texts((await agent.answer(key))["result"]) == ["lit"]


async def test_cancelling_an_answered_call_leaves_its_question(hurried: Callable[[], None]) -> None:
    """As opencode does after each answer of a headless run."""
    waiting = Waiting()
    approver = ScriptedApprover(waiting)
    async with rig({"rock": ServerContent(lamp=says("lit"))}, policy=ASK, approver=approver) as running:
        agent = await running.agent()
        key = agent.start("tools/call", {"name": "lamp", "arguments": {}})
        await agent.answer(key)
        agent.notify("notifications/cancelled", {"requestId": key, "reason": "AbortError"})
        hurried()
        key = agent.start("tools/call", {"name": "lamp", "arguments": {}})
        waiting.answer.set_result(YES)
        assert texts((await agent.answer(key))["result"]) == ["lit"]
        assert len(approver.questions) == 1


@pytest.mark.usefixtures("hurried")
async def test_a_late_no_is_the_answer_to_the_repeat() -> None:
    waiting = Waiting()
    approver = ScriptedApprover(waiting)
    async with rig({"rock": ServerContent(lamp=says("lit"))}, policy=ASK, approver=approver) as running:
        agent = await running.agent()
        await agent.call("lamp")
        waiting.answer.set_result(NO)
        (call,) = running.host.tool_calls.calls.values()
        await call.ended()
        assert "the user declined" in texts(await agent.call("lamp"))[0]
        assert len(approver.questions) == 1


@pytest.mark.usefixtures("hurried")
async def test_other_arguments_do_not_join_the_question() -> None:
    waiting = Waiting()
    approver = ScriptedApprover(waiting)
    async with rig({"rock": ServerContent(lamp=says("lit"))}, policy=ASK, approver=approver) as running:
        agent = await running.agent()
        await agent.call("lamp", {"a": 1})
        await agent.call("lamp", {"a": 2})
        assert len(approver.questions) == 2


@pytest.mark.server_requirement("SPROG-03", "SPROG-04")
async def test_a_waiting_call_shows_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.01)
    waiting = Waiting()

    def reports(request: ServedRequest) -> None:
        request.progress({"progress": 1})
        request.finish({"content": []})

    async with rig({"rock": ServerContent(lamp=reports)}, policy=ASK, approver=ScriptedApprover(waiting)) as running:
        agent = await running.agent()
        key = agent.start("tools/call", {"name": "lamp"}, progressToken=7)
        await agent.until(lambda message: len(agent.notices("progress")) > 1)
        waiting.answer.set_result(YES)
        await agent.answer(key)
        values = [each["progress"] for each in agent.notices("progress")]
    assert values == sorted(set(values))
    assert values[-1] == 1
    assert values[-2] < 0.001


@pytest.mark.server_requirement("SXTASK-01", "SXTASK-02", "SXTASK-04")
@pytest.mark.usefixtures("hurried")
async def test_a_modern_agent_gets_a_task_instead_of_a_repeat() -> None:
    waiting = Waiting()
    async with rig(
        {"rock": ServerContent(lamp=says("lit"))}, policy=ASK, approver=ScriptedApprover(waiting)
    ) as running:
        agent = await running.agent(NEWEST_MODERN, WITH_TASKS)
        begun = await agent.call("lamp")
        assert begun["resultType"] == "task"
        waiting.answer.set_result(YES)
        (call,) = running.host.tool_calls.calls.values()
        await call.ended()
        task = await agent.result("tasks/get", {"taskId": begun["taskId"]})
    assert (task["status"], texts(task["result"])) == ("completed", ["lit"])


@pytest.mark.server_requirement("STASK-04", "STASK-05")
async def test_an_older_agent_runs_a_task_as_the_tool_says() -> None:
    content = ServerContent(lamp=says("lit"), horn=says("loud"))
    content.capabilities["tasks"] = {"requests": {"tools": {"call": {}}}}
    content.definitions["lamp"]["execution"] = {"taskSupport": "required"}
    async with rig({"rock": content}) as running:
        agent = await running.agent(NEWEST_HANDSHAKE)
        assert (await agent.error("tools/call", {"name": "lamp"}))["code"] == ErrorCode.METHOD_NOT_FOUND
        assert (await agent.error("tools/call", {"name": "horn", "task": {}}))["code"] == ErrorCode.METHOD_NOT_FOUND
        task = (await agent.result("tools/call", {"name": "lamp", "task": {}}))["task"]
        result = await agent.result("tasks/result", {"taskId": task["taskId"]})
    assert texts(result) == ["lit"]


async def test_only_known_metadata_reaches_the_server() -> None:
    content = ServerContent(lamp=says("lit"))
    content.definitions["lamp"]["_meta"] = {"rock.example/unit": "m", "claudecode/x": 1}
    async with rig({"rock": content}) as running:
        agent = await running.agent()
        own: dict[str, Any] = {"rock.example/level": 3, "claudecode/toolUseId": "t", "sessionId": "s"}
        await agent.call("lamp", traceparent="00-1", progressToken="p", **own)
    meta = content.all("tools/call")[0].params["_meta"]
    assert {name: value for name, value in meta.items() if name != "progressToken"} == {
        "traceparent": "00-1",
        "rock.example/level": 3,
    }
    assert meta["progressToken"] != "p"


async def test_a_server_that_ends_leaves_words() -> None:
    async with rig({"rock": ServerContent(lamp=held)}) as running:
        agent = await running.agent()
        key = agent.start("tools/call", {"name": "lamp"})
        await running.contents["rock"].until("tools/call")
        running.transports["rock"].lose()
        result = (await agent.answer(key))["result"]
    assert result["isError"] is True
    assert "the server has ended" in texts(result)[0]


async def test_a_muted_agent_is_declined_at_once() -> None:
    approver = ScriptedApprover()
    async with rig({"rock": ServerContent(lamp=says("lit"))}, policy=ASK, approver=approver) as running:
        agent = await running.agent()
        (session,) = running.host.agents.sessions
        running.host.agents.decline_all(session.number)
        assert (await agent.call("lamp"))["isError"] is True
        assert approver.questions == []


async def test_muting_declines_what_waits() -> None:
    waiting = Waiting()
    async with rig(
        {"rock": ServerContent(lamp=says("lit"))}, policy=ASK, approver=ScriptedApprover(waiting)
    ) as running:
        agent = await running.agent()
        key = agent.start("tools/call", {"name": "lamp"})
        await waiting.asked.wait()
        running.host.agents.decline_all(running.host.agents.sessions[0].number)
        assert "declines everything" in texts((await agent.answer(key))["result"])[0]


async def test_an_agent_cannot_have_any_number_of_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_WAITING", 2)
    waiting = [Waiting() for _ in range(3)]
    approver = ScriptedApprover(*waiting)
    async with rig({"rock": ServerContent(lamp=says("lit"))}, policy=ASK, approver=approver) as running:
        agent = await running.agent()
        keys = [agent.start("tools/call", {"name": "lamp", "arguments": {"a": number}}) for number in range(3)]
        assert texts((await agent.answer(keys[2]))["result"]) == [TOO_MANY]
        assert len(approver.questions) == 2


async def test_without_a_screen_a_refusal_names_the_command_that_allows(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    approver = AbsentApprover(DeclinedCalls(store), ("mcphost", "allow"), store.alarms.append)
    async with rig({"rock": ServerContent(lamp=says("lit"))}, policy=ASK, approver=approver) as running:
        agent = await running.agent()
        assert "allow this tool beforehand: mcphost allow rock:lamp" in texts(await agent.call("lamp"))[0]
    (declined,) = DeclinedCalls(store).all()
    assert (declined.server, declined.tool, declined.gate) == ("rock", "lamp", Gate(agent="claude-code"))


async def test_a_yes_that_is_too_old_runs_nothing(monkeypatch: pytest.MonkeyPatch, hurried: Callable[[], None]) -> None:
    monkeypatch.setattr(calls, "GRANT_SECONDS", 0)
    waiting, content = Waiting(), ServerContent(lamp=says("lit"))
    approver = ScriptedApprover(waiting)
    async with rig({"rock": content}, policy=ASK, approver=approver) as running:
        agent = await running.agent()
        await agent.call("lamp")
        hurried()
        waiting.answer.set_result(YES)
        (call,) = running.host.tool_calls.calls.values()
        await call.ended()
        assert content.all("tools/call") == []
        assert texts(await agent.call("lamp")) == ["lit"]
        assert len(approver.questions) == 2


async def test_an_agent_visits_the_pages_of_its_call_itself() -> None:
    def paywall(request: ServedRequest) -> None:
        raise RpcError(ErrorCode.URL_ELICITATION_REQUIRED, "Pay first.", {"elicitations": []})

    async with rig({"rock": ServerContent(lamp=paywall)}) as running:
        agent = await running.agent()
        error = await agent.error("tools/call", {"name": "lamp"})
    assert error == {"code": ErrorCode.URL_ELICITATION_REQUIRED, "message": "Pay first.", "data": {"elicitations": []}}


async def test_a_result_that_breaks_its_schema_passes_with_a_log_line() -> None:
    content = ServerContent(lamp=says("lit", structuredContent={"lit": "yes"}))
    schema = {"type": "object", "properties": {"lit": {"type": "boolean"}}}
    content.definitions["lamp"]["outputSchema"] = schema
    async with rig({"rock": content}) as running:
        agent = await running.agent()
        assert (await agent.call("lamp"))["structuredContent"] == {"lit": "yes"}
        assert any("does not fit its output schema: lit" in said for said in running.host.said("rock"))
