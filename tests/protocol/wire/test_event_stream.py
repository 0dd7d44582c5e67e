from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.wire.event_stream import EventParser, ServerSentEvent
from mcphost.protocol.wire.framing import Overlong

LIMIT = 1000
EMOJI = '{"text":"caf\u00e9 \U0001f600"}'

STREAMS = [
    ("data: one\n\n", [ServerSentEvent(b"one")]),
    ("data:one\n\ndata:  two\n\n", [ServerSentEvent(b"one"), ServerSentEvent(b" two")]),
    ("data: a\ndata: b\ndata\ndata:\n\n", [ServerSentEvent(b"a\nb\n\n")]),
    (
        "data: lf\n\ndata: crlf\r\n\r\ndata: cr\r\rdata: mixed\r\n\n",
        [ServerSentEvent(x) for x in (b"lf", b"crlf", b"cr", b"mixed")],
    ),
    ("\ufeffdata: marked\n\n", [ServerSentEvent(b"marked")]),
    (f"data: {EMOJI}\n\n", [ServerSentEvent(EMOJI.encode())]),
    (
        "data: line separators \u2028 \x0b \x85 stay\n\n",
        [ServerSentEvent("line separators \u2028 \x0b \x85 stay".encode())],
    ),
    (": keep-alive\r\n\r\n:\n\ndata: x\n: inside\n\n", [ServerSentEvent(b"x")]),
    ("event: heartbeat\ndata: x\n\ndata: y\n\n", [ServerSentEvent(b"x", "heartbeat"), ServerSentEvent(b"y")]),
    ("event:\ndata: x\n\n", [ServerSentEvent(b"x")]),
    ("event: endpoint\ndata: /m?s=1\n\n", [ServerSentEvent(b"/m?s=1", "endpoint")]),
    ("nonsense\nfoo: bar\ndatax: no\n data: no\ndata: x\n\n", [ServerSentEvent(b"x")]),
    (
        "id: 7\ndata: x\n\ndata: y\n\nid: 8\ndata: z\n\n",
        [ServerSentEvent(b"x", id="7"), ServerSentEvent(b"y"), ServerSentEvent(b"z", id="8")],
    ),
    ("event: dropped\n\ndata: x\n\n", [ServerSentEvent(b"x")]),
    ("data: never finished\n", []),
    ("data: never finished", []),
    ("\n\n\r\n\r\r", []),
]


@pytest.mark.requirement("SSE-01", "SSE-02")
@pytest.mark.parametrize(("text", "events"), STREAMS)
@pytest.mark.parametrize("step", [1, 2, 3, 10_000])
def test_a_stream_gives_the_same_events_however_it_is_cut(text: str, events: list[ServerSentEvent], step: int) -> None:
    data = text.encode()
    parser = EventParser(LIMIT)
    chunks = [data[start : start + step] for start in range(0, len(data), step)]
    assert [event for chunk in [*chunks, b""] for event in parser.feed(chunk)] == events


@given(st.lists(st.tuples(st.sampled_from([b"\n", b"\r", b"\r\n"]), st.text("ab \u00e9:", max_size=5))), st.data())
def test_cutting_a_stream_anywhere_changes_nothing(lines: list[tuple[bytes, str]], draw: st.DataObject) -> None:
    data = b"".join(b"data:" * (len(text) % 2) + text.encode() + end for end, text in lines)
    cut = draw.draw(st.integers(0, len(data)))
    whole, halves = EventParser(LIMIT), EventParser(LIMIT)
    assert halves.feed(data[:cut]) + halves.feed(data[cut:]) == whole.feed(data)


@pytest.mark.hostile("H05")
@pytest.mark.requirement("SSE-03")
@pytest.mark.parametrize(
    ("text", "last_id", "retry"),
    [
        ("data: x\n\n", None, None),
        ("id: 1\ndata:\n\n", "1", None),
        ("id: 1\ndata: x\n\nid: 2\n\n", "2", None),
        ("id: 1\ndata: x\n\nid: 2\ndata: cut off", "1", None),
        ("id: 1\n\nid\ndata: taken back\n\n", "", None),
        ("id: 1\n\nid: a\0b\n\n", "1", None),
        ("id: caf\u00e9\n\nretry: 250\n", "caf\u00e9", 250),
        ("retry: 3000\nretry: soon\nretry: -1\nretry: 1.5\nretry:\nretry: " + "9" * 5000 + "\n", None, 3000),
    ],
)
def test_ids_and_waiting_times_are_kept_events_or_not(text: str, last_id: str | None, retry: int | None) -> None:
    parser = EventParser(LIMIT)
    for byte in text.encode():
        parser.feed(bytes([byte]))
    assert (parser.last_id, parser.retry) == (last_id, retry)


@pytest.mark.hostile("H07")
@pytest.mark.parametrize("step", [7, 100, 100_000])
@pytest.mark.parametrize(
    ("data", "start"),
    [
        (b"data: " + b"x" * 1001, b"x" * 200),
        (b"data: " + b"y" * 5000 + b"\ndata: more", b"y" * 200),
        (b"data: " + b"\ndata: z" * 600, b"\nz" * 100),
        (b"data\n" * 1100, b"\n" * 200),
    ],
)
def test_an_event_over_the_limit_is_cut_and_the_next_is_whole(data: bytes, start: bytes, step: int) -> None:
    parser = EventParser(LIMIT)
    stream = data + b"\n\nid: 1\ndata: " + b"k" * LIMIT + b"\n\n"
    events = [e for at in range(0, len(stream), step) for e in parser.feed(stream[at : at + step])]
    short, whole = events
    assert isinstance(short.data, Overlong)
    assert start.startswith(short.data.start[:7])
    assert whole == ServerSentEvent(b"k" * LIMIT, id="1")


@pytest.mark.hostile("H07")
@pytest.mark.parametrize("line", [b"data: ", b": ", b"id: "])
def test_an_endless_line_costs_no_memory_and_little_time(line: bytes) -> None:
    parser = EventParser(1 << 20)
    chunk = b"x" * 65536
    parser.feed(line)
    began = time.process_time()
    events = [event for _ in range(800) for event in parser.feed(chunk)]
    assert time.process_time() - began < 1
    assert len(events) == (line == b"data: ")
    assert parser._lines.pending < 1 << 17
