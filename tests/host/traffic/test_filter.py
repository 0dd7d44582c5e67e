from __future__ import annotations

import json
import time
from typing import Any

import pytest

from mcphost.host.filter_terms import FilterError
from mcphost.host.tool_calls.current import current_call
from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.filter import EXAMPLES, parse_traffic_filter


def encoded(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


@pytest.fixture(scope="module")
def book() -> TrafficBook:
    """Eight messages: a slow call, a failed ping from the other side, an unanswered list, and stray text."""
    now = [0.0]
    book = TrafficBook(monotonic=lambda: now[0])
    db, git = book.tap("db"), book.tap("git-local")
    current_call.set(12)
    db.sent(encoded(id=7, method="tools/call", params={"name": "query", "text": "Grüße \u2028"}))
    current_call.set(None)
    now[0] += 0.25
    db.received(encoded(id=7, result={"content": "x" * 2000, "isError": True}))
    git.received(encoded(id="p-1", method="ping"))
    now[0] += 0.002
    git.sent(encoded(id="p-1", error={"code": -32601, "message": "connection lost"}))
    git.sent(encoded(id=8, method="tools/list"))
    git.noted("stderr", 'Type "Error": [x]')
    git.received(b"stray text")
    db.noted("http", "HTTP 404 Not Found")
    return book


@pytest.mark.parametrize(
    ("text", "passing"),
    [
        ("", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("server:db", [1, 2, 8]),
        ("server:git*,nobody", [3, 4, 5, 6, 7]),
        ("-SERVER:git* -kind:http", [1, 2]),
        ("method:tools/*", [1, 2, 5]),
        ("method=ping", [3, 4]),
        ("id:7,p-1", [1, 2, 3, 4]),
        ("dir:out", [1, 4, 5]),
        ("dir:in kind:response,error", [2]),
        ("kind:stderr,stray,http", [6, 7, 8]),
        ("status:waiting", [5]),
        ("status:answered", [1, 3]),
        ("status:failed,ok", [2]),
        ("status:error", [4, 7]),
        ("status:-32601", [4]),
        ("status:4xx", [8]),
        ("status:404", [8]),
        ("size>1k", [2]),
        ("size<12 dir:in", [7]),
        ("size:0.001mb", [2]),
        ("latency>100ms", [1, 2]),
        ("latency>=0.2s", [1, 2]),
        ("latency<100", [3, 4]),
        ("latency>1000µs", [1, 2, 3, 4]),
        ("-latency>100ms method:*", [3, 4, 5, 6, 7, 8]),
        ("call:12", [1, 2]),
        ("call:*", [1, 2]),
        ("-call:*", [3, 4, 5, 6, 7, 8]),
        ("QUERY", [1]),
        ("grüße", [1]),
        ('"connection lost"', [4]),
        ("text:lost,stray", [4, 7]),
        ('text:"Not found"', [8]),
        ("TypeError:", []),
        ('"kind:stderr"', []),
        ("[x]", [6]),
        ("server:[a-z]*", []),
    ],
)  # fmt: skip
def test_a_filter_shows_what_it_says(book: TrafficBook, text: str, passing: list[int]) -> None:
    shown = parse_traffic_filter(text)
    assert [message.number for message in book.since(0) if shown.passes(message)] == passing


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sever:db", "There is no field sever; write server:"),
        ("server:", "Write a value after server:, for example server:git."),
        ("server>db", "Only size and latency can be compared; write server:db."),
        ("dir:up", "There is no direction up; there are in and out."),
        ("kind:req", "There is no kind req; there are request, response"),
        (
            "status:fine",
            "There is no status fine; there are waiting, cancelled, lost, replaced, unanswered, open, input_required, "
            "answered, ok, failed, error and",
        ),
        ("size>big", "big is no size; write for example size>1k."),
        ("latency>5h", "5h is no latency; write for example latency>100ms."),
        ("call:x", "A call is a number, as in call:12"),
    ],
)
def test_what_cannot_be_understood_says_what_to_write(text: str, words: str) -> None:
    with pytest.raises(FilterError, match="^" + words.replace(".", r"\.")):
        parse_traffic_filter(text)


def test_the_examples_are_understood() -> None:
    assert len(parse_traffic_filter(EXAMPLES.replace("-not", "")).tests) >= 10


def test_a_slow_call_among_ten_thousand_messages_is_found() -> None:
    now = [0.0]
    book = TrafficBook(monotonic=lambda: now[0])
    tap = book.tap("a")
    for number in range(5000):
        tap.sent(encoded(id=number, method="tools/call", params={"name": "echo", "arguments": {"text": "hello"}}))
        now[0] += 0.5 if number == 3210 else 0.001
        tap.received(encoded(id=number, result={"content": [{"type": "text", "text": f"hello {number}"}]}))
    messages = book.since(0)
    began = time.thread_time()
    for text, count in (("latency>100ms", 2), ('"hello 4999"', 1), ("-method:tools/call", 0)):
        shown = parse_traffic_filter(text)
        assert sum(map(shown.passes, messages)) == count
    assert time.thread_time() - began < 1.0
