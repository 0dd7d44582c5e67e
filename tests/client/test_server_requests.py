"""The queue of a server's requests: answered, refused, cancelled, and bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcphost.client.client import RequestTimeouts
from mcphost.client.deadlines import Deadline, Deadlines
from mcphost.client.server_requests import (
    QUICK_REPLIES,
    InputHandler,
    InputRefused,
    InputRequest,
    NothingOffered,
    ServerRequestQueue,
)
from mcphost.errors import ConnectionLost, RequestTimeout
from mcphost.protocol.lifecycle.capabilities import ClientCapabilities
from mcphost.protocol.lifecycle.revisions import V2025_06_18, V2025_11_25
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.jsonrpc import ErrorObject, Notification, Request, Response
from tests.client.conftest import Connect, Draw, hello
from tests.client.handlers import ScriptedHandler
from tests.client.scripted import NEVER
from tests.conftest import Until

SECRET = "sk-planted-canary /home/me/.ssh/id_rsa"


class Queue:
    """An open queue with a record of what it sent and noted."""

    def __init__(self, handler: InputHandler, limit: int = 32) -> None:
        self.sent: list[Response] = []
        self.notes: list[str] = []
        self.pipe: asyncio.Event | Exception = asyncio.Event()
        self.pipe.set()
        self.queue = ServerRequestQueue(handler, self._reply, self.notes.append, limit)
        self.queue.initialized = True

    async def _reply(self, response: Response) -> None:
        if isinstance(self.pipe, Exception):
            raise self.pipe
        await self.pipe.wait()
        self.sent.append(response)

    def replies(self) -> list[dict[str, Any]]:
        return [response.as_object() for response in self.sent]


@pytest.mark.requirement("MSG-07", "MSG-08", "LIFE-25", "PING-01")
async def test_an_answer_repeats_the_id_with_its_type(connect: Connect, until: Until) -> None:
    handler = ScriptedHandler(roots={"roots": []})
    line = await connect(capabilities={"roots": {}}, handler=handler)
    line.server.asks("1", "ping")
    line.server.asks(1, "ping")
    line.server.asks(2, "roots/list", {"a": 1})
    await until(lambda: len(line.server.replies()) == 3)
    assert sorted(line.server.replies(), key=str) == [
        {"jsonrpc": "2.0", "id": "1", "result": {}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 2, "result": {"roots": []}},
    ]
    assert handler.asked == [InputRequest("roots/list", {"a": 1})]


@pytest.mark.requirement("PROG-07")
async def test_no_progress_is_sent_for_a_server_request(connect: Connect, until: Until) -> None:
    handler = ScriptedHandler(roots={"roots": []}, sampling={"role": "assistant"}, elicitation=InputRefused(-1, "no"))
    line = await connect(capabilities={"roots": {}, "sampling": {}, "elicitation": {}}, handler=handler)
    methods = ("roots/list", "sampling/createMessage", "elicitation/create", "ping", "zzz/x")
    for number, method in enumerate(methods):
        line.server.asks(number, method, {"_meta": {"progressToken": f"t{number}"}})
    await until(lambda: len(line.server.replies()) == len(methods))
    assert line.server.methods() == ["initialize", "notifications/initialized", *["reply"] * len(methods)]


@pytest.mark.hostile("J13")
@pytest.mark.requirement("LIFE-25", "MSG-10", "CAP-01", "ERR-07")
@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "foo/bar", "tools/list", "\x1b[2J"])
async def test_undeclared_requests_are_refused_before_the_handler(connect: Connect, until: Until, method: str) -> None:
    handler = ScriptedHandler()
    line = await connect(capabilities={"roots": {}}, handler=handler)
    line.server.asks(9, method, {})
    await until(line.server.replies)
    assert line.server.replies()[0]["error"]["code"] == ErrorCode.METHOD_NOT_FOUND
    assert handler.asked == []


@pytest.mark.requirement("MSG-08", "MSG-09", "MSG-20")
@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (ValueError(SECRET), {"code": -32603, "message": "mcphost failed to answer"}),
        (ConnectionLost(SECRET, stderr_tail=[SECRET]), {"code": -32603, "message": "mcphost failed to answer"}),
        (ExceptionGroup(SECRET, [OSError(SECRET)]), {"code": -32603, "message": "mcphost failed to answer"}),
        (asyncio.CancelledError(SECRET), {"code": -32603, "message": "mcphost failed to answer"}),
        (InputRefused(-1, "rejected by the user"), {"code": -1, "message": "rejected by the user"}),
    ],
)
async def test_a_handler_that_fails_still_answers_and_tells_nothing(
    until: Until, failure: BaseException, error: dict[str, Any]
) -> None:
    line = Queue(ScriptedHandler(roots=failure))
    line.queue.take(Request(1, "roots/list"))
    await until(lambda: line.sent)
    assert line.replies() == [{"jsonrpc": "2.0", "id": 1, "error": error}]
    assert SECRET not in str(line.notes)


@pytest.mark.requirement("CANC-04", "CANC-06", "CANC-08")
async def test_a_question_taken_back_is_stopped_and_not_answered(connect: Connect, until: Until) -> None:
    handler = ScriptedHandler(sampling=NEVER)
    line = await connect(capabilities={"sampling": {}}, handler=handler)
    line.server.asks(1, "sampling/createMessage")
    await until(lambda: handler.asked)
    strangers: list[object] = ["1", 1.0, True, 2, None, []]
    for stranger in strangers:
        line.server.says("notifications/cancelled", {"requestId": stranger})
    await line.client.ping()
    assert not handler.cancelled
    line.server.says("notifications/cancelled", {"requestId": 1, "reason": "changed my mind"})
    await until(lambda: handler.cancelled)
    line.server.says("notifications/cancelled", {"requestId": 1})
    await line.client.ping()
    assert line.server.replies() == []
    assert line.notes.all("noted") == ["the server took back its request: changed my mind"]


@pytest.mark.hostile("F03", "F09")
@pytest.mark.requirement("PING-01", "MSG-10")
async def test_requests_over_the_limit_are_refused_and_pings_answered(until: Until) -> None:
    handler = ScriptedHandler(sampling=NEVER)
    line = Queue(handler, limit=2)
    for number in range(100):
        line.queue.take(Request(number, "sampling/createMessage"))
    line.queue.take(Request("p", "ping"))
    await until(lambda: len(line.sent) == 99)
    assert [reply["id"] for reply in line.replies()] == [*range(2, 100), "p"]
    assert {reply["error"]["code"] for reply in line.replies()[:-1]} == {ErrorCode.INTERNAL_ERROR}
    assert len(handler.asked) == 2
    assert line.notes == ["refused the server's request 2: 2 requests are waiting already"]
    line.queue.cancel(0, None)
    await until(lambda: handler.cancelled)
    await until(lambda: line.notes[-1] == "refused 98 of the server's requests in all: 2 were waiting")
    line.queue.take(Request(100, "sampling/createMessage"))
    await until(lambda: len(handler.asked) == 3)
    await line.queue.aclose()


@pytest.mark.hostile("F11")
async def test_an_id_in_use_stays_with_its_question(until: Until) -> None:
    handler = ScriptedHandler(sampling=NEVER, roots={"roots": []})
    line = Queue(handler)
    for _ in range(100):
        line.queue.take(Request(1, "sampling/createMessage"))
    line.queue.take(Request("1", "roots/list"))
    await until(lambda: line.sent)
    assert [reply["id"] for reply in line.replies()] == ["1"]
    assert [request.method for request in handler.asked] == ["sampling/createMessage", "roots/list"]
    assert len(line.notes) == 99
    await line.queue.aclose()


@pytest.mark.hostile("F03")
async def test_a_server_that_reads_no_answers_does_not_fill_our_memory(until: Until) -> None:
    line = Queue(NothingOffered())
    line.pipe = asyncio.Event()
    for number in range(QUICK_REPLIES + 50):
        line.queue.take(Request(number, "ping"))
    assert len(line.notes) == 50
    line.pipe.set()
    await until(lambda: len(line.sent) == QUICK_REPLIES)
    await line.queue.aclose()


async def test_an_answer_that_cannot_be_delivered_is_noted(until: Until) -> None:
    line = Queue(NothingOffered())
    line.pipe = ConnectionLost("gone")
    line.queue.take(Request(1, "roots/list"))
    line.queue.take(Request(2, "ping"))
    await until(lambda: len([note for note in line.notes if note.endswith("was not delivered: gone")]) == 2)


@pytest.mark.requirement("CANC-04")
async def test_a_lost_connection_stops_every_answer(connect: Connect, until: Until) -> None:
    handler = ScriptedHandler(sampling=NEVER)
    line = await connect(capabilities={"sampling": {}}, handler=handler)
    for number in range(3):
        line.server.asks(number, "sampling/createMessage")
    await until(lambda: len(handler.asked) == 3)
    line.client.closed(ConnectionLost("gone"))
    await until(lambda: len(handler.cancelled) == 3)
    line.server.asks(9, "sampling/createMessage")
    line.server.asks(10, "ping")
    await asyncio.sleep(0)
    assert line.server.replies() == []
    assert len(handler.asked) == 3


BOTH = ClientCapabilities(roots=True, elicitation=frozenset({"form", "url"}))
CHANGED = Notification("notifications/roots/list_changed")


@pytest.mark.requirement("ELIC-01", "ELIC-11", "ELIC-13")
async def test_what_was_declared_last_is_what_holds(draw: Draw, until: Until) -> None:
    refusal = ErrorObject(-32602, "Unsupported protocol version", {"supported": ["2025-06-18"]})
    line = draw(
        {"initialize": [refusal, hello(V2025_06_18)]},
        capabilities=BOTH.under,
        handler=ScriptedHandler(elicitation={"action": "cancel"}),
    )
    await line.client.connect(5)
    said = [(request.params or {})["capabilities"]["elicitation"] for request in line.server.requests("initialize")]
    assert said == [{"form": {}, "url": {}}, {}]
    modes: list[dict[str, Any]] = [{}, {"mode": None}, {"mode": "form"}, {"mode": "url"}, {"mode": ["form"]}]
    for number, mode in enumerate(modes):
        line.server.asks(number, "elicitation/create", mode)
    await until(lambda: len(line.server.replies()) == len(modes))
    replies = sorted(line.server.replies(), key=lambda reply: int(reply["id"]))
    assert ["error" in reply for reply in replies] == [False, False, False, True, True]
    assert {reply["error"]["code"] for reply in replies[3:]} == {-32602}


@pytest.mark.requirement("ROOT-04")
@pytest.mark.parametrize("declared", [True, False])
async def test_a_change_of_the_roots_is_told_where_that_was_said(connect: Connect, declared: bool) -> None:
    line = await connect(capabilities=ClientCapabilities(roots=declared).under)
    await line.client.notify_roots_changed()
    assert (CHANGED in line.server.sent) is declared
    await line.client.aclose()
    await line.client.notify_roots_changed()
    assert line.server.sent.count(CHANGED) == int(declared)


@pytest.mark.requirement("ROOT-04", "CAP-01")
@pytest.mark.parametrize("roots", [{}, {"listChanged": False}, {"listChanged": None}])
async def test_changed_roots_are_notified_only_if_declared(connect: Connect, roots: dict[str, Any]) -> None:
    line = await connect(capabilities={"roots": roots})
    await line.client.notify_roots_changed()
    assert CHANGED not in line.server.sent


@pytest.mark.requirement("ELIC-22")
async def test_the_end_of_a_page_is_passed_on(connect: Connect) -> None:
    line = await connect()
    for elicitation in ("e1", 7, None, "e2"):
        line.server.says("notifications/elicitation/complete", {"elicitationId": elicitation})
    assert line.notes.all("completed") == ["e1", "e2"]


@pytest.mark.requirement("ELIC-09")
@pytest.mark.parametrize("as_task", [False, True])
async def test_a_call_has_no_timeout_while_its_server_waits(draw: Draw, until: Until, as_task: bool) -> None:
    asked = ScriptedHandler(sampling=NEVER)
    greeting = hello(V2025_11_25, capabilities={"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}})
    script: dict[str, Any] = {"initialize": greeting, "tools/call": NEVER, "ping": NEVER}
    line = draw(script, capabilities={"sampling": {}}, handler=asked)
    await line.client.connect(5)
    line.server.asks("q", "sampling/createMessage", {})
    await until(lambda: asked.asked)
    verb = line.client.tasks.call_tool if as_task else line.client.call_tool
    call = asyncio.create_task(verb("x", timeouts=RequestTimeouts(0.05, 0.06)))
    with pytest.raises(RequestTimeout):  # a ping needs no answer of the user
        await line.client.ping(0.1)
    assert not call.done()
    line.server.says("notifications/cancelled", {"requestId": "q"})
    with pytest.raises(RequestTimeout):
        await call


@pytest.mark.requirement("ELIC-09")
async def test_what_was_left_of_the_time_is_left_afterwards() -> None:
    deadlines, now = Deadlines(), asyncio.get_running_loop().time
    with Deadline(deadlines, 5, 8, pausable=True) as early, Deadline(deadlines, 5, 8) as other:
        before, unheld = early.at, other.at
        with deadlines.paused(), deadlines.paused():
            await asyncio.sleep(0.03)
            with Deadline(deadlines, 5, 8, pausable=True) as late:
                began = now()
        assert 0.03 <= early.at - before < 4
        assert late.at - began == pytest.approx(5, abs=1)
        assert other.at == unheld
        early.extend()
        assert early.at == pytest.approx(now() + 5, abs=1)
    deadlines.close()


@pytest.mark.requirement("MSG-08")
async def test_who_leaves_answers_what_is_open_first(connect: Connect) -> None:
    class Leaving(ScriptedHandler):
        def __init__(self) -> None:
            super().__init__()
            self.gone = asyncio.Event()

        async def answer(self, request: Any) -> Any:
            await self.gone.wait()
            return {"action": "cancel"}

        def leave(self) -> None:
            self.gone.set()

    line = await connect(capabilities={"elicitation": {}}, handler=Leaving())
    line.server.asks(1, "elicitation/create", {})
    await asyncio.sleep(0)
    await line.client.aclose()
    assert [reply["result"] for reply in line.server.replies()] == [{"action": "cancel"}]


def test_only_the_newest_of_these_revisions_has_pages() -> None:
    assert (V2025_06_18.elicitation, V2025_11_25.elicitation) == (("form",), ("form", "url"))
