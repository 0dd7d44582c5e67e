"""Tasks of modern servers through a host: withheld, answered, and collected in a later run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import CapabilityWithheld, ServerError
from mcphost.host.consent.questions import Answer
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.host.tool_calls.started_tasks import KEPT, StartedTasks
from mcphost.host.tool_calls.tasks import keeps_tasks, tasks_withheld
from mcphost.protocol.extensions import SKILLS_EXTENSION, TASKS_EXTENSION
from tests.conftest import Until
from tests.host.conftest import FileStore, HostOf, RecordingHost, script, settings, statuses
from tests.host.server_requests.pending import NO, Person

ALLOW = {"default": "allow"}


@pytest.fixture
def server(tmp_path: Path) -> dict[str, Any]:
    return errands(tmp_path)


def errands(folder: Path, *options: object, **entry: Any) -> dict[str, Any]:
    kept = "--keep", folder / "tasks", "--record", folder / "wire"
    return script("modern_errands.py", *kept, *options, protocol="modern", **entry)


def sent(folder: Path, method: str) -> list[dict[str, Any]]:
    lines = (folder / "wire").read_text().splitlines()
    messages = [json.loads(line) for line in lines if line.startswith("{")]
    return [message["params"] for message in messages if message["method"] == method]


async def begun(running: RecordingHost, until: Until, tool: str = "research") -> ToolCall:
    call = running.tool_calls.call("a", tool, {})
    await until(lambda: call.task)
    return call


@pytest.mark.requirement("XTASK-01", "XTASK-08")
async def test_calls_end_as_their_tasks_do(host: HostOf, server: dict[str, Any], tmp_path: Path) -> None:
    async with host(a=server, policy=ALLOW, dependencies={"audit_path": tmp_path / "audit"}) as running:
        call = await running.run("a", "fail")
        assert (call.state, str(call.error)) == (CallState.ERROR, "no luck (-32603)")
        assert isinstance(call.error, ServerError)
        assert (await running.run("a", "echo")).task is None
    assert statuses(tmp_path / "audit") == ["working", "failed"]


@pytest.mark.requirement("XTASK-06", "EXT-05")
@pytest.mark.parametrize("extensions", [None, ()])
async def test_the_extension_is_declared_or_withheld_for_each_server(
    host: HostOf, tmp_path: Path, extensions: tuple[str, ...] | None
) -> None:
    (tmp_path / "b").mkdir()
    given = {} if extensions is None else {"capabilities": {"extensions": extensions}}
    async with host(a=errands(tmp_path, **given), b=errands(tmp_path / "b"), policy=ALLOW) as running:
        await running.servers.ready()
        assert [keeps_tasks(running.servers[name]) for name in "ab"] == [extensions is None, True]
        call = running.tool_calls.call("a", "research", {})
        if extensions is None:
            call.cancel()
        await running.end_of(call)
        if extensions is not None:
            assert call.outcome is not None
            assert call.outcome.raw["content"][0]["text"] == "research, without a task"
            assert [tasks_withheld(running.servers[name]) for name in "ab"] == [True, False]
            with pytest.raises(CapabilityWithheld, match=TASKS_EXTENSION):
                await running.tasks.listed("a")
            with pytest.raises(CapabilityWithheld, match=TASKS_EXTENSION):
                await running.tasks.cancel("a", "task-1")
            assert sent(tmp_path, "tasks/cancel") == []
    for folder, withheld in ((tmp_path, extensions is not None), (tmp_path / "b", False)):
        for params in sent(folder, "tools/list"):
            declared = params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
            assert ("extensions" in declared) is not withheld


@pytest.mark.requirement("EXT-04")
def test_tasks_and_skills_are_used_by_default() -> None:
    config = settings(a={"url": "https://a.example/mcp"}).servers["a"]
    assert config.capabilities.extensions == (TASKS_EXTENSION, SKILLS_EXTENSION)
    assert config.oauth.grant == "authorization_code"


@pytest.mark.requirement("XTASK-09")
async def test_a_task_outlives_the_host_and_is_collected_by_the_next(
    host: HostOf, until: Until, server: dict[str, Any], tmp_path: Path
) -> None:
    given = {"store": FileStore(tmp_path), "audit_path": tmp_path / "audit"}
    async with host(a=server, policy=ALLOW, dependencies=given) as running:
        left = await begun(running, until)
        await until(lambda: running.tasks.outlives(left))
    assert (left.state, sent(tmp_path, "tasks/cancel")) == (CallState.CANCELLED, [])
    assert statuses(tmp_path / "audit") == ["working", "left"]
    async with host(a=server, policy=ALLOW, dependencies=given) as running:
        (listed,) = (await running.tasks.listed("a")).items
        (kept,) = running.tasks.known("a", [listed])
        assert (kept.key, kept.tool, kept.call, listed.words) == (("a", "task-1"), "research", None, "working: reading")
        call = running.tasks.collect("a", "task-1")
        await until(lambda: call.task)
        await running.run("a", "finish")
        await running.end_of(call)
        assert (call.state, call.request.tool) == (CallState.DONE, "research")
        assert running.approver.questions == []
    assert len([params for params in sent(tmp_path, "tools/call") if params["name"] == "research"]) == 1


async def test_a_task_that_cannot_be_collected_later_ends_with_the_host(
    host: HostOf, until: Until, server: dict[str, Any], tmp_path: Path
) -> None:
    async with host(a=server, policy=ALLOW) as running:
        call = await begun(running, until)
        assert not running.tasks.outlives(call)
    assert [params["taskId"] for params in sent(tmp_path, "tasks/cancel")] == ["task-1"]


@pytest.mark.requirement("XTASK-05")
async def test_a_task_stopped_by_its_id_ends_the_call_that_waits_for_it(
    host: HostOf, until: Until, server: dict[str, Any], tmp_path: Path
) -> None:
    async with host(a=server, policy=ALLOW) as running:
        call = await begun(running, until)
        stood = await running.tasks.cancel("a", "task-1")
        await running.end_of(call)
    assert (stood.status, call.state, call.error) == ("cancelled", CallState.CANCELLED, None)
    assert len(sent(tmp_path, "tasks/cancel")) == 1
    assert sent(tmp_path, "notifications/cancelled") == []


async def test_a_task_its_server_no_longer_knows_is_forgotten(
    host: HostOf, until: Until, server: dict[str, Any], tmp_path: Path
) -> None:
    given = {"store": FileStore(tmp_path)}
    async with host(a=server, policy=ALLOW, dependencies=given) as running:
        await begun(running, until)
        await running.run("a", "finish")
        assert len((await running.tasks.listed("a")).items) == 1
    (tmp_path / "tasks").unlink()
    async with host(a=server, policy=ALLOW, dependencies=given) as running:
        assert (await running.tasks.listed("a")).items == []
        assert sent(tmp_path, "tasks/get")
    assert given["store"].read("tasks") == {"started": []}


async def test_a_status_that_cannot_be_read_is_left_out_with_the_reason(
    host: HostOf, until: Until, server: dict[str, Any], tmp_path: Path
) -> None:
    given = {"store": FileStore(tmp_path)}
    async with host(a=server, policy=ALLOW, dependencies=given) as running:
        await begun(running, until)
    (tmp_path / "tasks").write_text(json.dumps({"task-1": {"taskId": "task-1"}}))
    async with host(a=server, policy=ALLOW, dependencies=given) as running:
        listed = await running.tasks.listed("a")
        assert ([each.name for each in listed.rejected], listed.items) == (["task-1"], [])


@pytest.mark.requirement("XTASK-09")
async def test_a_task_that_never_ended_is_given_up_with_the_reason(host: HostOf, tmp_path: Path) -> None:
    async with host(a=errands(tmp_path, "--ttl", 100), policy=ALLOW) as running:
        call = await running.run("a", "research")
    assert (call.state, str(call.error)) == (
        CallState.ERROR,
        "the task did not end in the 0.1 s for which the server keeps it",
    )


@pytest.mark.requirement("XTASK-04")
@pytest.mark.parametrize(
    ("answer", "said"), [(Answer(True, content={"city": "Rome"}), "to Rome"), (NO, "to nowhere")], ids=["yes", "no"]
)
async def test_what_a_task_needs_is_asked_for_like_any_other_input(
    server: dict[str, Any], tmp_path: Path, answer: Answer, said: str
) -> None:
    person = Person(answer)
    async with RecordingHost(settings(policy=ALLOW, a=server), person, answers=DIALOG_KINDS) as running:
        call = await running.run("a", "travel")
        assert call.outcome is not None
        assert call.outcome.raw["content"][0]["text"] == said
    (question,) = person.asked
    assert (question.message, question.call) == ("Which city?", call.number)
    assert len(sent(tmp_path, "tasks/update")) == len(call.rounds) == 1


@pytest.mark.requirement("XTASK-09", "XTASK-04")
async def test_a_task_left_with_a_question_open_asks_it_in_the_next_run(
    until: Until, server: dict[str, Any], tmp_path: Path
) -> None:
    store, person, later = FileStore(tmp_path), Person(), Person(Answer(True, content={"city": "Oslo"}))
    config = settings(policy=ALLOW, a=server)
    async with RecordingHost(config, person, answers=DIALOG_KINDS, store=store) as running:
        call = running.tool_calls.call("a", "travel", {})
        await until(lambda: person.asked and running.tasks.outlives(call))
    assert (person.left, sent(tmp_path, "tasks/cancel")) == (1, [])
    async with RecordingHost(config, later, answers=DIALOG_KINDS, store=store) as running:
        (task,) = (await running.tasks.listed("a")).items
        call = running.tasks.collect("a", task.task_id)
        await running.end_of(call)
    assert call.outcome is not None
    assert call.outcome.raw["content"][0]["text"] == "to Oslo"
    assert len(later.asked) == 1


async def test_only_the_latest_tasks_are_remembered(tmp_path: Path) -> None:
    store, warnings = FileStore(tmp_path), list[str]()
    a, b = (settings(s={"command": name}).servers["s"] for name in "ab")
    tasks = StartedTasks(store, warnings.append)
    for number in range(KEPT + 5):
        await tasks.add(a, f"t{number}", "research")
    await tasks.add(b, "t0", "other")
    await tasks.add(b, "x" * 10_000, "other")
    again = StartedTasks(store, warnings.append)
    await again.load()
    for kept in (tasks, again):
        assert [each.id for each in kept.tasks_of(a)] == [f"t{number}" for number in range(5, KEPT + 5)]
        assert [(each.id, each.tool) for each in kept.tasks_of(b)] == [("t0", "other")]
    store.update("tasks", lambda data: {"started": [5, {"server": 1}, {"id": "x"}]})
    await again.load()
    assert (again.tasks_of(a), warnings) == ([], [])
