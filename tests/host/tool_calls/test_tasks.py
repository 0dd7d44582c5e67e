"""Tasks through a host: listed, stopped, collected, and taken up again in the next session."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import CapabilityMissing, ConnectionLost, ServerError
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.host.tool_calls.tasks import keeps_tasks
from tests.conftest import Until
from tests.host.conftest import HostOf, RecordingHost, asked, echo, script, statuses

pytestmark = pytest.mark.slow

ALLOW = {"default": "allow"}
LONG = {"polls": 100_000}


def errands(*args: object, **entry: Any) -> dict[str, Any]:
    return script("errands.py", *args, **entry)


async def begun(running: RecordingHost, until: Until, **arguments: Any) -> ToolCall:
    """A call that runs as a task."""
    call = running.tool_calls.call("a", "research", {**LONG, **arguments})
    await until(lambda: call.task)
    return call


@pytest.mark.requirement("TASK-06", "TASK-09")
@pytest.mark.parametrize("ends", ["crash", "restart"])
async def test_a_task_is_taken_up_again_in_the_next_session(
    host: HostOf, until: Until, tmp_path: Path, impatient: None, ends: str
) -> None:
    server = errands("--keep", tmp_path / "tasks", "--record", tmp_path / "wire")
    async with host(a=server, policy=ALLOW, dependencies={"audit_path": tmp_path / "audit"}) as running:
        call, doing = await begun(running, until), list[str]()
        running.bus.observe(lambda event: doing.append(call.doing))
        if ends == "crash":
            await running.run("a", "exit", {"code": 3})
        else:
            running.servers["a"].restart()
        await until(lambda: "working" in statuses(tmp_path / "audit")[1:])
        assert "running as a task, taken up again in the next session" in doing
        call.progress = None
        await until(lambda: call.progress)  # under the token of the session before
        await running.run("a", "finish")
        await running.end_of(call)
        assert (call.state, call.task and call.task.status) == (CallState.DONE, "completed")
        assert len([params for params in asked(tmp_path / "wire", "tools/call") if "task" in params]) == 1
        assert asked(tmp_path / "wire", "tasks/cancel") == []
    assert statuses(tmp_path / "audit") == ["working", "interrupted", "working", "completed"]


async def test_a_task_of_the_session_before_is_stopped_by_its_id(
    host: HostOf, until: Until, tmp_path: Path, impatient: None
) -> None:
    server = errands("--keep", tmp_path / "tasks", "--record", tmp_path / "wire")
    async with host(a=server, policy=ALLOW, dependencies={"audit_path": tmp_path / "audit"}) as running:
        call = await begun(running, until)
        await running.run("a", "exit", {"code": 3})
        await until(lambda: "working" in statuses(tmp_path / "audit")[1:])
        call.cancel()
        await until(lambda: asked(tmp_path / "wire", "tasks/cancel"))
    assert call.state is CallState.CANCELLED


async def test_a_task_its_server_has_forgotten_is_said_to_be_lost(host: HostOf, until: Until, impatient: None) -> None:
    async with host(a=errands(), policy=ALLOW) as running:
        call = await begun(running, until)
        await running.run("a", "exit", {"code": 3})
        await running.end_of(call)
    assert (call.state, type(call.error)) == (CallState.ERROR, ConnectionLost)
    assert "after that, the server no longer knew the task: no such task task-1" in str(call.error)


@pytest.mark.parametrize("way", ["stopped", "another command", "gone"])
async def test_a_task_is_not_looked_for_where_its_server_is_no_more(
    host: HostOf, until: Until, tmp_path: Path, way: str
) -> None:
    """A task's id is for the server that gave it, and for no other that runs under its name."""
    record = tmp_path / "wire"
    async with host(a=errands("--keep", tmp_path / "tasks"), policy=ALLOW) as running:
        call = await begun(running, until)
        if way == "stopped":
            running.servers["a"].stop()
        else:
            servers = {"a": errands("--record", record)} if way == "another command" else {"b": echo()}
            await running.apply(type(running.config).model_validate({"servers": servers}, strict=False))
        await running.end_of(call)
        await running.servers.ready()
    assert call.state is CallState.ERROR
    assert "tasks/get" not in (record.read_text() if record.exists() else "")


@pytest.mark.requirement("TASK-09", "CANC-09")
async def test_a_task_stopped_by_its_id_ends_the_call_that_waits_for_it(
    host: HostOf, until: Until, tmp_path: Path
) -> None:
    async with host(a=errands("--record", tmp_path / "wire"), policy=ALLOW) as running:
        call = await begun(running, until, interval=60_000)
        stood = await running.tasks.cancel("a", "task-1")
        await running.end_of(call)
        assert (stood.status, call.state, call.error) == ("cancelled", CallState.CANCELLED, None)
        assert asked(tmp_path / "wire", "tasks/cancel") == [{"taskId": "task-1"}]
        with pytest.raises(ServerError, match="no such task"):
            await running.tasks.cancel("a", "task-9")


async def test_tasks_are_listed_with_the_calls_that_began_them(host: HostOf, until: Until, tmp_path: Path) -> None:
    keep = tmp_path / "tasks"
    keep.write_text(json.dumps({"task-1": {"left": 0, "token": None, "status": "working"}}))
    async with host(a=errands("--keep", keep), b=echo(), policy=ALLOW) as running:
        await running.servers.ready()
        assert [keeps_tasks(running.servers[name]) for name in "ab"] == [True, False]
        call = await begun(running, until)
        told = (await running.tasks.listed("a")).items
        known = [(each.key, each.tool, each.call) for each in running.tasks.known("a", told)]
        assert known == [(("a", "task-1"), None, None), (("a", "task-2"), "research", call)]
        assert [each.call for each in running.tasks.known("a")] == [call]
        with pytest.raises(CapabilityMissing, match=r"the server does not offer tasks.list"):
            await running.tasks.listed("b")


@pytest.mark.parametrize("ended", [True, False])
async def test_an_earlier_runs_task_is_collected_without_a_question(
    host: HostOf, until: Until, tmp_path: Path, ended: bool
) -> None:
    """The task outlives whoever waits for it."""
    keep, audit, record = tmp_path / "tasks", tmp_path / "audit", tmp_path / "wire"
    left = 0 if ended else 100_000
    keep.write_text(json.dumps({"task-1": {"left": left, "token": None, "status": "working"}}))
    async with host(a=errands("--keep", keep, "--record", record), dependencies={"audit_path": audit}) as running:
        call = running.tasks.collect("a", "task-1")
        if not ended:
            await until(lambda: call.task)
            call.cancel()
        await running.end_of(call)
    assert running.approver.questions == []
    assert call.state is (CallState.DONE if ended else CallState.CANCELLED)
    assert call.request.tool == "task task-1"
    assert (asked(record, "tasks/cancel"), asked(record, "tools/call")) == ([], [])
    assert statuses(audit) == ["collect", "completed" if ended else "working"]


async def test_a_task_is_collected_under_its_tools_name(host: HostOf, until: Until) -> None:
    async with host(a=errands(), policy=ALLOW) as running:
        call = await running.run("a", "research", {"polls": 1})
        again = running.tasks.collect("a", "task-1")
        await running.end_of(again)
        assert (again.request.tool, again.arguments) == ("research", {"polls": 1})
        assert again.outcome is not None
        assert call.outcome is not None
        assert again.outcome.raw == call.outcome.raw
        missing = running.tasks.collect("a", "task-9")
        await running.end_of(missing)
        assert isinstance(missing.error, ServerError)
        assert [each.call for each in running.tasks.known("a")] == [call]


async def test_two_calls_with_tasks_of_one_name_end_each_by_itself(host: HostOf, until: Until, tmp_path: Path) -> None:
    async with host(a=errands(), policy=ALLOW) as running:
        call = await begun(running, until)
        other = running.tasks.collect("a", "task-1")
        await until(lambda: other.task)
        await running.run("a", "finish")
        await asyncio.gather(running.end_of(call), running.end_of(other))
    assert {call.state, other.state} == {CallState.DONE}
