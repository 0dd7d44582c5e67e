from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mcphost.client.client import Client, Identity, RequestTimeouts
from mcphost.client.requester import NOTE_LENGTH
from mcphost.client.requests import BY_AGENT, BY_USER
from mcphost.errors import (
    CapabilityMissing,
    ConnectionLost,
    HttpStatusError,
    InvalidResult,
    RequestTimeout,
    ServerError,
    ServerNotReady,
    SessionExpired,
)
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tools import CallToolResult
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.jsonrpc import ErrorObject, Malformed, Notification, Request, Response
from mcphost.transports.base import TransportLimits
from mcphost.transports.stdio.transport import StdioTransport
from tests.client.conftest import BRIEF, Connect, Line, hello
from tests.client.scripted import NEVER, Answer, Notes
from tests.conftest import PythonServer, Until

CALLED = {"content": [{"type": "text", "text": "done"}]}


# Deviations


async def test_deviations_are_remarked_on_once(connect: Connect) -> None:
    nulls = {"tools": [{"name": "a", "title": None}, {"name": "b", "title": None}]}
    odd = {"content": "fine", "isError": "no"}
    line = await connect({"tools/list": nulls, "tools/call": odd})
    for _ in range(2):
        await line.client.list_tools()
        await line.client.call_tool("a")
        line.client.message(Notification("notifications/x", None, "messages with null as params"))
    assert line.notes.all("remarked") == [
        "tools/list: a and 1 more: title is null, and counts as absent",
        "tools/call: content is a text, not a list",
        "tools/call: isError is a text, not true or false, and counts as an error",
        "tools/call: a content block is a text, not an object",
        "messages with null as params",
    ]


async def test_null_structured_content_is_a_value_where_allowed(connect: Connect) -> None:
    line = await connect({"tools/call": {**CALLED, "structuredContent": None}})
    result = await line.client.call_tool("a")
    assert (result.has_structured, result.raw["structuredContent"]) == (False, None)
    assert line.notes.all("remarked") == ["tools/call: structuredContent is null, and counts as absent"]
    assert CallToolResult.read(result.raw).has_structured


async def test_endless_different_deviations_do_not_fill_the_log(connect: Connect) -> None:
    line = await connect()
    for number in range(1000):
        line.client.remark(f"{number} " + "x" * 1000)
    remarks = line.notes.all("remarked")
    assert len(remarks) == 100
    assert max(map(len, remarks)) < NOTE_LENGTH + 10


async def test_an_answer_with_a_null_error_is_remarked_on(connect: Connect) -> None:
    line = await connect({"tools/call": lambda request: Response(request.id, CALLED, remark="null as error")})
    await line.client.call_tool("t")
    assert "null as error" in line.notes.all("remarked")


# Requests


@pytest.mark.hostile("J08")
@pytest.mark.requirement("MSG-15")
async def test_ids_of_two_connections_are_unrelated(connect: Connect) -> None:
    """An answer that was written before its question must not find one."""
    lines = [await connect() for _ in range(4)]
    first = {line.server.requests("initialize")[0].id for line in lines}
    assert len(first) >= 3, "two may meet once in 350,000 runs"
    assert not first & {0, 1}
    for line in lines:
        await line.client.ping()
        await line.client.ping()
        ids = [message.id for message in line.server.sent if isinstance(message, Request)]
        assert len(set(ids)) == len(ids) == 3


@pytest.mark.requirement("TOOLS-02", "PROG-02", "META-02", "META-03")
@pytest.mark.parametrize("arguments", [None, {}, {"i": 1, "b": True, "l": [1.5, None], "o": {"s": "é"}}])
async def test_a_call_sends_the_name_and_the_arguments_as_they_are(
    connect: Connect, arguments: dict[str, Any] | None
) -> None:
    line = await connect({"tools/call": CALLED})
    result = await line.client.call_tool("Get it", arguments)
    (request,) = line.server.requests("tools/call")
    expected = {"name": "Get it", "_meta": {"progressToken": request.id}}
    assert request.params == (expected if arguments is None else {**expected, "arguments": arguments})
    assert result.raw == CALLED


@pytest.mark.requirement("MSG-18", "TOOLS-10", "ERR-02", "ERR-04")
@pytest.mark.parametrize("code", [-32602, -32601, -32700, -32001, -32004, 0, 12345])
async def test_an_error_keeps_its_code_message_and_data(connect: Connect, code: int) -> None:
    line = await connect({"tools/call": ErrorObject(code, "no such tool", {"a": [1]})})
    with pytest.raises(ServerError) as caught:
        await line.client.call_tool("t")
    error = caught.value
    assert (error.code, error.message, error.data, error.method) == (code, "no such tool", {"a": [1]}, "tools/call")


@pytest.mark.requirement("CAP-02", "CAP-03", "CAP-04", "CAP-05", "LIFE-14", "LOG-01")
@pytest.mark.parametrize(
    ("capabilities", "ask", "capability"),
    [
        ({}, lambda client: client.list_tools(), "tools"),
        ({}, lambda client: client.call_tool("t"), "tools"),
        ({"tools": {}}, lambda client: client.set_log_level(LogLevel.INFO), "logging"),
        (
            {"resources": {"subscribe": False}},
            lambda client: client.request("resources/subscribe", {"uri": "a:b"}),
            "resources.subscribe",
        ),
    ],
)
async def test_what_the_server_does_not_offer_is_not_asked(
    connect: Connect, revision: Revision, capabilities: Any, ask: Callable[[Client], Awaitable[Any]], capability: str
) -> None:
    line = await connect({"initialize": hello(revision, capabilities=capabilities)})
    with pytest.raises(CapabilityMissing) as caught:
        await ask(line.client)
    assert caught.value.capability == capability
    assert line.server.methods() == ["initialize", "notifications/initialized"]


@pytest.mark.requirement("LOG-01")
async def test_a_log_level_goes_out_by_its_name_and_a_refusal_is_told(connect: Connect) -> None:
    line = await connect({"logging/setLevel": [{}, ErrorObject(-32602, "no such level")]})
    await line.client.set_log_level(LogLevel.WARNING)
    assert line.server.requests("logging/setLevel")[0].params == {"level": "warning"}
    with pytest.raises(ServerError, match="no such level"):
        await line.client.set_log_level(LogLevel.DEBUG)


@pytest.mark.hostile("J08")
@pytest.mark.requirement("MSG-02", "MSG-03", "MSG-04", "PROG-01", "MSG-19")
async def test_an_id_is_never_used_twice_however_its_request_ended(connect: Connect) -> None:
    outcomes = [CALLED, ErrorObject(1, "no"), NEVER, ConnectionLost("gone"), NEVER]
    line = await connect({"tools/call": lambda request: outcomes[int(request.id) % len(outcomes)]}, timeouts=BRIEF)
    tasks = [asyncio.create_task(line.client.call_tool("t")) for _ in range(300)]
    await asyncio.sleep(0)
    for task in tasks[::7]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    requests = line.server.requests("tools/call")
    assert len({request.id for request in requests}) == len(requests) >= 250
    assert {type(request.id) for request in requests} == {int}
    assert line.server.waiting == 0
    assert not line.client.requests.waiting_for_progress


# Limits of time, progress, cancelling


@pytest.mark.requirement("TIME-01", "TIME-02", "TIME-03", "TOOLS-16", "CANC-03", "ERR-11")
@pytest.mark.parametrize(
    ("method", "ask"),
    [
        ("tools/list", lambda client: client.list_tools()),
        ("tools/call", lambda client: client.call_tool("t")),
        ("tools/call", lambda client: client.call_tool("t", timeouts=RequestTimeouts(0.01, 9))),
        ("logging/setLevel", lambda client: client.set_log_level(LogLevel.INFO)),
        ("ping", lambda client: client.ping(0.01)),
        ("zzz/x", lambda client: client.request("zzz/x", {})),
    ],
)
async def test_a_request_without_an_answer_times_out_and_is_cancelled(
    connect: Connect, until: Until, method: str, ask: Callable[[Client], Awaitable[Any]]
) -> None:
    line = await connect({method: NEVER}, timeouts=BRIEF)
    with pytest.raises(RequestTimeout) as caught:
        await ask(line.client)
    assert caught.value.method == method
    (request,) = line.server.requests(method)
    await until(lambda: len(line.server.sent) == 4)
    cancelled = line.server.sent[-1]
    assert cancelled == Notification("notifications/cancelled", {"requestId": request.id, "reason": "timed out"})


def tell(line: Line, progress: Any, **more: Any) -> None:
    request = line.server.requests("tools/call")[-1]
    line.server.says("notifications/progress", {"progressToken": request.id, "progress": progress, **more})


@pytest.mark.hostile("J14")
@pytest.mark.requirement("TIME-04", "TIME-05", "PROG-03")
async def test_progress_restarts_the_clock_up_to_a_hard_maximum(connect: Connect, until: Until) -> None:
    line, heard = await connect({"tools/call": NEVER}), list[Progress]()
    timeouts = RequestTimeouts(idle=1.5, hard=1.8)
    loop = asyncio.get_running_loop()
    began = loop.time()
    call = asyncio.create_task(line.client.call_tool("t", timeouts=timeouts, on_progress=heard.append))
    await until(lambda: line.server.requests("tools/call"))
    while not call.done():
        tell(line, 1)
        await asyncio.wait([call], timeout=0.02)
    with pytest.raises(RequestTimeout, match="in all"):
        await call
    assert loop.time() - began > 1.79
    assert len(heard) > 3


@pytest.mark.hostile("F02")
@pytest.mark.requirement("PROG-03", "PROG-04")
async def test_progress_of_any_shape_reaches_the_one_call_it_is_for(connect: Connect, until: Until) -> None:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    line, heard = await connect({"tools/call": answer}), list[Progress]()
    call = asyncio.create_task(line.client.call_tool("t", on_progress=heard.append))
    await until(lambda: line.server.waiting)
    request = line.server.requests("tools/call")[0]
    for values in ({"progress": 5, "total": 4}, {"progress": 0.2}, {"progress": 3, "message": "Reticulating"}):
        tell(line, **values)
    strangers: list[object] = [str(request.id), float(request.id), True, None, [], "x", 0]
    for token in strangers:
        line.server.says("notifications/progress", {"progressToken": token, "progress": 9})
    for params in (None, {}, {"progressToken": request.id}, {"progressToken": request.id, "progress": "x"}):
        line.server.says("notifications/progress", params)
    assert heard == [Progress(5, 4), Progress(0.2), Progress(3, None, "Reticulating")]
    answer.set_result(CALLED)
    await call
    tell(line, 1)
    assert len(heard) == 3


@pytest.mark.hostile("J14")
@pytest.mark.requirement("CANC-01", "CANC-03", "CANC-06", "MSG-15")
@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (BY_USER, "cancelled by the user"),
        (BY_AGENT, "cancelled by the agent"),
        (None, "nobody waits for the answer"),
    ],
)
async def test_cancelling_notifies_once_and_drops_the_late_answer(
    connect: Connect, until: Until, message: str | None, reason: str
) -> None:
    line = await connect({"tools/call": [CALLED, NEVER]})
    await line.client.call_tool("finished")
    call = asyncio.create_task(line.client.call_tool("slow"))
    await until(lambda: line.server.waiting)
    call.cancel(message)
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: line.server.methods()[-1] == "notifications/cancelled")
    request = line.server.requests("tools/call")[1]
    assert line.server.sent[-1] == Notification("notifications/cancelled", {"requestId": request.id, "reason": reason})
    line.client.unmatched(Response(request.id, result=CALLED))
    told, dropped = line.notes.all("noted")
    assert reason in told
    assert str(request.id) in dropped
    assert line.server.methods().count("notifications/cancelled") == 1


@pytest.mark.parametrize(
    ("came", "says"),
    [
        (Response("1", result=CALLED), r'; an answer came with the id "1" \(a text\), which no request has$'),
        (Response(None, error=ErrorObject(-1, "no id")), "; the server answered with an error to no request: no id$"),
        (Malformed("a result whose id is neither", b'{"id": 1.0, "result": {}}'), "; .* whose id is neither$"),
        (Malformed("not JSON", b"INFO at work", is_json=False), "a sign of progress$"),
        (Malformed("params is no object", b'{"method": "x", "params": 1}'), "a sign of progress$"),
    ],
)
async def test_a_timeout_names_the_answer_that_matched_no_request(
    connect: Connect, came: Response | Malformed, says: str
) -> None:
    def answers(request: Request) -> Answer:
        take: Any = line.client.unmatched if isinstance(came, Response) else line.client.malformed
        take(came)
        return NEVER

    line = await connect({"tools/call": [answers, NEVER]}, timeouts=BRIEF)
    with pytest.raises(RequestTimeout, match=says):
        await line.client.call_tool("t")
    with pytest.raises(RequestTimeout, match=r"a sign of progress$"):
        await line.client.call_tool("t")


@pytest.mark.parametrize(
    ("data", "says"), [({"detail": "quota used up"}, "quota used up (-1)"), (None, "it gives no reason (-1)")]
)
async def test_an_error_with_an_empty_message_says_what_its_data_says(connect: Connect, data: Any, says: str) -> None:
    line = await connect({"tools/call": ErrorObject(-1, " ", data)})
    with pytest.raises(ServerError) as caught:
        await line.client.call_tool("t")
    assert str(caught.value) == says


@pytest.mark.requirement("CANC-05")
@pytest.mark.parametrize("turns", range(6))
async def test_a_cancel_that_meets_the_answer_harms_nothing(connect: Connect, turns: int) -> None:
    line = await connect()
    for answer_first in (True, False) * 10:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        line.server.script["tools/call"] = answer
        call = asyncio.create_task(line.client.call_tool("t"))
        await asyncio.sleep(0)
        steps = [lambda answer=answer: answer.done() or answer.set_result(CALLED), call.cancel]
        for step in steps if answer_first else reversed(steps):
            step()
            for _ in range(turns):
                await asyncio.sleep(0)
        (outcome,) = await asyncio.gather(call, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError | CallToolResult)
    await line.client.ping()


@pytest.mark.requirement("PING-03")
async def test_an_error_to_a_ping_is_a_sign_of_life(connect: Connect) -> None:
    line = await connect({"ping": ErrorObject(-32601, "no ping here")})
    await line.client.ping()


# What the server says unasked


@pytest.mark.requirement("MSG-06", "CANC-08", "CAP-07", "META-01", "MSG-17")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/zzz", {"a": 1}),
        ("notifications/" + "z" * 100_000, None),
        ("notifications/cancelled", None),
        ("notifications/cancelled", {"requestId": 3, "reason": "x"}),
        ("notifications/cancelled", {"requestId": []}),
        ("notifications/cancelled", {"requestId": True}),
        ("notifications/prompts/list_changed", None),
        ("notifications/resources/updated", {"uri": "a:b"}),
        ("notifications/tools/list_changed", {"_meta": {"io.modelcontextprotocol/x": 1}}),
    ],
)
async def test_no_notification_is_answered_or_disturbs(connect: Connect, method: str, params: Any) -> None:
    line = await connect()
    line.server.says(method, params)
    await line.client.ping()
    assert line.server.methods() == ["initialize", "notifications/initialized", "ping"]
    assert all(len(note) <= NOTE_LENGTH + 4 for note in line.notes.all("noted"))


@pytest.mark.hostile("J13")
async def test_a_changed_list_is_reported_if_the_server_offers_it(connect: Connect, revision: Revision) -> None:
    offered = {"tools": {}, "prompts": {"listChanged": True}}
    line = await connect({"initialize": hello(revision, capabilities=offered)})
    for kind in ("tools", "prompts", "resources"):
        line.server.says(f"notifications/{kind}/list_changed")
    assert line.notes.all("changed") == ["tools", "prompts"]
    assert "resources" in line.notes.all("noted")[0]


@pytest.mark.requirement("LOG-02")
@pytest.mark.parametrize(
    "params",
    [
        {"level": "info", "data": "s"},
        {"level": "fatal", "data": {"a": 1}},
        {"data": [1], "logger": "l"},
        {"level": "error", "data": None},
        {},
    ],
)
async def test_a_log_message_of_any_shape_is_passed_on(connect: Connect, params: dict[str, Any]) -> None:
    line = await connect()
    line.server.says("notifications/message", params)
    assert line.notes.all("logged") == [params]


@pytest.mark.hostile("F11")
@pytest.mark.requirement("MSG-10", "MSG-14")
@pytest.mark.parametrize("code", [ErrorCode.INVALID_PARAMS, ErrorCode.INVALID_REQUEST])
async def test_a_broken_request_is_reported_and_gets_its_error(connect: Connect, until: Until, code: ErrorCode) -> None:
    line = await connect()
    problem = Malformed("params is not an object", b"{}", asks="7", code=code)
    line.client.malformed(problem)
    line.client.malformed(Malformed("stray text", b"Hello", is_json=False))
    await until(line.server.replies)
    error = {"code": code, "message": "params is not an object"}
    assert line.server.replies() == [{"jsonrpc": "2.0", "id": "7", "error": error}]
    assert [heard.reason for heard in line.notes.all("malformed")] == ["params is not an object", "stray text"]


@pytest.mark.requirement("MSG-16")
async def test_an_error_to_nobody_is_reported(connect: Connect) -> None:
    line = await connect()
    line.client.unmatched(Response(None, error=ErrorObject(-32700, "x" * 9999)))
    (note,) = line.notes.all("noted")
    assert note.startswith("the server reported an error to no request: xxx")
    assert len(note) < 400


# The end


@pytest.mark.requirement("LIFE-26")
async def test_closing_lets_cancels_out_asks_nothing_more_and_closes(connect: Connect, until: Until) -> None:
    line = await connect({"tools/call": NEVER})
    call = asyncio.create_task(line.client.call_tool("t"))
    await until(lambda: line.server.waiting)
    call.cancel()
    await asyncio.wait([call])
    await line.client.aclose()
    assert line.server.methods()[-1] == "notifications/cancelled"
    assert line.server.closed == 1
    with pytest.raises(ServerNotReady):
        await line.client.call_tool("t")
    line.server.asks(1, "ping")
    await asyncio.sleep(0)
    assert not line.server.replies()


@pytest.mark.requirement("MSG-21", "CAP-06")
async def test_a_session_in_which_neither_side_offers_anything_is_one(
    connect: Connect, revision: Revision, until: Until
) -> None:
    line = await connect({"initialize": hello(revision, capabilities={})})
    line.server.asks(1, "ping")
    await until(line.server.replies)
    await line.client.ping()
    await line.client.aclose()
    assert line.server.methods() == ["initialize", "notifications/initialized", "reply", "ping"]
    assert (line.server.replies()[0]["result"], line.server.closed) == ({}, 1)


@pytest.mark.requirement("LIFE-27")
async def test_a_lost_connection_is_reported_once(connect: Connect) -> None:
    line = await connect({"tools/call": NEVER, "notifications/cancelled": ConnectionLost("gone")}, timeouts=BRIEF)
    with pytest.raises(RequestTimeout):
        await line.client.call_tool("t")
    reason = ConnectionLost("the server exited with code 3", exit_code=3)
    line.client.closed(reason)
    assert line.notes.all("lost") == [reason]
    await line.client.aclose()


# With a real server


@pytest.fixture
async def echo(python_server: PythonServer, revision: Revision) -> Any:
    transport, notes = (
        StdioTransport(python_server("echo.py", "--protocol", revision.version), TransportLimits(), {}),
        Notes(),
    )
    client = Client(transport, notes, Identity("1.0"))
    await client.connect(10)
    yield client, notes
    assert transport.pending == 0
    await client.aclose()


@pytest.mark.requirement("TRANS-01", "TRANS-STDIO-01", "MSG-12", "MSG-19", "LOG-02")
async def test_a_whole_session_with_a_server_process(echo: tuple[Client, Notes]) -> None:
    client, notes = echo
    assert len((await client.list_tools()).items) == 11
    result = await client.call_tool("echo", {"text": "héllo\n世界 🚀 \u2028"})
    assert result.raw["content"] == [{"type": "text", "text": "héllo\n世界 🚀 \u2028"}]
    heard: list[Progress] = []
    await client.call_tool("progress", {"steps": 3}, on_progress=heard.append)
    assert [progress.fraction for progress in heard] == [1 / 3, 2 / 3, 1.0]
    await client.set_log_level(LogLevel.ERROR)
    await client.call_tool("log", {"count": 1, "level": "error", "text": "bad"})
    await client.call_tool("log", {"count": 1, "level": "info"})
    assert [params["data"] for params in notes.all("logged")] == ["bad"]
    assert (await client.call_tool("fail")).is_error
    with pytest.raises(ServerError):
        await client.call_tool("nothing like it")
    with pytest.raises(RequestTimeout):
        await client.call_tool("sleep", {"seconds": 30}, timeouts=RequestTimeouts(0.05, 9))
    await client.ping()
    assert notes.all("malformed") == notes.all("lost") == []


AWAY = ConnectionLost("nothing listens there")
LISTENINGS = [
    pytest.param([AWAY], AWAY, [AWAY], 1, id="the-server-is-away"),
    pytest.param([AWAY] * 5, {}, [], 3, id="only-the-stream-is"),
    pytest.param([AWAY, None], {}, [], 1, id="and-is-there-again"),
    pytest.param([SessionExpired("gone")], {}, [SessionExpired], 0, id="the-session-is-gone"),
    pytest.param([HttpStatusError(503)], {}, [], 0, id="the-server-refuses"),
    pytest.param([InvalidResult("no gzip")], {}, [], 0, id="nobody-can-read-it"),
]


@pytest.mark.parametrize(("streams", "ping", "lost", "pings"), LISTENINGS)
async def test_a_lost_listening_stream_is_followed_by_a_ping(
    connect: Connect, until: Until, streams: list[Any], ping: Any, lost: list[Any], pings: int
) -> None:
    line = await connect({"listen": list(streams), "ping": ping})
    await until(lambda: sum(getattr(each, "method", "") == "ping" for each in line.server.sent) == pings)
    await until(lambda: len(line.notes.all("lost")) == len(lost))
    ends = 0 if SessionExpired in lost else max(pings, 1)
    await until(lambda: sum("unasked has ended" in note for note in line.notes.all("noted")) == ends)
    for told, expected in zip(line.notes.all("lost"), lost, strict=True):
        assert told is expected or isinstance(told, expected)
