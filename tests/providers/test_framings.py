"""Streams cut into documents: every end of a line, whatever the chunks, and what has no end."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from mcphost.providers.http import Oversized, events, lines
from tests.providers.endpoints import framed

STREAM = b"""\xef\xbb\xbf: a comment

event: x
data: {"a":
data:  1}
id: 7

retry: 5

event: no data

data:[DONE]

"""
DOCUMENTS = ['{"a":\n 1}', "[DONE]"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_events_are_the_same_for_all_line_ends_and_chunks(end: bytes) -> None:
    data = STREAM.replace(b"\n", end)
    assert framed(events, data) == DOCUMENTS
    assert framed(events, *(data[at : at + 1] for at in range(len(data)))) == DOCUMENTS
    assert all(framed(events, data[:cut], data[cut:]) == DOCUMENTS for cut in range(1, len(data)))


@pytest.mark.parametrize("letter", "\u2028\u2029\x85\v\f\x1c\x1d\x1e\0\ufeff")
def test_unicode_line_ends_do_not_end_a_line(letter: str) -> None:
    document = json.dumps(f"a{letter}b", ensure_ascii=False)
    data = f"data: a{letter}b\n\ndata: {document}\n\n".encode()
    assert framed(events, data) == [f"a{letter}b", document]
    assert framed(lines, f"{document}\n".encode()) == [document.encode()]


@pytest.mark.parametrize(
    ("last", "documents"),
    [(b'data: {"a": 1}', ['{"a": 1}']), (b'data: {"a":\ndata: 1}', ['{"a":\n1}']), (b"data: [DONE]", ["[DONE]"]),
     (b'data: {"a": 1', []), (b"data: [DON", []), (b"data:", []), (b"event: x", [])],
)  # fmt: skip
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_the_last_event_needs_no_blank_line_if_it_is_whole(last: bytes, end: bytes, documents: list[str]) -> None:
    assert framed(events, b"data: 1\n\n" + last + end) == ["1", *documents]


@pytest.mark.parametrize("blank", [b"\n\n\n\n\n", b"\r\n\r\n\r\n", b"\r\r\r\r\r", b"\n\r\n\r"])
def test_runs_of_blank_lines_end_an_event_once(blank: bytes) -> None:
    assert framed(events, b"id: 1\ndata: a" + blank + b"data: b\ndata: c\n\n") == ["a", "b\nc"]


def test_invalid_utf_8_is_replaced() -> None:
    assert framed(events, b"data: a\xff\xc3", b"\xa9\n\n") == ["a\ufffd\u00e9"]


LIMIT = 1000


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: " + b"x" * LIMIT],
        [b"data: ", *[b"x"] * LIMIT],
        [b"data: x\n"] * LIMIT,
        [b"data:\n" * LIMIT],
        [b"x" * LIMIT, b"\n\n"],
        [b"event: " + b"x" * LIMIT],
    ],
    ids=["a line", "a line in pieces", "many lines", "empty lines", "no field", "a name"],
)
def test_an_event_over_the_limit_is_given_up(chunks: list[bytes]) -> None:
    with pytest.raises(Oversized):
        framed(events, b"data: 1\n\n", *chunks, limit=LIMIT)


def test_the_limit_is_one_events_and_not_the_streams() -> None:
    event = b"data: " + b"x" * (LIMIT - 8) + b"\n\n"
    assert len(framed(events, *[event] * 50, limit=LIMIT)) == 50
    with pytest.raises(Oversized):
        framed(events, b"data: x" + event[6:], limit=LIMIT)
    assert framed(lines, b"1" * LIMIT + b"\n", limit=LIMIT) == [b"1" * LIMIT]
    with pytest.raises(Oversized):
        framed(lines, b"1" * (LIMIT + 1), limit=LIMIT)


def test_a_line_in_tiny_pieces_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(Oversized):
            framed(events, b"data: ", *[b"xy"] * 200_000, limit=400_000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8_000_000
