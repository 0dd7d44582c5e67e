from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import Config, Values
from mcphost.errors import ConfigError, ConnectionLost, Declined, NotDone, ServerError
from mcphost.host.events import TrafficAdded
from mcphost.host.recordings.recording import RecordingFacts
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.tool_calls.current import current_call
from mcphost.host.traffic import book as traffic_book
from mcphost.host.traffic import file as traffic_file
from mcphost.host.traffic import message as message_module
from mcphost.host.traffic import message as messages
from mcphost.host.traffic.book import ServerTap, TrafficBook, TrafficBudget, read_traffic
from mcphost.host.traffic.message import MessageKind, TrafficMessage, metadata_words, read_facts
from mcphost.host.traffic.redactions import TrafficTarget
from mcphost.host.traffic.resending import ResentRequest, request_in
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.stdio.transport import Command, StdioTransport
from tests.conftest import Until
from tests.host.conftest import NO, HostOf, RecordingHost, echo, hostile

CANARY = "canary-0123456789"
SECRETS = Values({})
SECRETS.remember(CANARY)
SECRETS.remember('cañary"67890')


def encoded(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"), ensure_ascii=False).encode()


def request(number: int | str, method: str = "tools/call", **params: Any) -> bytes:
    return encoded(id=number, method=method, params=params)


def answer(number: int | str, **result: Any) -> bytes:
    return encoded(id=number, result=result)


class Book(TrafficBook):
    """A book with a clock to turn, a count of the reports of new ones and a tap for the server `a`."""

    def __init__(self, **more: Any) -> None:
        self.now, self.added = 100.0, 0
        super().__init__(
            SECRETS.mask, self.count_added, clock=lambda: 1e9 + self.now, monotonic=lambda: self.now, **more
        )
        self.a = self.tap("a")

    def count_added(self) -> None:
        self.added += 1

    @property
    def texts(self) -> list[str]:
        return [message.raw() for message in self.since(0)]

    @property
    def last(self) -> TrafficMessage:
        return self.since(0)[-1]


@pytest.fixture
def book() -> Book:
    return Book()


# What a message is


@pytest.mark.parametrize(
    ("data", "kind", "method", "number", "status"),
    [
        (request(1, "ping"), MessageKind.REQUEST, "ping", 1, ("waiting",)),
        (answer("x"), MessageKind.RESPONSE, "", "x", ("ok",)),
        (answer(1, isError=True), MessageKind.RESPONSE, "", 1, ("failed",)),
        (answer(1, isError="true"), MessageKind.RESPONSE, "", 1, ("failed",)),
        (encoded(id=1, error={"code": -32601, "message": "no"}), MessageKind.ERROR, "", 1, ("error", "-32601")),
        (encoded(method="notifications/initialized"), MessageKind.NOTIFICATION, "notifications/initialized", None, ()),
        (b"[" + request(1) + b"," + answer(2) + b"]", MessageKind.BATCH, "", None, ()),
        (b"[" + answer(2) + b"]", MessageKind.BATCH, "", None, ()),
        (b"[]", MessageKind.MALFORMED, "", None, ("error",)),
        (b'{"jsonrpc":"2.0","id":7,"result":5}', MessageKind.MALFORMED, "", 7, ("error",)),
        (b'{"jsonrpc":"2.0","id":7,"result":{}', MessageKind.STRAY, "", 7, ("error",)),
        (b"Listening on stdio", MessageKind.STRAY, "", None, ("error",)),
        (b"\xff\xfe", MessageKind.STRAY, "", None, ("error",)),
        (b"[" * 100_000, MessageKind.MALFORMED, "", None, ("error",)),
    ],
)
def test_a_frame_says_what_it_is(
    book: Book, data: bytes, kind: MessageKind, method: str, number: int | str | None, status: tuple[str, ...]
) -> None:
    book.a.received(data)
    message = book.last
    assert (message.kind, message.method, message.id, message.status) == (kind, method, number, status)
    assert (message.direction, message.size, message.server) == ("in", len(data), "a")


def test_what_stands_between_messages_keeps_its_place_and_its_kind(book: Book) -> None:
    book.a.noted("http", "POST https://h/mcp\nA: b")
    book.a.sent(request(1))
    book.a.noted("http", "HTTP 404 Not Found")
    book.a.noted("stderr", "Traceback")
    told = [(message.kind.value, message.direction, message.status) for message in book.since(0)]
    assert told == [
        ("http", "out", ()),
        ("request", "out", ("waiting",)),
        ("http", "in", ("404",)),
        ("stderr", "in", ()),
    ]


@pytest.fixture(scope="module")
def large_rest() -> tuple[bytes, float]:
    """The end of a large object, and the seconds in which it is read whole."""
    rest = b",".join(b'"%x":0' % n for n in range(300_000)) + b"}"
    began = time.thread_time()
    json.loads(b"{" + rest)
    return rest, time.thread_time() - began


@pytest.mark.parametrize(
    ("start", "kind"), [(b'{"a":1,', MessageKind.MALFORMED), (b" [", MessageKind.BATCH), (b"text", MessageKind.STRAY)]
)
def test_a_large_text_that_is_not_a_message_is_not_read_whole(
    large_rest: tuple[bytes, float], start: bytes, kind: MessageKind
) -> None:
    rest, whole = large_rest
    text = start + rest
    began = time.thread_time()
    assert read_facts(text, whole=True).kind is kind
    assert time.thread_time() - began < whole / 2


@pytest.mark.parametrize(
    ("large", "small"),
    [
        (answer(5, text="x" * 5000), answer(5)),
        (b'{"result":{"a":"' + b"x" * 5000 + b'"},"jsonrpc":"2.0","id":"k"}', answer("k")),
        (answer(5, text="x" * 5000, isError=True), answer(5, isError=True)),
        (request(5, "resources/read", uri="x" * 5000), request(5, "resources/read")),
        (encoded(method="notifications/message", params={"data": "x" * 5000}), encoded(method="notifications/message")),
    ],
)
def test_a_large_message_is_known_by_its_ends(monkeypatch: pytest.MonkeyPatch, large: bytes, small: bytes) -> None:
    monkeypatch.setattr(messages, "GLIMPSE", 1000)
    assert read_facts(large, whole=True) == read_facts(small, whole=True)


# The modern era


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
    "traceparent": "00-1-2-03",
}
STATE = "opaque-state-of-the-server"


def head(**headers: str) -> str:
    lines = (f"{name.replace('_', '-')}: {value}" for name, value in headers.items())
    return "\n".join(("POST http://example.com/mcp", *lines))


def test_only_the_probe_and_its_answer_are_marked(book: Book) -> None:
    book.a.sent(request(1, "server/discover"))
    book.a.received(answer(1, supportedVersions=["2026-07-28"]))
    book.a.sent(request(2, "tools/list"))
    book.a.sent(request(3, "server/discover"))
    assert [message.probe for message in book.since(0)] == [True, True, False, False]
    book.tap("a").sent(request(1, "server/discover"))
    assert book.last.probe


def test_only_the_last_listen_of_a_server_is_open(book: Book) -> None:
    for number in (1, 2, 3):
        book.a.sent(request(number, "subscriptions/listen"))
    book.a.sent(request(4, name="x"))
    statuses = [message.status for message in book.since(0)]
    assert statuses == [("replaced",), ("replaced",), ("open",), ("waiting",)]
    book.a.received(answer(3))  # the server ended it
    book.a.sent(request(5, "subscriptions/listen"))
    assert [message.status for message in book.since(0)][2] == ("answered",)


def test_a_listen_is_open_and_does_not_wait(book: Book) -> None:
    book.a.sent(request(1, "subscriptions/listen"))
    (listen,) = book.since(0)
    assert listen.status == ("open",)
    book.disconnected("a")
    assert listen.status == ("lost",)


@pytest.mark.requirement("MRTR-15")
@pytest.mark.parametrize("spelled", [STATE, 'with "quotes" \\ and ü', "", "\n" * 5000])
def test_a_request_state_is_exported_by_size_and_digest_alone(book: Book, tmp_path: Path, spelled: str) -> None:
    needs = {"a": {"method": "elicitation/create"}, "b": {"method": "roots/list"}, "c": {"method": "roots/list"}}
    book.a.sent(request(1, name="x"))
    book.a.received(answer(1, resultType="input_required", inputRequests=needs, requestState=spelled))
    book.a.sent(request(2, name="x", inputResponses={}, requestState=spelled))
    book.a.received(answer(2, resultType="input_required", requestState=f"{spelled}2"))
    book.a.sent(request(3, name="x", requestState=f"{spelled}2"))
    book.a.received(answer(3, resultType="complete"))
    file = tmp_path / "traffic.jsonl"
    file.write_bytes(book.export(book.since(0)))
    for each in (book, read_traffic(file)):
        messages = each.since(0)
        assert [message.round for message in messages] == [1, 1, 2, 2, 3, 3]
        first = messages[1].facts
        assert first.needs == (("roots/list", 2), ("elicitation/create", 1))
        assert first.state is not None
        assert (first.state.size, first.state) == (len(spelled.encode()), messages[2].facts.state)
        assert messages[1].status == ("input_required",)
        shown = "".join((each.raw if raw else each.pretty)(message) for message in messages for raw in (True, False))
        assert first.state.digest in shown
        if spelled:
            assert json.dumps(spelled, ensure_ascii=False)[1:-1] not in shown
    if spelled:
        assert json.dumps(spelled)[1:-1] not in file.read_text("utf-8").replace("\\\\", "\\").replace('\\"', '"')


def test_a_state_whose_message_was_cut_is_hidden_too(book: Book) -> None:
    book.set_budget("a", TrafficBudget(100, 400))
    book.a.received(answer(1, resultType="input_required", requestState=STATE * 50))
    assert STATE not in book.raw(book.last)


@pytest.mark.parametrize(
    ("headers", "wrong"),
    [
        ({"Mcp_Name": "echo"}, []),
        ({"mcp_name": "=?base64?ZWNobw==?="}, []),
        ({"Mcp_Name": "Echo"}, ["Mcp-Name: Echo ≠ params.name: echo"]),
        ({}, ["Mcp-Name: not sent ≠ params.name: echo"]),
        ({"Mcp_Name": "echo", "Mcp_Param_City": "Rome", "Mcp_Param_Days": "3"}, []),
        ({"Mcp_Name": "echo", "Mcp_Param_City": "Paris"}, ["Mcp-Param-city: Paris ≠ any argument"]),
        ({"Mcp_Name": "echo", "Mcp_Param_Token": "•••"}, []),
    ],
)
def test_headers_stand_beside_the_values_that_they_repeat(
    book: Book, headers: dict[str, str], wrong: list[str]
) -> None:
    given = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call", **headers}
    book.a.noted("http", head(**given))
    book.a.sent(request(1, name="echo", arguments={"city": "Rome", "days": 3.0, "sure": True}, _meta=META))
    mirrors = book.mirrors(book.last)
    assert [str(mirror) for mirror in mirrors if not mirror.agrees] == wrong
    assert str(mirrors[0]) == "MCP-Protocol-Version: 2026-07-28 = params._meta protocolVersion"


@pytest.mark.parametrize("body", [b"[]", b"5", b"{", b'{"params": 5}', b'{"params": {"_meta": [], "name": {}}}'])
def test_what_is_no_request_has_no_headers_to_compare(book: Book, body: bytes) -> None:
    book.a.noted("http", head(Content_Type="application/json"))
    book.a.sent(body)
    assert book.mirrors(book.last) == []
    book.a.sent(request(1, name="echo", _meta=META))
    assert book.mirrors(book.last) == []  # without a head before it


def test_a_request_is_sent_again_without_its_own_metadata(book: Book) -> None:
    meta = {**META, "progressToken": 1}
    book.a.sent(request(1, "prompts/get", name="x", _meta=meta, inputResponses={"a": {}}, requestState=STATE))
    again = request_in(book.last)
    assert again.params == {"name": "x", "_meta": {"traceparent": "00-1-2-03"}}
    for method in ("server/discover", "subscriptions/listen"):
        book.a.sent(request(2, method))
        with pytest.raises(NotDone):
            request_in(book.last)


# What belongs together


def test_an_answer_is_paired_with_its_request_in_both_directions(book: Book) -> None:
    for asks, answers in ((book.a.sent, book.a.received), (book.a.received, book.a.sent)):
        asks(request(7, "roots/list"))
        book.now += 0.25
        answers(answer(7))
    first, second, third, fourth = book.since(0)
    assert [message.partner for message in (first, second, third, fourth)] == [2, 1, 4, 3]
    assert [message.latency for message in (first, second, third, fourth)] == [0.25] * 4
    assert [second.method, fourth.method] == ["roots/list"] * 2
    assert first.status == ("answered",)
    assert book.partner(first) is second
    assert book.partner(fourth) is third


def test_ids_are_paired_by_connection_type_and_direction(book: Book) -> None:
    book.a.sent(request(1))
    book.tap("a").received(answer(1))
    book.tap("b").received(answer(1))
    book.a.received(answer("1"))
    book.a.sent(answer(1))
    assert [message.partner for message in book.since(0)] == [None] * 5
    book.a.received(answer(1))
    book.a.received(answer(1))  # the second time it answers nothing, but says what it repeats
    assert [message.partner for message in book.since(0)] == [6, None, None, None, None, 1, 1]


def test_progress_cancel_and_batches_find_the_request_they_are_about(book: Book) -> None:
    current_call.set(12)
    book.a.sent(request(1))
    current_call.set(None)
    book.a.received(encoded(method="notifications/progress", params={"progressToken": 1, "progress": 1}))
    book.a.sent(encoded(method="notifications/cancelled", params={"requestId": 1}))
    book.a.received(b"[" + encoded(method="notifications/message") + b"," + answer(1) + b"]")
    book.a.received(encoded(method="notifications/progress", params={"progressToken": [1]}))
    book.a.sent(request(2))
    assert [message.call for message in book.since(0)] == [12, 12, 12, 12, None, None]
    assert [message.partner for message in book.since(0)] == [4, 1, 1, 1, None, None]
    assert [message.number for message in book.since(0) if message.call == 12] == [1, 2, 3, 4]


def test_server_requests_during_a_call_are_part_of_it(book: Book) -> None:
    running = {"a": 12}
    book.running_call = running.get
    for method in ("sampling/createMessage", "elicitation/create", "roots/list", "ping"):
        book.a.received(request(method, method))
    book.tap("b").received(request(1, "roots/list"))
    del running["a"]
    for method in ("sampling/createMessage", "elicitation/create", "roots/list", "ping"):
        book.a.sent(answer(method))
    book.a.received(request("later", "roots/list"))
    assert [message.call for message in book.since(0)] == [12, 12, 12, None, None, 12, 12, 12, None, None]


def test_a_request_waits_until_cancelled_or_disconnected(book: Book) -> None:
    book.a.sent(request(1))
    book.a.sent(request(2))
    book.a.sent(encoded(method="notifications/cancelled", params={"requestId": 2}))
    book.a.received(request(3, "roots/list"))
    book.a.sent(request(4))
    book.a.received(answer(4))
    other = book.tap("b")
    other.sent(request(5))
    book.pin(book.since(0)[0])
    assert statuses(book) == ["waiting", "cancelled", "waiting", "answered", "waiting"]
    book.disconnected("a")
    assert statuses(book) == ["lost", "cancelled", "lost", "answered", "waiting"]
    book.a.sent(request(6))  # on the connection that has ended
    book.tap("a").sent(request(7))
    assert statuses(book)[-2:] == ["lost", "waiting"]


def statuses(book: TrafficBook) -> list[str]:
    return [" ".join(message.status) for message in book.since(0) if message.kind is MessageKind.REQUEST]


def test_what_passed_unseen_is_paired_a_little_at_a_time(book: Book) -> None:
    quiet = book.tap("quiet")
    quiet.sent(request(1))
    for number in range(traffic_book.WINDOW):
        book.a.sent(request(number))
        book.a.received(answer(number))
    quiet.received(answer(1))
    assert not book.pair(0.0)
    while not book.pair(0.0):
        pass
    messages = book.since(0)
    assert (messages[0].partner, messages[-1].partner) == (len(messages), 1)
    assert all(message.partner for message in messages)


def test_pairing_remembers_a_bounded_number_of_requests(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_module, "REMEMBERED", 3)
    for number in range(5):
        book.a.sent(request(number))
    for number in range(5):
        book.a.received(answer(number))
    assert [message.partner for message in book.since(5)] == [None, None, 3, 4, 5]


# How much is kept


@pytest.mark.requirement("SEC-07")
def test_a_flood_costs_the_other_servers_nothing(book: Book) -> None:
    book.set_budget("flood", TrafficBudget(messages=10, bytes=1000))
    quiet, flood = book.tap("quiet"), book.tap("flood")
    quiet.received(b"x")
    for number in range(100):
        flood.received(b"%d" % number)
    assert book.texts == ["x", *map(str, range(90, 100))]
    assert (book.evicted("flood"), book.evicted("quiet")) == (90, 0)
    for _ in range(100):
        flood.received(b"y" * 200)
    assert len(book.texts) == 1 + 5
    assert [message.number for message in book.since(199)] == [200, 201]


def test_of_all_servers_the_one_with_most_makes_room() -> None:
    book = Book(total=TrafficBudget(messages=6, bytes=100))
    one, other = book.tap("one"), book.tap("other")
    for tap in (one, other, other, other, other, other, other):
        tap.received(b"x")
    assert [message.server for message in book.since(0)] == ["one", *["other"] * 5]
    one.received(b"x" * 90)
    other.received(b"x" * 20)
    assert [message.size for message in book.since(0)][-1] == 20
    assert sum(message.size for message in book.since(0)) <= 100


@pytest.mark.requirement("SEC-07")
def test_a_huge_message_keeps_its_start_and_its_facts(book: Book) -> None:
    book.set_budget("a", TrafficBudget(bytes=400_000))
    book.a.sent(request(1, "tools/call"))
    book.a.received(answer(1, text="x" * 1_000_000))
    message = book.last
    assert (message.cut, len(message.data), message.size > 1_000_000) == (True, traffic_book.START, True)
    assert (message.kind, message.partner, message.method) == (MessageKind.RESPONSE, 1, "tools/call")
    assert book.raw(message).endswith(f"… {message.size - traffic_book.START} bytes more")
    book.a.sent(request(2, "tools/call", text="x" * 1_000_000))
    with pytest.raises(NotDone, match="too large"):
        request_in(book.last)


def test_pinned_frames_outlive_all_others_and_are_bounded_too(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.set_budget("a", TrafficBudget(messages=3))
    book.a.sent(request(1))
    book.a.received(answer(1))
    pinned, after = book.since(0)
    book.pin(pinned)
    book.pin(pinned)
    for _ in range(5):
        book.a.received(b"x")
    assert [message.number for message in book.since(0)] == [1, 5, 6, 7]
    assert book.is_pinned(pinned)
    assert book.message(1) is pinned
    assert book.partner(pinned) is book.message(2) is None
    book.pin(after)  # it is gone, and stays so
    monkeypatch.setattr(traffic_book, "PINS", 1)
    with pytest.raises(NotDone, match="unpin"):
        book.pin(book.last)
    book.clear()
    assert book.since(0) == [pinned]
    book.unpin(pinned)
    book.unpin(pinned)
    assert book.since(0) == [pinned]
    book.clear()
    assert book.since(0) == []


def test_added_messages_are_reported_once_until_they_are_read(book: Book) -> None:
    for _ in range(3):
        book.a.received(b"x")
    assert book.added == 1
    assert len(book.since(0)) == 3
    assert book.since(3) == []
    book.a.received(b"x")
    assert book.added == 2


# Secrets, files


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09", "LOG-04")
@pytest.mark.parametrize(
    "data",
    [
        request(1, token=CANARY),
        request(1, text=f"say {CANARY} twice {CANARY}"),
        b'{"jsonrpc":"2.0","method":"x","params":{"a":"\\u0063anary-01\\u00323456789 \\n"}}',
        json.dumps({"a": 'cañary"67890'}).encode(),
        encoded(method="x", params={"a": 'cañary"67890'}),
        b"Authorization: Bearer canary.unknown-1",
        encoded(method="x", params={"h": "Bearer canary.unknown-1"}),
        encoded(method="x", params={"access_token": "canary.unknown-1", "u": "https://h/?code=canary.unknown-1"}),
        encoded(method="x", params={"json": '{"refresh_token": "canary.unknown-1"}'}),
        b"GET /messages?session_id=canary.unknown-1",
        b"Mcp-Session-Id: canary.unknown-1",
        b"HTTP/1.1 200 OK\r\nmcp-session-id:canary.unknown-1\r\n\r\n",
        b"> POST /mcp\n> x\nMCP-Session-Id: canary unknown",
        b"Proxy-Authorization: canary.unknown-1",
        b"authorization: canary",
        b"Set-Cookie: a=canary.unknown-1; Path=/\nCookie: a=canary",
        encoded(method="x", params={"text": "Mcp-Session-Id: canary.unknown-1\nnext"}),
        encoded(method="x", params={"headers": {"Mcp-Session-Id": "canary.unknown-1"}}),
    ],
)
def test_no_view_and_no_export_holds_a_secret(book: Book, data: bytes) -> None:
    book.a.received(data)
    message = book.last
    for text in (book.raw(message), book.pretty(message), book.export([message]).decode()):
        assert "•••" in text or "\\u2022" in text
        assert "canary" not in text
        assert "67890" not in text
    assert json.loads(book.export([message]).splitlines()[-1])["size"] == len(data)
    assert message.data == data


def test_pretty_is_json_over_lines_and_anything_else_as_it_came(book: Book) -> None:
    book.a.received(answer(1, text="é"))
    assert book.pretty(book.last).split("\n")[3:5] == ['  "result": {', '    "text": "é"']
    book.a.received(b"[" * 100_000)
    assert book.pretty(book.last) == "[" * 100_000


def some_traffic(book: Book) -> None:
    current_call.set(3)
    book.a.sent(request(1, "tools/call", name="x\u2028\n"))
    current_call.set(None)
    book.now += 0.5
    book.a.received(answer(1))
    book.tap("b").received(b"\xff stray")
    book.a.noted("http", "HTTP 404 Not Found")


def test_an_export_reads_back_as_the_same_traffic(book: Book, tmp_path: Path) -> None:
    some_traffic(book)
    path = tmp_path / "traffic.jsonl"
    path.write_bytes(book.export(book.since(0)))
    fields = json.loads(path.read_bytes().split(b"\n")[2])
    assert fields["latency"] == 0.5
    assert {name: fields[name] for name in ("direction", "kind", "method", "id", "status", "call")} == {
        "direction": "in", "kind": "response", "method": "tools/call", "id": 1, "status": "ok", "call": 3,
    }  # fmt: skip
    again = read_traffic(path)
    assert again.read_only
    assert [describe(message) for message in again.since(0)] == [describe(message) for message in book.since(0)]


def test_no_request_of_a_file_waits(book: Book, tmp_path: Path) -> None:
    path = tmp_path / "traffic.jsonl"
    book.a.sent(request(1))
    path.write_bytes(book.export(book.since(0)))
    assert statuses(read_traffic(path)) == ["unanswered"]


def describe(message: TrafficMessage) -> tuple[object, ...]:
    latency = None if message.latency is None else round(message.latency, 3)
    facts = (message.kind, message.server, message.direction, round(message.time, 3), latency, message.partner)
    return (*facts, message.raw(), message.method, message.call, message.note)


@pytest.mark.parametrize(
    "line",
    [
        "x", "[]", "{}", "[" * 100_000,
        '{"time":"2026-01-01","server":"a","direction":"up","text":"","size":0}',
        '{"time":"soon","server":"a","direction":"in","text":"","size":0}',
        '{"time":"2026-01-01","server":1,"direction":"in","text":"","size":0}',
        '{"time":"2026-01-01","server":"a","direction":"in","text":"","size":0,"note":"mine"}',
        '{"time":"2026-01-01","server":"a","direction":"in","text":"","size":"big","cut":true}',
    ],
)  # fmt: skip
def test_a_file_that_is_no_export_is_refused_by_its_line(tmp_path: Path, line: str) -> None:
    good = '{"time":"2026-01-01","server":"a","direction":"in","text":"x","size":1}'
    path = tmp_path / "bad.jsonl"
    path.write_text(f"{good}\n\n{line}\n")
    with pytest.raises(NotDone, match=r"bad.jsonl, line 3: "):
        read_traffic(path)
    with pytest.raises(ConfigError, match="regular"):
        read_traffic(tmp_path)


# In a host


def tapped(book: TrafficBook) -> Callable[[Config, str], Any]:
    async def open_transport(config: Config, name: str) -> Transport:
        server = config.servers[name]
        assert server.command is not None
        command = Command(server.command, server.args, server.env)
        return StdioTransport(command, TransportLimits(exit_grace=0.15), os.environ, observer=book.tap(name))

    return open_transport


@pytest.fixture
def watched(host: HostOf) -> Callable[..., RecordingHost]:
    """A host whose servers are tapped."""

    def build(*, dependencies: dict[str, Any] | None = None, **more: Any) -> RecordingHost:
        book = TrafficBook(SECRETS.mask)
        given = {"open_transport": tapped(book), "traffic": book, "mask": SECRETS.mask, **(dependencies or {})}
        return host(dependencies=given, **more)

    return build


async def test_a_call_is_found_with_all_its_frames(watched: HostOf) -> None:
    async with watched(a=echo(protocol="legacy")) as running:
        await running.servers.ready()
        for _ in range(2):
            call = await running.run("a", "echo", {"text": "hello"})
        messages = [message for message in running.traffic.since(0) if message.call == call.number]
        assert [each.direction for each in messages] == ["out", "in"]
        assert [each.method for each in messages] == ["tools/call", "tools/call"]
        assert messages[0].latency == messages[1].latency
        assert 0 < (messages[0].latency or 0) <= call.elapsed
        methods = [message.method for message in running.traffic.since(0) if message.sent]
        assert methods[:3] == ["initialize", "notifications/initialized", "tools/list"]
        assert running.events.count(TrafficAdded()) == 1  # it was not read in between
        await running.run("a", "echo", {"text": "hello"})
        assert running.events.count(TrafficAdded()) == 2


async def test_a_request_to_a_server_that_died_does_not_wait_any_more(watched: HostOf, until: Until) -> None:
    async with watched(a=hostile("crash-on-call"), policy={"default": "allow"}) as running:
        await running.servers.ready()
        with pytest.raises(ConnectionLost):
            await running.tool_calls.call("a", "act", {}).result()
        (sent,) = (message for message in running.traffic.since(0) if message.method == "tools/call")
        await until(lambda: sent.status == ("lost",))


async def test_a_request_is_sent_again_and_a_tool_call_is_asked_for_again(watched: HostOf) -> None:
    async with watched(a=echo()) as running:
        await running.servers.ready()
        await running.run("a", "echo", {"text": "again"})
        by_method = {message.method: message for message in running.traffic.since(0) if message.sent}
        again = running.resender.resend(by_method["tools/list"])
        assert isinstance(again, ResentRequest)
        assert "tools" in await again.result()
        assert running.approver.questions[1:] == []
        running.approver.script.append(NO)
        refused = running.resender.resend(by_method["tools/call"])
        assert isinstance(refused, ToolCall)
        with pytest.raises(Declined):
            await refused.result()
        allowed = running.resender.resend(by_method["tools/call"])
        await allowed.result()
        assert [question.arguments for question in running.approver.questions] == [{"text": "again"}] * 3
        assert running.traffic.since(0)[-1].call == 3
        for message in (by_method["initialize"], by_method["notifications/initialized"], running.traffic.since(0)[-1]):
            with pytest.raises(NotDone, match="sent"):
                running.resender.resend(message)


async def test_a_request_that_fails_again_says_so_and_harms_nobody(watched: HostOf, book: Book) -> None:
    async with watched(a=echo()) as running:
        await running.servers.ready()
        book.a.sent(request(1, "no/such", text="x", _meta={"progressToken": 1, "mine": 2}))
        book.a.sent(request(1, "no/such", text="•••"))
        unknown, masked = book.since(0)
        assert request_in(unknown).params == {"text": "x", "_meta": {"mine": 2}}
        with pytest.raises(ServerError):
            await running.resender.resend(unknown).result()
        with pytest.raises(NotDone, match="secret"):
            running.resender.resend(masked)
        assert running.servers["a"].ready


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09", "LOG-04")
async def test_the_file_of_a_run_holds_every_frame_privately_and_no_secret(watched: HostOf, tmp_path: Path) -> None:
    path = tmp_path / "state" / "traffic.jsonl"
    async with watched(a=echo(), dependencies={"traffic_target": TrafficTarget(path)}) as running:
        await running.servers.ready()
        await running.run("a", "echo", {"text": CANARY})
        messages = running.traffic.since(0)
        assert any(CANARY.encode() in message.data for message in messages)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert CANARY not in path.read_text()
    again = read_traffic(path).since(0)
    assert [message.method for message in again] == [message.method for message in messages]
    latencies = [json.loads(line).get("latency") for line in path.read_bytes().splitlines()[1:]]
    assert latencies == [
        None if message.sent else message.latency and pytest.approx(message.latency, abs=1e-5) for message in messages
    ]


@pytest.mark.parametrize("planted", ["link", "folder"])
async def test_what_was_planted_under_the_name_of_the_file_is_not_touched(
    watched: HostOf, tmp_path: Path, planted: str, until: Until
) -> None:
    path, target = tmp_path / "traffic.jsonl", tmp_path / "target"
    target.write_text("mine")
    path.symlink_to(target) if planted == "link" else path.mkdir()
    async with watched(a=echo(), dependencies={"traffic_target": TrafficTarget(path)}) as running:
        await running.servers.ready()
        await until(lambda: bool(running.alarms))
        (alarm,) = running.alarms
        assert alarm.startswith(f"the traffic is no longer written to {path}: ")
        await running.run("a", "echo", {"text": "goes on"})
    assert target.read_text() == "mine"


async def test_a_slow_disk_costs_messages_and_not_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    path, book = tmp_path / "traffic.jsonl", Book()
    monkeypatch.setattr(traffic_file, "ROTATE", 500)
    monkeypatch.setattr(traffic_file, "BACKLOG", 50)
    alarms: list[str] = []
    file = traffic_file.TrafficFile(TrafficTarget(path), RecordingFacts(), SECRETS.mask, alarms.append)
    file.open(book)
    for _ in range(20):
        book.a.received(b"x" * 20)
    await until(lambda: path.with_name("traffic.jsonl.1").exists() or path.exists())
    await until(lambda: file._written >= 60)
    book.a.received(b"last")
    await file.aclose()
    parts = [each for each in (path.with_name("traffic.jsonl.1"), path) if each.exists()]
    first, *lines = [json.loads(line) for part in parts for line in part.read_bytes().splitlines()]
    assert first["note"] == "meta"
    left_out = [line["text"] for line in lines if "left out" in line["text"]]
    assert left_out
    assert sum(int(text.split()[3]) for text in left_out) + len(lines) - len(left_out) == 21
    assert not alarms


@pytest.mark.requirement("SEC-07")
async def test_a_flooding_server_leaves_bounded_traffic(watched: HostOf, until: Until) -> None:
    async with watched(a=hostile("garbage-first", limits={"traffic_frames": 5})) as running:
        await until(lambda: running.traffic.evicted("a") > 0)
        assert len(running.traffic.since(0)) <= 5


def test_a_tap_is_what_transports_expect() -> None:
    from mcphost.transports.base import MessageObserver

    tap: MessageObserver = ServerTap(Book(), Book()._share("a"))
    assert tap


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"io.modelcontextprotocol/serverInfo": {"name": "x", "version": [[1]]}}, "serverInfo x …"),
        ({"io.modelcontextprotocol/logLevel": "info", "other": 1}, "logLevel info"),
        ({"io.modelcontextprotocol/clientCapabilities": {"roots": {}, "tasks": {}}}, "clientCapabilities roots, tasks"),
        (["io.modelcontextprotocol/"], ""),
    ],
)
def test_the_metadata_of_a_message_is_told_in_words(meta: object, words: str) -> None:
    assert metadata_words(answer(1, _meta=meta).decode()) == words
    assert metadata_words(request(1, _meta=meta).decode()) == words
