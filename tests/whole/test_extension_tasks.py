"""The tasks extension of FastMCP's server, over stdio and HTTP, and of one that announces how its tasks stand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from mcphost.host.consent.questions import Answer
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.protocol.extensions import TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import has_extension
from tests.conftest import SERVERS, Until
from tests.host.conftest import RecordingHost
from tests.host.server_requests.pending import NEVER, Person
from tests.pypi import environment
from tests.whole.peers import PYTHON_SERVERS, fastmcp_runs, free_port, listening, meeting, running

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]  # a first run installs


def errands(transport: str, port: int) -> list[str]:
    return fastmcp_runs("fastmcp_errands.py", transport, port)


@pytest.fixture(scope="module", params=["stdio", "http"])
def entry(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    with running(errands, request.param, protocol="modern") as given:
        yield given


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def met(entry: dict[str, Any]) -> AsyncIterator[RecordingHost]:
    async with meeting(entry, Person(), answers=DIALOG_KINDS) as host:
        yield host


async def statuses(host: RecordingHost) -> dict[str, str]:
    return {task.task_id: task.status for task in (await host.tasks.listed("e")).items}


def text(call: ToolCall) -> str:
    assert call.outcome is not None, call.error
    said: str = call.outcome.raw["content"][0]["text"]
    return said


def polled(host: RecordingHost) -> bool:
    return any(frame.method == "tasks/get" and not frame.sent for frame in host.traffic.since(0))


@pytest.mark.requirement("XTASK-01", "XTASK-06", "XTASK-08")
async def test_calls_are_answered_at_once_or_by_a_task(met: RecordingHost) -> None:
    sum_, failed = await met.run("e", "add", {"a": 1, "b": 2}), await met.run("e", "fail")
    assert (text(sum_), sum_.task) == ("3", None)
    assert (failed.state, text(failed)) == (CallState.FAILED, "no luck")
    assert failed.task is not None
    assert failed.task.status == "completed"
    for frame in met.traffic.since(0):
        if frame.sent and frame.method in ("tools/call", "tasks/get"):
            declared = json.loads(frame.data)["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
            assert has_extension(TASKS_EXTENSION, declared)


@pytest.mark.requirement("XTASK-04", "XTASK-07")
@pytest.mark.parametrize(("answer", "said"), [(Answer(True, content={"city": "Rome"}), "to Rome"), (NEVER, "")])
async def test_what_a_task_needs_is_asked_for_once(met: RecordingHost, until: Until, answer: Any, said: str) -> None:
    person = met.approver
    assert isinstance(person, Person)
    person.asked.clear()
    person.steps.append(answer)
    call = met.tool_calls.call("e", "travel", {})
    if answer is NEVER:
        await until(lambda: person.asked)
        assert call.task is not None
        assert (await met.tasks.cancel("e", call.task.task_id)).status == "cancelled"
    await met.end_of(call)
    assert len(person.asked) == 1
    assert call.state is (CallState.CANCELLED if answer is NEVER else CallState.DONE)
    if said:
        assert text(call) == said


@pytest.mark.requirement("XTASK-05", "XTASK-09")
async def test_a_task_is_listed_collected_and_cancelled_by_its_id(met: RecordingHost, until: Until) -> None:
    call, stopped = (met.tool_calls.call("e", "research", {"topic": topic}) for topic in "xy")
    await until(lambda: call.task and stopped.task)
    assert call.task is not None
    assert stopped.task is not None
    ids = {call.task.task_id, stopped.task.task_id}
    while not ids <= (states := await statuses(met)).keys():
        pass  # they are remembered in the background
    assert {states[task_id] for task_id in ids} == {"working"}
    stopped.cancel()
    await met.end_of(stopped)
    while (await statuses(met))[stopped.task.task_id] != "cancelled":
        pass  # the wish is on its way
    collected = met.tasks.collect("e", call.task.task_id)
    await until(lambda: collected.task)
    await met.run("e", "finish")
    await met.end_of(call)
    await met.end_of(collected)
    assert (text(call), text(collected), stopped.state) == ("all about x", "all about x", CallState.CANCELLED)


@pytest.mark.requirement("XTASK-10", "SUB-08")
async def test_the_end_of_a_task_is_announced(until: Until) -> None:
    """Between two polls lies a minute; the one at the beginning of announcements could see the end before them."""
    port = free_port()
    program = environment("python-servers", PYTHON_SERVERS) / "python"
    with listening([str(program), "-W", "ignore", str(SERVERS / "django_errands.py"), str(port)], port):
        entry = {"url": f"http://127.0.0.1:{port}/mcp/", "protocol": "modern", "startup_timeout_sec": 40}
        async with meeting(entry) as host:
            call = host.tool_calls.call("e", "research", {})
            listener = host.servers["e"].client.listener
            assert listener is not None
            await until(lambda: listener.honoured.tasks and polled(host))
            await host.run("e", "finish")
            await host.end_of(call)
            assert "all of it" in text(call)
            announced = [frame for frame in host.traffic.since(0) if frame.method == "notifications/tasks"]
            assert [json.loads(frame.data)["params"]["status"] for frame in announced] == ["completed"]
            assert "at once" in text(await host.run("e", "hurry"))
