"""Tool calls that a modern server answers with a task: polled, given what they need, cancelled, and given up."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from mcphost.client import tasks
from mcphost.client.client import RequestTimeouts
from mcphost.client.requester import ClientLimits
from mcphost.client.rounds import InputRound, RoundCallback, RoundLimits
from mcphost.client.server_requests import InputRequest
from mcphost.client.tasks import GivenInputs
from mcphost.errors import InputNotGiven, InvalidResult, RequestTimeout, ServerError, TaskExpired, TaskStopped
from mcphost.protocol.extensions import TASKS_EXTENSION
from mcphost.protocol.lifecycle.capabilities import ClientCapabilities
from mcphost.protocol.lifecycle.revisions import REVISIONS, V2026_07_28, Revision, has_extension
from mcphost.protocol.lifecycle.session import ClientMetadata, ModernRules
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tasks import ExtensionTask
from mcphost.protocol.models.tools import Tool
from mcphost.protocol.wire.jsonrpc import ErrorObject, Request
from tests.client.conftest import Draw, Line
from tests.client.handlers import DONE, Answers, needs
from tests.client.scripted import NEVER, Answer
from tests.conftest import Until

EXTENSIONS: dict[str, Any] = {"extensions": {TASKS_EXTENSION: {}}}
DECLARED: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {}, **EXTENSIONS}
PATIENCE = RequestTimeouts(idle=1, hard=5)
FOR_EVER = 3_600_000


def kept(rounds: list[InputRound]) -> RoundCallback:
    """Keeps each round in ``rounds``."""

    async def keep(current: InputRound) -> None:
        rounds.append(current)

    return keep


def discovered(*extensions: str) -> dict[str, Any]:
    capabilities: dict[str, Any] = {"tools": {}, "extensions": {each: {} for each in extensions}}
    return {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities}


def told(status: str, **more: Any) -> dict[str, Any]:
    """A status, as ``tasks/get`` answers."""
    times = {"createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": None}
    return {"resultType": "complete", "taskId": "t1", "status": status, "pollIntervalMs": 0, **times, **more}


def asks(*keys: str, method: str = "elicitation/create", **more: Any) -> dict[str, Any]:
    """A status that needs these inputs."""
    inputs = {key: {"method": method, "params": {"for": key}} for key in keys}
    return told("input_required", inputRequests=inputs, **more)


BEGUN = told("working", resultType="task")
COMPLETED = told("completed", result=DONE)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll without a noticeable pause."""
    monkeypatch.setattr(tasks, "LEAST_POLL_SECONDS", 0.01)


async def modern(draw: Draw, script: dict[str, Answer], **more: Any) -> Line:
    """A line to a modern server of the extension, which begins a task for each call."""
    line = unconnected(draw, script, **more)
    await line.client.connect(5)
    return line


def unconnected(draw: Draw, script: dict[str, Answer], *, handler: Answers | None = None, **more: Any) -> Line:
    given = {"tools/call": BEGUN, "tasks/get": COMPLETED, "tasks/cancel": {}, "tasks/update": {}, **script}
    given = {"server/discover": discovered(TASKS_EXTENSION), "subscriptions/listen": NEVER, **given}
    return draw(given, **{"era": "auto", "capabilities": DECLARED, "handler": handler or Answers(), **more})


def updates(line: Line) -> list[dict[str, Any]]:
    """The answers that were sent to tasks."""
    return [(request.params or {})["inputResponses"] for request in line.server.requests("tasks/update")]


def acknowledges(line: Line, **honoured: Any) -> Callable[[Request], object]:
    """The behaviour of a server that honours this part of each subscription."""

    def answer(request: Request) -> object:
        line.server.says(
            "notifications/subscriptions/acknowledged", {**subscription(request), "notifications": honoured}
        )
        return NEVER

    return answer


def subscription(listen: Request) -> dict[str, Any]:
    return {"_meta": {"io.modelcontextprotocol/subscriptionId": listen.id}}


@pytest.mark.requirement("XTASK-01", "XTASK-03", "XTASK-06", "XTASK-08")
async def test_the_server_decides_whether_a_call_becomes_a_task(draw: Draw) -> None:
    line = await modern(draw, {"tools/call": [DONE, BEGUN], "tasks/get": [told("working"), COMPLETED]})
    seen = list[str]()
    for _ in range(2):
        result = await line.client.tasks.call_tool("t", {"a": 1}, on_task=lambda task: seen.append(task.status))
        assert result.raw == DONE
    assert seen == ["working", "working", "completed"]
    for request in line.server.requests("tools/call"):
        assert {key: value for key, value in (request.params or {}).items() if key != "_meta"} == {
            "name": "t", "arguments": {"a": 1},
        }  # fmt: skip
    for message in line.server.sent:
        assert isinstance(message, Request)
        meta = (message.params or {})["_meta"]
        assert has_extension(TASKS_EXTENSION, meta["io.modelcontextprotocol/clientCapabilities"]), message.method


@pytest.mark.requirement("XTASK-01", "EXT-02")
@pytest.mark.parametrize(
    ("offered", "declared"), [((), DECLARED), ((TASKS_EXTENSION,), {"roots": {}})], ids=["by the server", "by mcphost"]
)
async def test_calls_are_plain_unless_both_sides_declare_the_extension(
    draw: Draw, offered: tuple[str, ...], declared: dict[str, Any]
) -> None:
    script: dict[str, Answer] = {"server/discover": discovered(*offered), "tools/call": [DONE, BEGUN]}
    line = await modern(draw, script, capabilities=declared)
    assert not line.client.tasks.applies_to(Tool.read({"name": "t", "execution": {"taskSupport": "required"}}))
    assert (await line.client.call_tool("t")).raw == DONE
    with pytest.raises(InvalidResult, match="task"):
        await line.client.call_tool("t")


@pytest.mark.requirement("XTASK-02")
@pytest.mark.parametrize("method", ["prompts/get", "resources/read", "tools/list"])
async def test_a_task_for_anything_but_a_tool_call_is_invalid(draw: Draw, method: str) -> None:
    offered = discovered(TASKS_EXTENSION)
    offered["capabilities"] |= {"prompts": {}, "resources": {}}
    line = await modern(draw, {"server/discover": offered, method: BEGUN})
    with pytest.raises(InvalidResult, match="'task'"):
        await line.client.request(method, {"name": "p", "uri": "a:b"})


async def test_a_status_may_say_that_it_is_a_task(draw: Draw) -> None:
    """As some examples of the extension have it."""
    line = await modern(draw, {"tasks/get": {**COMPLETED, "resultType": "task"}})
    assert (await line.client.tasks.call_tool("t")).raw == DONE


@pytest.mark.requirement("XTASK-03")
async def test_each_status_says_when_the_next_poll_is_due(draw: Draw) -> None:
    times: list[float] = []

    def look(_: Request) -> dict[str, Any]:
        times.append(asyncio.get_running_loop().time())
        return COMPLETED if len(times) == 3 else told("working", pollIntervalMs=(250, 60)[len(times) - 1])

    line = await modern(draw, {"tools/call": {**BEGUN, "pollIntervalMs": 120}, "tasks/get": look})
    began = asyncio.get_running_loop().time()
    await line.client.tasks.call_tool("t", timeouts=PATIENCE)
    gaps = [after - before for before, after in zip([began, *times], times, strict=False)]
    for gap, wanted in zip(gaps, (0.12, 0.25, 0.06), strict=True):
        assert gap >= wanted - 0.005, gaps


@pytest.mark.requirement("XTASK-08")
async def test_a_tool_that_reports_a_failure_has_completed_its_task(draw: Draw) -> None:
    failure = {"content": [{"type": "text", "text": "no luck"}], "isError": True}
    line = await modern(draw, {"tasks/get": told("completed", result=failure)})
    result = await line.client.tasks.call_tool("t")
    assert (result.is_error, result.raw) == (True, failure)


@pytest.mark.requirement("XTASK-08")
@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (told("failed", error={"code": -32603, "message": "it broke", "data": 1}), ServerError, r"it broke \(-32603\)"),
        (told("failed", statusMessage="worn out"), InvalidResult, "without an error: worn out"),
        (told("failed", error={"code": "x", "message": 5}), InvalidResult, "without an error"),
        (told("completed"), InvalidResult, "not an object"),
        (told("completed", result={"content": 5}), InvalidResult, "not an array"),
        (told("cancelled", statusMessage="by the operator"), TaskStopped, "by the operator"),
        (told("input_required", inputRequests=[]), InvalidResult, "inputRequests"),
        ({"resultType": "complete", "status": "working"}, InvalidResult, "taskId"),
        (told("working", taskId="t2"), InvalidResult, "another task"),
        (told("working", taskId="t" * 2000), InvalidResult, "taskId"),
        (ErrorObject(-32602, "task expired"), ServerError, "task expired"),
    ],
)
async def test_a_task_that_brings_nothing_says_why(draw: Draw, status: Any, error: type[Exception], words: str) -> None:
    line = await modern(draw, {"tasks/get": status})
    with pytest.raises(error, match=words):
        await line.client.tasks.call_tool("t", timeouts=PATIENCE)


QUOTA = "monthly quota used up"


@pytest.mark.parametrize(
    "status",
    [
        {"error": QUOTA},
        {"error": {"code": "E_QUOTA", "message": QUOTA}},
        {"error": {"detail": QUOTA}},
        {"result": {"content": [{"type": "text", "text": QUOTA}], "isError": True}},
        {"statusMessage": QUOTA},
    ],
)
async def test_a_task_failed_without_an_error_object_keeps_its_message(draw: Draw, status: dict[str, Any]) -> None:
    line = await modern(draw, {"tasks/get": told("failed", **status)})
    with pytest.raises(InvalidResult, match=f"without an error: {QUOTA}"):
        await line.client.tasks.call_tool("t", timeouts=PATIENCE)


@pytest.mark.parametrize("status", ["done", "COMPLETED"])
async def test_an_unknown_status_is_remarked_on_once(draw: Draw, status: str) -> None:
    line = await modern(draw, {"tasks/get": [told(status), told(status), COMPLETED]})
    await line.client.tasks.call_tool("t", timeouts=PATIENCE)
    remarks = line.notes.all("remarked")
    assert len(remarks) == 1
    assert f'the task is "{status}", which is not a status' in remarks[0]


@pytest.mark.requirement("XTASK-09")
async def test_an_unknown_status_is_told_and_polling_goes_on(draw: Draw) -> None:
    states = [told("paused", statusMessage="for lunch"), told("input_required"), COMPLETED]
    line, seen = await modern(draw, {"tasks/get": states}), list[str]()
    await line.client.tasks.call_tool("t", timeouts=PATIENCE, on_task=lambda task: seen.append(task.words))
    assert seen == ["working", "paused: for lunch", "input required", "completed"]


@pytest.mark.requirement("XTASK-04", "XTASK-07")
async def test_each_input_is_asked_for_once_and_sent_as_it_comes(draw: Draw, until: Until) -> None:
    slow: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    class Slow(Answers):
        async def answer(self, request: InputRequest) -> Any:
            if request.params["for"] == "b":
                await slow
            return await super().answer(request)

    handler, rounds, polls = Slow(), list[InputRound](), list[dict[str, Any]]()

    def look(_: Request) -> dict[str, Any]:
        keys = [key for key in "abc" if not any(key in given for given in updates(line))]
        polls.append(asks(*keys) if keys else COMPLETED)
        return polls[-1]

    line = await modern(draw, {"tools/call": asks("a", "b", resultType="task")}, handler=handler)
    line.server.script["tasks/get"] = look
    call = asyncio.create_task(line.client.tasks.call_tool("deploy", timeouts=PATIENCE, on_round=kept(rounds)))
    await until(lambda: len(polls) > 5)
    assert updates(line) == [{"a": {"got": "a"}}]
    slow.set_result(None)
    assert (await call).raw == DONE
    assert updates(line) == [{key: {"got": key}} for key in "abc"]
    assert [request.params["for"] for request in handler.asked] == ["a", "b", "c"]
    assert {(each.purpose and each.purpose.name) for each in handler.asked} == {"deploy"}
    assert [(each.number, sorted(each.needed.inputs)) for each in rounds] == [(1, ["a", "b"]), (2, ["c"])]


@pytest.mark.requirement("XTASK-07")
async def test_inputs_given_in_another_session_are_not_asked_again(draw: Draw) -> None:
    handler, given = Answers(), GivenInputs({"a"}, rounds=3)
    rounds = list[InputRound]()
    line = await modern(draw, {"tasks/get": [asks("a", "b"), asks("a", "b"), COMPLETED]}, handler=handler)
    await line.client.tasks.resume("t1", cancels=lambda: False, given=given, timeouts=PATIENCE, on_round=kept(rounds))
    assert [request.params["for"] for request in handler.asked] == ["b"]
    assert given == GivenInputs({"a", "b"}, rounds=4)
    assert [each.number for each in rounds] == [4]


@pytest.mark.requirement("XTASK-04")
@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (asks("a", method="sampling/createMessage"), InputNotGiven, "the user declined"),
        (asks("a", method="tasks/list"), InputNotGiven, "did not offer"),
        (asks("a", "unreadable"), InputNotGiven, "cannot be read"),
        (asks(*map(str, range(1000))), InvalidResult, "needs 1000 inputs at once"),
    ],
)
async def test_a_refused_input_ends_the_call_and_sends_nothing(
    draw: Draw, until: Until, status: dict[str, Any], error: type[Exception], words: str
) -> None:
    line = await modern(draw, {"tasks/get": status}, handler=Answers("sampling/createMessage"))
    with pytest.raises(error, match=words):
        await line.client.tasks.call_tool("t", timeouts=PATIENCE)
    assert updates(line) == []
    if error is InputNotGiven:
        await until(lambda: line.server.requests("tasks/cancel"))


@pytest.mark.requirement("XTASK-07")
async def test_a_server_that_needs_ever_new_inputs_is_stopped(draw: Draw) -> None:
    keys = iter(range(10_000))
    line = await modern(
        draw, {"tasks/get": lambda _: asks(str(next(keys)))}, limits=ClientLimits(rounds=RoundLimits(rounds=3))
    )
    with pytest.raises(InvalidResult, match="still needs input after 3 rounds"):
        await line.client.tasks.call_tool("t", timeouts=PATIENCE)


@pytest.mark.parametrize("ending", [COMPLETED, told("working", ttlMs=1)], ids=["done", "expired"])
async def test_a_question_is_withdrawn_when_its_task_has_ended(
    draw: Draw, until: Until, ending: dict[str, Any]
) -> None:
    withdrawn = list[str]()

    class Waiting(Answers):
        async def answer(self, request: InputRequest) -> Any:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                withdrawn.append(request.params["for"])
                raise

    line = await modern(draw, {"tasks/get": [asks("a"), asks("a"), ending]}, handler=Waiting())
    call = asyncio.create_task(line.client.tasks.call_tool("t", timeouts=PATIENCE))
    await asyncio.wait([call])
    assert isinstance(call.exception(), TaskExpired) is (ending is not COMPLETED)
    assert (withdrawn, updates(line)) == (["a"], [])


async def test_time_for_an_answer_does_not_count_and_time_after_it_does(draw: Draw) -> None:
    class Slow(Answers):
        async def answer(self, request: InputRequest) -> Any:
            await asyncio.sleep(0.4)
            return await super().answer(request)

    limit = RequestTimeouts(idle=1, hard=0.3)
    line = await modern(draw, {}, handler=Slow())
    line.server.script["tasks/get"] = lambda _: COMPLETED if updates(line) else asks("a")
    assert (await line.client.tasks.call_tool("t", timeouts=limit)).raw == DONE
    line.server.script["tasks/get"] = lambda _: told("working")
    with pytest.raises(RequestTimeout, match="in all"):
        await line.client.tasks.call_tool("t", timeouts=limit)


async def test_an_answer_that_the_server_no_longer_wants_ends_nothing(draw: Draw) -> None:
    handler = Answers()
    script = {"tasks/get": [asks("a"), asks("a"), COMPLETED], "tasks/update": ErrorObject(-32602, "too late")}
    line = await modern(draw, script, handler=handler)
    assert (await line.client.tasks.call_tool("t", timeouts=PATIENCE)).raw == DONE
    assert len(handler.asked) == 1


@pytest.mark.requirement("XTASK-05")
async def test_a_task_is_cancelled_by_its_id_and_never_by_its_request(draw: Draw, until: Until) -> None:
    line, states = await modern(draw, {"tasks/get": told("working", pollIntervalMs=FOR_EVER)}), list[str]()
    call = asyncio.create_task(
        line.client.tasks.call_tool("t", timeouts=PATIENCE, on_task=lambda task: states.append(task.status))
    )
    await until(lambda: states)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: line.server.requests("tasks/cancel"))
    assert (line.server.requests("tasks/cancel")[0].params or {})["taskId"] == "t1"
    assert "notifications/cancelled" not in line.server.methods()


@pytest.mark.requirement("XTASK-05", "XTASK-06")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_task_requests_carry_a_header_and_the_extension(method: str) -> None:
    rules = ModernRules(V2026_07_28, ClientMetadata({}, lambda: EXTENSIONS), own_stream=True, capabilities=EXTENSIONS)
    request = rules.request(1, method, {"taskId": "tâche"}, progress=False)
    assert rules.headers(request)["Mcp-Name"] == "=?base64?dMOiY2hl?="
    assert (request.params or {})["_meta"]["io.modelcontextprotocol/clientCapabilities"] == EXTENSIONS


async def test_a_call_is_cancelled_like_any_other_until_it_is_a_task(draw: Draw, until: Until) -> None:
    line = await modern(draw, {"tools/call": NEVER})
    call = asyncio.create_task(line.client.tasks.call_tool("t", timeouts=RequestTimeouts(60, 60)))
    await until(lambda: line.server.waiting)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: "notifications/cancelled" in line.server.methods(), 10)
    assert line.server.requests("tasks/cancel") == []


async def test_a_task_that_is_left_goes_on(draw: Draw, until: Until) -> None:
    line, states = await modern(draw, {"tasks/get": told("working")}), list[str]()
    call = asyncio.create_task(
        line.client.tasks.call_tool("t", cancels=lambda: False, on_task=lambda task: states.append(task.status))
    )
    await until(lambda: len(states) > 1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await line.client.aclose()
    assert line.server.requests("tasks/cancel") == []


@pytest.mark.parametrize(
    ("after", "status"),
    [(told("cancelled"), "cancelled"), (told("working"), "working"), (ErrorObject(-32602, "gone"), "cancelled")],
)
async def test_a_cancelled_task_is_looked_at_again(draw: Draw, after: Any, status: str) -> None:
    """The answer to the wish says nothing, and the server may forget the task at once."""
    line = await modern(draw, {"tasks/get": after})
    assert (await line.client.tasks.cancel("t1")).status == status
    assert line.server.methods()[1:] == ["tasks/cancel", "tasks/get"]


@pytest.mark.requirement("XTASK-09")
async def test_a_task_is_given_up_when_its_server_keeps_it_no_longer(draw: Draw) -> None:
    line = await modern(draw, {"tasks/get": told("working", ttlMs=100, createdAt="2999-01-01T00:00:00Z")})
    with pytest.raises(TaskExpired, match=r"did not end in the 0\.1 s for which the server keeps it"):
        await line.client.tasks.call_tool("t", timeouts=PATIENCE)
    assert line.server.requests("tasks/cancel") == []


@pytest.mark.requirement("XTASK-09")
@pytest.mark.parametrize(("since", "created"), [(0.0, "now"), (None, "2020-01-01T00:00:00Z")])
async def test_a_task_of_an_earlier_run_is_polled_once_after_its_time(
    draw: Draw, since: float | None, created: str
) -> None:
    line = await modern(draw, {"tasks/get": told("working", ttlMs=60_000, createdAt=created)})
    with pytest.raises(TaskExpired):
        await line.client.tasks.resume("t1", cancels=lambda: False, since=since, timeouts=PATIENCE)
    line.server.script["tasks/get"] = COMPLETED
    assert (await line.client.tasks.resume("t1", cancels=lambda: False, since=since)).raw == DONE


@pytest.mark.parametrize("ttl", [None, 1e300, "soon", "nan", 3.2e12])
async def test_a_senseless_lifetime_does_no_harm(draw: Draw, ttl: object) -> None:
    line = await modern(draw, {"tasks/get": [told("working", ttlMs=ttl), COMPLETED]})
    assert (await line.client.tasks.resume("t1", cancels=lambda: False, since=time.time())).raw == DONE


@pytest.mark.requirement("XTASK-10", "XTASK-06")
async def test_a_notification_changes_the_status_at_once(draw: Draw, until: Until) -> None:
    slow = {"tools/call": {**BEGUN, "pollIntervalMs": FOR_EVER}, "tasks/get": told("working", pollIntervalMs=FOR_EVER)}
    line, seen = await modern(draw, slow), list[str]()
    line.server.script["subscriptions/listen"] = acknowledges(line, taskIds=["t1"])
    call = asyncio.create_task(
        line.client.tasks.call_tool("t", timeouts=PATIENCE, on_task=lambda task: seen.append(task.words))
    )
    await until(lambda: line.server.requests("subscriptions/listen"))
    (listen,) = line.server.requests("subscriptions/listen")
    assert (listen.params or {})["notifications"] == {"taskIds": ["t1"]}
    await until(lambda: line.server.requests("tasks/get"))
    half = told("working", statusMessage="half", pollIntervalMs=FOR_EVER)
    for status in (half, told("failed", taskId="t2"), {"taskId": "t1"}):
        line.server.says("notifications/tasks", {**status, **subscription(listen)})
    line.server.says("notifications/tasks", {**COMPLETED, "_meta": {}})  # of no subscription
    line.server.says("notifications/tasks/status", {**COMPLETED, **subscription(listen)})  # of another revision
    await until(lambda: "working: half" in seen)
    assert not call.done()
    line.server.says("notifications/tasks", {**COMPLETED, **subscription(listen)})
    assert (await call).raw == DONE
    assert seen == ["working", "working", "working: half", "completed"]
    assert len(line.server.requests("tasks/get")) == 1  # once announcements had begun


@pytest.mark.requirement("XTASK-10", "SUB-08")
async def test_a_change_before_the_announcement_is_found_at_once(draw: Draw, until: Until) -> None:
    slow = {**BEGUN, "pollIntervalMs": FOR_EVER}
    line = await modern(draw, {"tools/call": slow})
    line.server.script["subscriptions/listen"] = acknowledges(line, taskIds=["t1"])
    assert (await line.client.tasks.call_tool("t", timeouts=PATIENCE)).raw == DONE
    assert len(line.server.requests("tasks/get")) == 1
    line.server.script["subscriptions/listen"] = acknowledges(line, taskIds=["t2"])
    line.server.script["tools/call"] = {**slow, "taskId": "t2"}
    line.server.script["tasks/get"] = told("working", taskId="t2", pollIntervalMs=FOR_EVER)
    call = asyncio.create_task(line.client.tasks.call_tool("t", timeouts=RequestTimeouts(60, 60)))
    await until(lambda: len(line.server.requests("tasks/get")) == 2)
    line.server.script["tasks/get"] = {**COMPLETED, "taskId": "t2"}
    line.server.says("notifications/cancelled", {"requestId": line.server.requests("subscriptions/listen")[-1].id})
    assert (await call).raw == DONE  # though its end was not announced


@pytest.mark.requirement("XTASK-10")
@pytest.mark.parametrize(
    "listen", [ErrorObject(-32601, "no such method"), "partly", NEVER], ids=["refused", "partly", "never"]
)
async def test_polling_finds_what_is_not_announced(draw: Draw, listen: Any) -> None:
    states = [told("working", pollIntervalMs=20)] * 8
    line = await modern(draw, {"tasks/get": [*states, COMPLETED]})
    line.server.script["subscriptions/listen"] = acknowledges(line) if listen == "partly" else listen
    assert (await line.client.tasks.call_tool("t", timeouts=PATIENCE)).raw == DONE


@pytest.mark.requirement("XTASK-10")
async def test_a_refusal_to_announce_tasks_keeps_other_announcements(draw: Draw, until: Until) -> None:
    offered = discovered(TASKS_EXTENSION)
    offered["capabilities"]["tools"] = {"listChanged": True}
    line = unconnected(draw, {"server/discover": offered, "tasks/get": told("working")})

    def answer(request: Request) -> object:
        if "taskIds" in (request.params or {})["notifications"]:
            return ErrorObject(-32602, "taskIds?")
        return acknowledges(line, toolsListChanged=True)(request)

    line.server.script["subscriptions/listen"] = answer
    await line.client.connect(5)
    listener = line.client.listener
    assert listener is not None
    call = asyncio.create_task(line.client.tasks.call_tool("t", timeouts=PATIENCE))
    await until(lambda: len(line.server.requests("subscriptions/listen")) == 2 and not listener.wanted.tasks)
    line.server.script["tasks/get"] = COMPLETED
    await call
    assert listener.honoured.lists == {"tools"}
    line.server.says("notifications/tools/list_changed", subscription(line.server.requests("subscriptions/listen")[0]))
    assert line.notes.all("changed") == ["tools"]


async def test_the_rounds_of_a_task_are_counted_on_from_those_before_it(draw: Draw) -> None:
    handler, rounds, given = Answers(), list[InputRound](), GivenInputs()
    first, second = needs("s", a="elicitation/create"), needs("s", b="elicitation/create")
    script: dict[str, Answer] = {"tools/call": [first, second, BEGUN], "tasks/get": [asks("c"), asks("d"), COMPLETED]}
    line = await modern(draw, script, handler=handler, limits=ClientLimits(rounds=RoundLimits(rounds=4)))
    await line.client.tasks.call_tool("t", timeouts=PATIENCE, given=given, on_round=kept(rounds))
    assert [each.number for each in rounds if not each.answered] == [1, 2, 3, 4]
    assert [each.purpose and each.purpose.round for each in handler.asked] == [1, 2, 3, 4]
    assert given == GivenInputs({"c", "d"}, rounds=4)
    line.server.script |= {"tools/call": [first, second, BEGUN], "tasks/get": [asks(key) for key in "cde"]}
    with pytest.raises(InvalidResult, match="still needs input after 4 rounds"):
        await line.client.tasks.call_tool("t", timeouts=PATIENCE)


@pytest.mark.requirement("XTASK-09")
@pytest.mark.parametrize("rounds", [0, 1])
async def test_a_call_and_its_task_share_one_limit(draw: Draw, rounds: int) -> None:
    class Slow(Answers):
        async def answer(self, request: InputRequest) -> Any:
            await asyncio.sleep(2.5)  # longer than the limit, which it is not part of
            return await super().answer(request)

    def begins(_: Request) -> object:
        answer = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(1.7, answer.set_result, BEGUN)
        return answer

    asked = [needs("s", a="elicitation/create")] * rounds
    line = await modern(draw, {"tools/call": [*asked, begins], "tasks/get": told("working")}, handler=Slow())
    moved = list[float]()
    clock = asyncio.get_running_loop().time
    with pytest.raises(RequestTimeout, match="2 s in all"):
        await line.client.tasks.call_tool(
            "t", timeouts=RequestTimeouts(idle=5, hard=2), on_task=lambda _: moved.append(clock())
        )
    assert clock() - moved[0] < 2  # not counted again from when it became a task


async def test_rounds_come_before_the_task_and_progress_with_them(draw: Draw) -> None:
    heard, rounds = list[Progress](), list[InputRound]()

    def begins(request: Request) -> dict[str, Any]:
        token = (request.params or {})["_meta"]["progressToken"]
        line.server.says("notifications/progress", {"progressToken": token, "progress": 1})
        return BEGUN

    line = await modern(draw, {"tools/call": [needs("s", form="elicitation/create"), begins]})
    await line.client.tasks.call_tool("t", on_progress=heard.append, on_round=kept(rounds))
    assert heard == [Progress(1)]
    assert [each.answered for each in rounds] == [False, True]


@pytest.mark.requirement("EXT-01", "EXT-05")
@pytest.mark.parametrize("revision", REVISIONS, ids=str)
def test_extensions_are_declared_in_modern_revisions_only(revision: Revision) -> None:
    declared = ClientCapabilities(extensions=frozenset({TASKS_EXTENSION}))
    assert declared.under(revision) == ({"extensions": {TASKS_EXTENSION: {}}} if revision.modern else {})
    assert ClientCapabilities().under(revision) == {}


def test_a_status_is_kept_as_it_came() -> None:
    status = asks("a", ttlMs=5, odd=[1])
    assert json.loads(json.dumps(ExtensionTask.read(status).definition())) == status
    assert ExtensionTask.read(status).ttl == 5
