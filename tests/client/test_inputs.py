from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.client.inputs import QUICK_REPLIES, InputHandler, InputQueue, InputRefused, InputRequest, NothingOffered
from mcphost.errors import ConnectionLost
from mcphost.protocol.jsonrpc import ErrorCode, Request, Response
from tests.client.conftest import Connect
from tests.client.scripted import NEVER
from tests.conftest import Until

SECRET = "sk-planted-canary /home/me/.ssh/id_rsa"


class ScriptedHandler:
    """Answers each method as the script says, and keeps what was asked and what was taken back."""

    def __init__(self, **script: Any) -> None:
        self.script = script
        self.asked: list[InputRequest] = []
        self.cancelled: list[str] = []

    def leave(self) -> None:
        self.left = True

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        self.asked.append(request)
        answer = self.script[request.method.split("/")[0]]
        try:
            if isinstance(answer, BaseException):
                raise answer
            if answer is NEVER:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.append(request.method)
            raise
        given: Mapping[str, Any] = answer
        return given


class Queue:
    """An open queue with a record of what it sent and noted."""

    def __init__(self, handler: InputHandler, limit: int = 32) -> None:
        self.sent: list[Response] = []
        self.notes: list[str] = []
        self.pipe: asyncio.Event | Exception = asyncio.Event()
        self.pipe.set()
        self.queue = InputQueue(handler, self._reply, self.notes.append, limit)
        self.queue.open_for_all = True

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
async def test_an_answer_comes_without_progress_whatever_token_the_question_brought(
    connect: Connect, until: Until
) -> None:
    handler = ScriptedHandler(roots={"roots": []}, sampling={"role": "assistant"}, elicitation=InputRefused(-1, "no"))
    line = await connect(capabilities={"roots": {}, "sampling": {}, "elicitation": {}}, handler=handler)
    methods = ("roots/list", "sampling/createMessage", "elicitation/create", "ping", "zzz/x")
    for number, method in enumerate(methods):
        line.server.asks(number, method, {"_meta": {"progressToken": f"t{number}"}})
    await until(lambda: len(line.server.replies()) == len(methods))
    assert line.server.methods() == ["initialize", "notifications/initialized", *["reply"] * len(methods)]


@pytest.mark.requirement("LIFE-25", "MSG-10", "CAP-01", "ERR-07")
@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "foo/bar", "tools/list", "\x1b[2J"])
async def test_what_was_not_declared_is_refused_and_no_handler_hears_of_it(
    connect: Connect, until: Until, method: str
) -> None:
    """J13"""
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


@pytest.mark.requirement("PING-01", "MSG-10")
async def test_beyond_the_limit_requests_are_refused_and_pings_still_answered(until: Until) -> None:
    """F03, F09"""
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
    line.queue.take_back(0, None)
    await until(lambda: handler.cancelled)
    await until(lambda: line.notes[-1] == "refused 98 of the server's requests in all: 2 were waiting")
    line.queue.take(Request(100, "sampling/createMessage"))
    await until(lambda: len(handler.asked) == 3)
    await line.queue.aclose()


async def test_an_id_in_use_stays_with_its_question(until: Until) -> None:
    """F11"""
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


async def test_a_server_that_reads_no_answers_does_not_fill_our_memory(until: Until) -> None:
    """F03"""
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
