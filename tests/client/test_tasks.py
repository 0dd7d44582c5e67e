"""Tool calls that run as tasks (2025-11-25), against a scripted server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mcphost.client import tasks
from mcphost.client.client import RequestTimeouts
from mcphost.errors import InvalidResult, RequestTimeout, ServerError, TaskStopped
from mcphost.protocol.lifecycle.revisions import RELATED_TASK, V2025_06_18, V2025_11_25, Revision
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tasks import Task
from mcphost.protocol.models.tools import Tool
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.jsonrpc import ErrorObject, Notification, Request
from tests.client.conftest import Connect, Line, hello
from tests.client.handlers import ScriptedHandler
from tests.client.scripted import NEVER, Answer
from tests.conftest import Until

OFFERED: dict[str, Any] = {
    "tools": {},
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
}
DONE = {"content": [{"type": "text", "text": "done"}], "_meta": {RELATED_TASK: {"taskId": "t1"}}}
PATIENCE = RequestTimeouts(idle=1, hard=5)
Open = Callable[..., Awaitable[Line]]


def told(status: str, **more: Any) -> dict[str, Any]:
    return {
        "taskId": "t1",
        "status": status,
        "ttl": 1000,
        "createdAt": "2025-11-25T00:00:00Z",
        "pollInterval": 0,
        **more,
    }


BEGUN = {"task": told("working")}


@pytest.fixture(params=[V2025_11_25], ids=lambda revision: revision.version)
def revision(request: pytest.FixtureRequest) -> Revision:
    given: Revision = request.param
    return given


@pytest.fixture
def open_line(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> Open:
    """`await open_line(script, **client)`: a session with tasks; what is polled as fast as allowed is polled fast."""
    monkeypatch.setattr(tasks, "LEAST_POLL_SECONDS", 0.01)

    async def opened(script: dict[str, Answer], **more: Any) -> Line:
        greeting = hello(V2025_11_25, capabilities=OFFERED)
        return await connect({"initialize": greeting, "tasks/cancel": told("cancelled"), **script}, **more)

    return opened


def tool(support: str | None) -> Tool:
    return Tool.read({"name": "t"} | ({} if support is None else {"execution": {"taskSupport": support}}))


@pytest.mark.requirement("TASK-01", "TASK-02")
@pytest.mark.parametrize(
    ("revision", "offered", "suits"),
    [
        (V2025_11_25, OFFERED, {"required": (True, True), "optional": (False, True)}),
        (V2025_11_25, {"tools": {}, "tasks": {"list": {}}}, {}),
        (V2025_06_18, OFFERED, {}),
    ],
    indirect=["revision"],
)
async def test_a_tool_becomes_a_task_where_all_sides_allow_it(
    connect: Connect, revision: Revision, offered: dict[str, Any], suits: dict[str, tuple[bool, bool]]
) -> None:
    line = await connect({"initialize": hello(revision, capabilities=offered)})
    for support in ("required", "optional", "forbidden", None):
        found = tuple(line.client.tasks.applies_to(tool(support), preferred=preferred) for preferred in (False, True))
        assert found == suits.get(support or "", (False, False)), support


@pytest.mark.requirement("TASK-03", "TASK-05")
async def test_a_task_is_begun_polled_and_collected(open_line: Open) -> None:
    polls = [told("working", statusMessage="half"), told("completed")]
    line, heard = await open_line({"tools/call": BEGUN, "tasks/get": polls, "tasks/result": DONE}), list[Task]()
    result = await line.client.tasks.call_tool("t", {"a": 1}, timeouts=PATIENCE, on_task=heard.append)
    assert result.raw == DONE
    assert [task.words for task in heard] == ["working", "working: half", "completed"]
    call, *rest = (message for message in line.server.sent[2:] if isinstance(message, Request))
    assert call.params is not None
    assert (call.params["task"], call.params["arguments"]) == ({"ttl": 5000}, {"a": 1})
    assert [request.method for request in rest] == ["tasks/get", "tasks/get", "tasks/result"]
    assert {str(request.params) for request in rest} == {"{'taskId': 't1'}"}


@pytest.mark.requirement("TASK-03")
async def test_a_task_is_polled_at_the_pace_of_its_server(open_line: Open) -> None:
    times: list[float] = []

    def look(_: Request) -> dict[str, Any]:
        times.append(asyncio.get_running_loop().time())
        return told("completed" if len(times) == 3 else "working", pollInterval=80)

    line = await open_line(
        {"tools/call": {"task": told("working", pollInterval=80)}, "tasks/get": look, "tasks/result": DONE}
    )
    began = asyncio.get_running_loop().time()
    await line.client.tasks.call_tool("t", timeouts=PATIENCE)
    gaps = [after - before for before, after in zip([began, *times], times, strict=False)]
    assert all(0.079 < gap < 0.5 for gap in gaps), gaps


@pytest.mark.parametrize("interval", [0, -5, 1e300, None, "soon", "nan", "inf"])
def test_a_senseless_interval_is_one_that_works(interval: object) -> None:
    watch = tasks._PendingTask(lambda task: None)
    watch.update(Task.read(told("working", pollInterval=interval)))
    assert tasks.LEAST_POLL_SECONDS <= watch.pause <= tasks.MOST_POLL_SECONDS == 60


@pytest.mark.requirement("TASK-06")
async def test_progress_and_news_of_a_task_are_heard_to_its_end(open_line: Open, until: Until) -> None:
    line = await open_line({"tools/call": {"task": told("working", pollInterval=60_000)}, "tasks/result": DONE})
    heard, states = list[Progress](), list[str]()
    call = asyncio.create_task(
        line.client.tasks.call_tool(
            "t", timeouts=PATIENCE, on_progress=heard.append, on_task=lambda task: states.append(task.status)
        )
    )
    await until(lambda: states)
    given = line.server.requests("tools/call")[0].params
    assert given is not None
    token = given["_meta"]["progressToken"]
    line.server.says("notifications/progress", {"progressToken": token, "progress": 1})
    for news in (told("working"), told("completed", taskId="t2"), {"status": "completed"}, None, told("completed")):
        line.server.says("notifications/tasks/status", news)
    assert (await call).raw == DONE
    line.server.says("notifications/progress", {"progressToken": token, "progress": 2})
    line.server.says("notifications/tasks/status", told("failed"))
    assert heard == [Progress(1)]
    assert states == ["working", "working", "completed"]
    assert len(line.notes.all("task")) == 4
    assert line.server.requests("tasks/get") == []


@pytest.mark.requirement("TASK-04", "TASK-06")
async def test_a_task_that_wants_input_asks_on_the_stream_of_its_result(open_line: Open, until: Until) -> None:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    handler = ScriptedHandler(elicitation={"action": "decline"})
    line = await open_line(
        {"tools/call": BEGUN, "tasks/get": told("input_required"), "tasks/result": answer},
        capabilities={"elicitation": {}},
        handler=handler,
    )
    call = asyncio.create_task(line.client.tasks.call_tool("t", timeouts=PATIENCE))
    await until(lambda: line.server.requests("tasks/result"))
    related = {RELATED_TASK: {"taskId": "t1"}}
    line.server.asks(1, "elicitation/create", {"message": "which?", "_meta": related})
    await until(lambda: line.server.replies())
    assert line.server.replies()[0]["result"] == {"action": "decline", "_meta": related}
    answer.set_result(DONE)
    assert (await call).raw == DONE
    assert len(line.server.requests("tasks/get")) == 1


@pytest.mark.requirement("TASK-07")
async def test_a_task_requested_by_the_server_is_ignored(open_line: Open, until: Until) -> None:
    handler = ScriptedHandler(sampling={"role": "assistant"})
    line = await open_line({}, capabilities={"sampling": {}}, handler=handler)
    line.server.asks(1, "sampling/createMessage", {"task": {"ttl": 1}})
    await until(lambda: line.server.replies())
    assert line.server.replies()[0]["result"] == {"role": "assistant"}


@pytest.mark.requirement("TASK-08")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"])
async def test_the_client_offers_no_tasks_of_its_own(open_line: Open, until: Until, method: str) -> None:
    """The duties of a receiver of tasks are not ours: we declare none, and every question about one is refused."""
    handler = ScriptedHandler()
    line = await open_line({}, capabilities={"sampling": {}, "elicitation": {}}, handler=handler)
    declared = line.server.requests("initialize")[0].params
    assert declared is not None
    assert "tasks" not in declared["capabilities"]
    line.server.asks(1, method, {"taskId": "t1"})
    await until(lambda: line.server.replies())
    assert line.server.replies()[0]["error"]["code"] == ErrorCode.METHOD_NOT_FOUND
    assert handler.asked == []


@pytest.mark.parametrize("moment", ["begun", "polled", "collected"])
@pytest.mark.requirement("CANC-09")
async def test_an_abandoned_task_is_cancelled_by_its_id(open_line: Open, until: Until, moment: str) -> None:
    begun: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    script = {
        "begun": {"tools/call": begun},
        "polled": {"tools/call": {"task": told("working", pollInterval=60_000)}},
        "collected": {"tools/call": {"task": told("input_required")}, "tasks/result": NEVER},
    }[moment]
    line, states = await open_line(script), list[str]()
    call = asyncio.create_task(
        line.client.tasks.call_tool("t", timeouts=PATIENCE, on_task=lambda task: states.append(task.status))
    )
    await until(lambda: line.server.waiting if moment != "polled" else states)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    if moment == "begun":
        begun.set_result(BEGUN)
    await until(lambda: line.server.requests("tasks/cancel"))
    assert line.server.requests("tasks/cancel")[0].params == {"taskId": "t1"}
    (asked,) = line.server.requests("tools/call")
    told_off = [message for message in line.server.sent if isinstance(message, Notification)]
    assert asked.id not in [notice.params["requestId"] for notice in told_off if notice.params]


async def test_a_task_that_takes_too_long_is_cancelled_and_told_apart(open_line: Open, until: Until) -> None:
    line = await open_line({"tools/call": BEGUN, "tasks/get": told("working")})
    with pytest.raises(RequestTimeout, match="in all"):
        await line.client.tasks.call_tool("t", timeouts=RequestTimeouts(idle=1, hard=0.1))
    await until(lambda: line.server.requests("tasks/cancel"))


@pytest.mark.requirement("TASK-09")
@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        ({"tools/call": ErrorObject(-32602, "no such tool")}, ServerError, "no such tool"),
        ({"tools/call": {"task": {"status": "working"}}}, InvalidResult, "task.taskId"),
        ({"tasks/get": ErrorObject(-32602, "task expired")}, ServerError, "task expired"),
        ({"tasks/get": {"taskId": "t1"}}, InvalidResult, "status"),
        ({"tasks/get": told("cancelled", statusMessage="by the operator")}, TaskStopped, "by the operator"),
        ({"tasks/get": told("failed"), "tasks/result": ErrorObject(-32603, "it broke")}, ServerError, "it broke"),
        ({"tasks/get": told("failed"), "tasks/result": {"_meta": {}}}, InvalidResult, "failed without an error$"),
        ({"tasks/get": told("failed"), "tasks/result": DONE}, InvalidResult, "failed without an error: done$"),
        (
            {"tasks/get": told("failed", statusMessage="no quota"), "tasks/result": {"isError": False}},
            InvalidResult,
            "failed without an error: .*no quota$",
        ),
    ],
)
async def test_a_task_that_brings_nothing_says_why(
    open_line: Open, script: dict[str, Answer], error: type[Exception], words: str
) -> None:
    line = await open_line({"tools/call": BEGUN, **script})
    with pytest.raises(error, match=words):
        await line.client.tasks.call_tool("t", timeouts=PATIENCE)


async def test_a_failed_task_brings_what_its_tool_reports(open_line: Open) -> None:
    reported = {**DONE, "isError": True}
    line = await open_line({"tools/call": BEGUN, "tasks/get": told("failed"), "tasks/result": reported})
    assert (await line.client.tasks.call_tool("t", timeouts=PATIENCE)).raw == reported


async def test_a_server_that_answers_at_once_has_answered(open_line: Open) -> None:
    line = await open_line({"tools/call": DONE})
    assert (await line.client.tasks.call_tool("t", timeouts=PATIENCE)).raw == DONE


@pytest.mark.requirement("TASK-09", "PAGE-02")
async def test_the_tasks_of_a_server_are_listed_page_by_page(open_line: Open) -> None:
    pages = [{"tasks": [told("working")], "nextCursor": "?"}, {"tasks": [told("failed", taskId="t2"), {}]}]
    line = await open_line({"tasks/list": pages})
    listing = await line.client.tasks.list()
    assert [(task.task_id, task.status) for task in listing.items] == [("t1", "working"), ("t2", "failed")]
    assert len(listing.rejected) == 1
    assert [request.params for request in line.server.requests("tasks/list")] == [None, {"cursor": "?"}]
