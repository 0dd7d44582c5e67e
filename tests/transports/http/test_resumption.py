from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from mcphost.errors import (
    AuthorizationRequired,
    ConnectionLost,
    HttpStatusError,
    InvalidResult,
    McphostError,
    SessionExpired,
)
from mcphost.protocol.wire.jsonrpc import Malformed, Message, Notification
from mcphost.transports.base import TransportLimits
from mcphost.transports.http import resumption, streamable
from mcphost.transports.http.responses import MessageReader
from mcphost.transports.http.resumption import ResumableStream
from tests.conftest import Until
from tests.loop_watchdog import LoopWatchdog
from tests.transports.http.http_connection import PROMPT, Echo, Talk, connected, spoiling
from tests.transports.processes import RecordingObserver


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits that are ours are a tenth of what they are; those the server names are its own."""
    monkeypatch.setattr(resumption, "FIRST_WAIT", 0.1)
    monkeypatch.setattr(resumption, "SHORTEST", 0.05)


# A stream that breaks off before its answer


@pytest.mark.hostile("H10")
@pytest.mark.requirement("SSE-03", "SSE-04", "SSE-06", "SSE-08", "HTTP-22")
async def test_a_broken_stream_is_resumed_without_repetition() -> None:
    async with connected(Echo()) as line:
        assert await line.call("breaks", count=3) == "whole"
        assert line.words == ["part 0", "part 1", "part 2"]
        gets = line.web.seen("GET")
        assert [visit.headers["last-event-id"] for visit in gets] == [f"stream-2/{number}" for number in (1, 2, 3)]
        assert {visit.headers["mcp-session-id"] for visit in gets} == {"session-1!"}
        assert len(line.web.seen("POST")) == 3
        assert line.inbox.strays == []


@pytest.mark.requirement("SSE-07")
@pytest.mark.parametrize("retry", [60, 150, 300])
async def test_the_retry_delay_of_the_server_is_kept_exactly(retry: int) -> None:
    times: list[float] = []
    echo = Echo()

    def serve(talk: Talk) -> None:
        times.append(time.monotonic())
        echo(talk)
        times.append(time.monotonic())

    async with connected(serve) as line:
        assert await line.call("breaks", count=2, retry=retry) == "whole"
    waits = [times[8] - times[7], times[6] - times[5]]
    assert all(retry / 1000 - 0.002 <= wait < retry / 1000 + PROMPT for wait in waits), waits


@pytest.mark.requirement("SSE-05")
async def test_each_stream_is_resumed_at_its_own_place() -> None:
    async with connected(Echo()) as line:
        calls = [line.call("breaks", count=2), line.call("breaks", count=1), line.call("breaks", count=1, ids=False)]
        *whole, lost = await asyncio.gather(*calls, return_exceptions=True)
        assert whole == ["whole", "whole"]
        assert isinstance(lost, ConnectionLost)
        places = sorted(visit.headers["last-event-id"] for visit in line.web.seen("GET"))
        assert places == ["stream-2/1", "stream-2/2", "stream-3/1"]


@pytest.mark.requirement("SSE-05")
async def test_a_reset_event_id_is_not_sent_again() -> None:
    """An empty id means that there is no place to go on from."""
    echo, said = Echo(), iter([b"id: 1\n\n", b"id\n\n"])

    def serve(talk: Talk) -> None:
        if talk.command != "GET" and b"act" not in talk.visit.body:
            echo(talk)
            return
        event = next(said, None)
        if event is None:
            talk.whole(405)
            return
        talk.begin_events()
        talk.events(event)
        talk.end_events()

    async with connected(serve) as line:
        with pytest.raises(ConnectionLost, match="ended the answer's stream before the answer"):
            await line.call()
        assert [visit.headers.get("last-event-id") for visit in line.web.seen("GET")] == ["1"]


@pytest.mark.requirement("SSE-05", "HTTP-19")
async def test_the_listening_stream_forgets_a_reset_event_id(until: Until) -> None:
    echo, said = Echo(), iter([b"id: 1\n\n", b"id\n\n"])

    def serve(talk: Talk) -> None:
        if talk.command != "GET":
            echo(talk)
            return
        talk.begin_events()
        event = next(said, None)
        if event is None:
            talk.linger()
            return
        talk.events(event)
        talk.end_events()

    async with connected(serve) as line:
        listening = asyncio.create_task(line.transport.listen())
        await until(lambda: len(line.web.seen("GET")) == 3)
        assert [visit.headers.get("last-event-id") for visit in line.web.seen("GET")] == [None, "1", None]
        listening.cancel()


@pytest.mark.hostile("J10")
@pytest.mark.requirement("SSE-11", "HTTP-25")
@pytest.mark.parametrize(
    ("said", "ends"),
    [
        ([b"data: {oops\n\n"], "invalid: not JSON"),
        ([b"id: 1\ndata: {oops\n\n", None], "invalid: not JSON"),
        ([b"data: {oops\n\n", {"jsonrpc": "2.0", "method": "n"}], ""),
        ([b'data: {"method":"n",oops\n\n'], ""),
        ([b"data: ping\n\n"], ""),
        ([b"data: {}\n\n"], ""),
    ],
    ids=["garbled", "garbled-and-resumed", "goes-on-speaking", "a-garbled-notification", "a-heartbeat", "an-object"],
)
async def test_a_broken_event_that_must_be_the_answer_fails_the_call(
    said: list[bytes | dict[str, object] | None], ends: str, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    """And any other is passed over: the answer may take its time."""
    monkeypatch.setattr(streamable, "GARBLED", 0.1)
    echo, left = Echo(), iter(said)

    def serve(talk: Talk) -> None:
        if talk.command != "GET" and b"act" not in talk.visit.body:
            echo(talk)
            return
        talk.begin_events()
        for event in left:
            if event is None:
                talk.end_events()
                return
            talk.events(event)
        talk.linger()

    async with connected(serve) as line:
        call = asyncio.create_task(line.call())
        if ends:
            with pytest.raises(InvalidResult, match=ends):
                await asyncio.wait_for(call, PROMPT)
        else:
            await until(lambda: line.inbox.problems)
            await asyncio.wait([call], timeout=0.5)
            assert not call.done()
            call.cancel()
        await until(lambda: line.web.hung_up)


@pytest.mark.requirement("SSE-10", "HTTP-25")
@pytest.mark.parametrize(
    ("status", "failure"),
    [(405, HttpStatusError), (400, HttpStatusError), (404, SessionExpired), (401, AuthorizationRequired)],
)
async def test_a_stream_that_cannot_be_resumed_fails_the_call(status: int, failure: type[McphostError]) -> None:
    echo = Echo()
    async with connected(lambda talk: talk.whole(status) if talk.command == "GET" else echo(talk)) as line:
        with pytest.raises(failure):
            await line.call("breaks", count=1)
        assert len(line.web.seen("GET")) == 1


@pytest.mark.requirement("SSE-06", "HTTP-33")
async def test_an_outage_during_a_stream_is_waited_out() -> None:
    echo, troubles = Echo(), iter([503, 0])

    def serve(talk: Talk) -> None:
        trouble = next(troubles, None) if talk.command == "GET" else None
        if trouble == 0:
            talk.close_connection = True
        elif trouble:
            talk.whole(trouble)
        else:
            echo(talk)

    async with connected(serve) as line:
        assert await line.call("breaks", count=1) == "whole"
        assert len(line.web.seen("GET")) == 3


@pytest.mark.hostile("H04")
@pytest.mark.requirement("SSE-09")
async def test_endless_fruitless_connections_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt is numbered in the traffic."""
    monkeypatch.setattr(resumption, "SHORTEST", 0.001)
    monkeypatch.setattr(resumption, "MOST_FRUITLESS", 6)
    observer = RecordingObserver()
    async with connected(spoiling("storm"), observer=observer) as line:
        began = time.monotonic()
        with pytest.raises(ConnectionLost, match=r"too many times in a row \(.*; 7 in a row brought nothing, 6 may\)"):
            await line.call()
        assert time.monotonic() - began > 0.001 * (1 + 2 + 4 + 8 + 16 + 32)
        assert len(line.web.seen("GET")) == 6
    told = [text.splitlines()[0].partition("  ")[2] for text in observer.of("http") if text.startswith("GET ")]
    assert told == [
        f"(connection {try_ + 1} of this stream; {try_} in a row brought nothing, 6 may)" for try_ in range(1, 7)
    ]


@pytest.mark.hostile("H04")
async def test_giving_up_the_listening_stream_fails_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "SHORTEST", 0.001)
    monkeypatch.setattr(resumption, "MOST_FRUITLESS", 6)
    async with connected(spoiling("storm")) as line:
        with pytest.raises(ConnectionLost, match="broke off too many times"):
            await line.transport.listen()
        assert len(line.web.seen("GET")) == 7
        assert await line.call("echo", text="x") == "x"


@pytest.mark.hostile("H10")
@pytest.mark.requirement("HTTP-22", "SSE-08")
async def test_replayed_events_answer_their_call_once_and_no_other() -> None:
    """Earlier messages, answers of other calls, and the same answer twice."""
    echo = Echo()

    def event(name: str, message: dict[str, object]) -> bytes:
        return f"id: {name}\ndata: {json.dumps({'jsonrpc': '2.0', **message})}\n\n".encode()

    def said(request_id: int, words: str) -> dict[str, object]:
        return {"id": request_id, "result": {"content": [{"type": "text", "text": words}]}}

    first = event("a", {"method": "notifications/message", "params": {"data": "one"}})
    others = [event("b", said(1, "wrong")), event("c", said(3, "wrong")), event("d", {"id": "s", "method": "ping"})]
    end = [event("e", said(2, "right")), event("f", said(2, "wrong"))]
    connections = iter([[first], [first, *others], [first, *others, *end]])

    def serve(talk: Talk) -> None:
        if talk.command != "GET" and b"act" not in talk.visit.body:
            echo(talk)
            return
        talk.begin_events()
        talk.events(*next(connections))
        talk.end_events()

    async with connected(serve) as line:
        assert await line.call() == "right"
        assert [visit.headers["last-event-id"] for visit in line.web.seen("GET")] == ["a", "d"]
        assert line.words == ["one"]
        assert [message.method for message in line.inbox.messages] == ["notifications/message", "ping"]
        assert [answer.id for answer in line.inbox.strays][:2] == [1, 3]
        assert {answer.id for answer in line.inbox.strays[2:]} <= {2}
        assert len([visit for visit in line.web.seen("POST") if b"act" in visit.body]) == 1


class Pieces:
    """A connection that brings these bytes and ends."""

    def __init__(self, text: str) -> None:
        self._left = [text.encode()]

    def __aiter__(self) -> Pieces:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()


NOTE = 'data: {"jsonrpc":"2.0","method":"n"}\n\n'


@pytest.mark.hostile("H04", "H05")
@pytest.mark.requirement("SSE-07", "SSE-09")
@pytest.mark.parametrize(
    ("connections", "waits", "exhausted"),
    [
        ([""] * 4, [0.1, 0.2, 0.4, 0.8], False),
        (["retry: 0\nid: 1\n\n"] * 4, [0.05, 0.1, 0.2, 0.4], False),
        ([f"retry: 500\nid: {number}\n\n" for number in range(40)], [0.5] * 40, False),
        (["retry: 500\nid: 1\n\n"] * 12, [0.5] * 12, True),
        (["retry: 999999999999\n\n"], [60.0], False),
        (["retry: -5\nretry: soon\n\n"], [0.1], False),
        (["", "", NOTE, "", ""], [0.1, 0.2, 0.1, 0.1, 0.2], False),
        ([""] * 11, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0], True),
    ],
)
async def test_delays_grow_unless_the_server_sets_them(
    connections: list[str], waits: list[float], exhausted: bool
) -> None:
    came: list[Message | Malformed] = []
    stream = ResumableStream(MessageReader(TransportLimits(), None), came.append)
    measured = []
    for text in connections:
        await stream.read(Pieces(text), lambda: False)
        measured.append(stream.wait())
    assert measured == pytest.approx(waits)
    assert stream.exhausted is exhausted


@pytest.mark.requirement("SSE-05")
@pytest.mark.parametrize("bad", ["x" * 1025, "a\x07b", " 7", "\u202e"])
async def test_an_id_that_fits_no_header_is_not_resumed_from(bad: str) -> None:
    stream = ResumableStream(MessageReader(TransportLimits(), None), lambda _: None)
    await stream.read(Pieces(f"id: ok \u00e9\n{NOTE}"), lambda: False)
    assert stream.last_id == "ok \u00e9"
    await stream.read(Pieces(f"id: {bad}\n{NOTE}"), lambda: False)
    assert stream.last_id == ""


@pytest.mark.requirement("SSE-02", "SSE-03")
@pytest.mark.parametrize("text", [": hm\r\n\r\n" * 9, "event: heartbeat\ndata: x\n\n" * 9, "id: 1\ndata:\n\n"])
async def test_invalid_events_have_no_effect(text: str) -> None:
    came: list[Message | Malformed] = []
    stream = ResumableStream(MessageReader(TransportLimits(), None), came.append)
    await stream.read(Pieces(text + NOTE), lambda: False)
    assert [type(message) for message in came] == [Notification]


# The stream a server speaks on unasked


@pytest.mark.hostile("H10")
@pytest.mark.requirement("HTTP-19", "BATCH-01")
async def test_messages_on_the_listening_stream_answer_no_call(until: Until) -> None:
    echo = Echo()
    echo.unasked += [
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        {"jsonrpc": "2.0", "id": 1, "method": "roots/list"},
        {"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "wrong"}]}},
    ]
    async with connected(echo) as line:
        call = asyncio.create_task(line.call("sleep"))
        listening = asyncio.create_task(line.transport.listen())
        await until(lambda: len(line.inbox.messages) == 2 and line.inbox.strays)
        assert not call.done()
        for task in (call, listening):
            task.cancel()
        await until(lambda: len(line.web.hung_up) == 2)


@pytest.mark.requirement("HTTP-20")
@pytest.mark.parametrize("status", [405, 404])
async def test_a_server_without_a_listening_stream_is_asked_once(status: int) -> None:
    echo = Echo()
    async with connected(lambda talk: talk.whole(status) if talk.command == "GET" else echo(talk)) as line:
        await asyncio.wait_for(line.transport.listen(), 15)
        assert await line.call("echo", text="x") == "x"
        assert len(line.web.seen("GET")) == 1


@pytest.mark.requirement("SSE-06", "SSE-08", "SSE-09")
async def test_replays_on_a_reopened_stream_are_known_by_their_ids(until: Until) -> None:
    echo, turn = Echo(), iter(range(100))

    def serve(talk: Talk) -> None:
        if talk.command != "GET":
            echo(talk)
            return
        number = next(turn)
        talk.begin_events()
        for event in range(max(number - 1, 0), number + 1):
            talk.events(f"id: {event}\n".encode(), {"jsonrpc": "2.0", "method": "n", "params": {"data": event}})
        talk.end_events() if number < 3 else talk.linger()

    async with connected(serve) as line:
        listening = asyncio.create_task(line.transport.listen())
        await until(lambda: len(line.inbox.messages) == 4)
        assert line.words == [0, 1, 2, 3]
        assert [visit.headers.get("last-event-id") for visit in line.web.seen("GET")] == [None, "0", "1", "2"]
        await line.transport.aclose()
        with suppress(asyncio.CancelledError), pytest.raises(ConnectionLost, match="mcphost closed the connection"):
            await listening


@pytest.mark.hostile("H12")
@pytest.mark.requirement("SSE-09")
@pytest.mark.parametrize(
    ("status", "failure"), [(401, AuthorizationRequired), (400, HttpStatusError), (501, HttpStatusError)]
)
async def test_a_failed_listening_stream_blocks_no_call(status: int, failure: type[McphostError]) -> None:
    echo = Echo()
    async with connected(lambda talk: talk.whole(status) if talk.command == "GET" else echo(talk)) as line:
        with pytest.raises(failure):
            await line.transport.listen()
        assert await line.call("echo", text="x") == "x"
        assert len(line.web.seen("GET")) == 1


@pytest.mark.requirement("SSE-09")
@pytest.mark.parametrize("status", [429, 503])
async def test_a_listening_stream_refused_at_first_is_tried_again(status: int, until: Until) -> None:
    echo = Echo()
    echo.unasked.append({"jsonrpc": "2.0", "method": "n", "params": {"data": "here"}})
    asked = iter(range(100))

    def serve(talk: Talk) -> None:
        talk.whole(status) if talk.command == "GET" and not next(asked) else echo(talk)

    async with connected(serve) as line:
        listening = asyncio.create_task(line.transport.listen())
        await until(lambda: line.words == ["here"])
        assert len(line.web.seen("GET")) == 2
        listening.cancel()


@pytest.mark.parametrize("first", [True, False], ids=["from-the-start", "after-a-while"])
async def test_an_unreachable_listening_stream_is_given_up_soon(first: bool, until: Until) -> None:
    """The caller can then check the server, and report that it is gone."""
    async with connected(Echo()) as line:
        listening = None if first else asyncio.create_task(line.transport.listen())
        await until(lambda: first or line.web.seen("GET"))
        line.web.__exit__()
        with pytest.raises(ConnectionLost, match="nothing listens"):
            await asyncio.wait_for(listening or line.transport.listen(), 15)


@pytest.mark.hostile("H07")
async def test_an_event_over_the_limit_does_not_end_the_stream(until: Until) -> None:
    echo = Echo()
    echo.unasked += [{"jsonrpc": "2.0", "method": "n", "params": {"data": data}} for data in ("x" * 150_000, "next")]
    async with connected(echo) as line:
        listening = asyncio.create_task(line.transport.listen())
        await until(lambda: line.words == ["next"])
        assert [problem.reason for problem in line.inbox.problems] == ["an event over the limit of 100 kB"]
        assert len(line.web.seen("GET")) == 1
        listening.cancel()


async def pieces_of(data: bytes) -> AsyncIterator[bytes]:
    for place in range(0, len(data), 1 << 18):
        yield data[place : place + (1 << 18)]


def notice(params: str) -> bytes:
    return f'data: {{"jsonrpc":"2.0","method":"n","params":{{{params}}}}}\n\n'.encode()


@pytest.fixture
def large() -> bytes:
    return notice(",".join(f'"{n:x}":0' for n in range(1_000_000)))


@pytest.mark.slow
async def test_a_large_event_is_read_in_slices_and_not_overtaken(large: bytes, loop_watchdog: LoopWatchdog) -> None:
    came: list[Message | Malformed] = []
    stream = ResumableStream(MessageReader(TransportLimits(), None), came.append)
    await stream.read(pieces_of(large + notice("") + large), lambda: False)
    assert [len(message.params or {}) for message in came if isinstance(message, Notification)] == [10**6, 0, 10**6]
    assert loop_watchdog.longest < 0.25


async def test_a_flood_of_events_leaves_time_for_other_servers(loop_watchdog: LoopWatchdog) -> None:
    came: list[Message | Malformed] = []
    stream = ResumableStream(MessageReader(TransportLimits(), None), came.append)
    await stream.read(pieces_of(notice("") * 100_000), lambda: False)
    assert len(came) == 100_000
    assert loop_watchdog.longest < 0.25
