from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.wire.framing import QUOTED, LineFramer, Overlong

LIMIT = 8
LONG = "too long"

STREAMS: list[tuple[bytes, list[bytes | str]]] = [
    (b"", []),
    (b"a\n", [b"a"]),
    (b"a\nb\r\n\nc", [b"a", b"b", b""]),
    ("é\u2028世\n".encode(), ["é\u2028世".encode()]),
    (b"\x0b\x0c\x1c\x85a\n", [b"\x0b\x0c\x1c\x85a"]),
    (b"a\rb\n", [b"a\rb"]),
    (b"12345678\nb\n", [b"12345678", b"b"]),
    (b"123456789\nb\n", [LONG, b"b"]),
    (b"123456789", [LONG]),
    (b"a\n" + b"x" * 100 + b"\nb\n" + b"y" * 9 + b"\n", [b"a", LONG, b"b", LONG]),
]


def feed(stream: bytes, size: int) -> list[bytes | str]:
    framer = LineFramer(LIMIT)
    lines: list[bytes | Overlong] = []
    for start in range(0, len(stream), size):
        lines += framer.feed(stream[start : start + size])
        assert framer.pending <= LIMIT
    return [LONG if isinstance(line, Overlong) else line for line in lines]


@pytest.mark.hostile("J05")
@pytest.mark.requirement("TRANS-STDIO-04")
@pytest.mark.parametrize("tail", [b"", b"tail"], ids=["no tail", "tail"])
@pytest.mark.parametrize("size", [10_000, 3, 1], ids=["whole", "in threes", "byte by byte"])
@pytest.mark.parametrize(("stream", "lines"), STREAMS)
def test_lines_are_the_same_however_they_arrive(
    stream: bytes, lines: list[bytes | str], size: int, tail: bytes
) -> None:
    if stream.endswith(b"\n"):
        stream += tail
    assert feed(stream, size) == lines


@given(st.lists(st.binary(max_size=12)), st.integers(1, 20))
def test_any_stream_gives_the_same_lines_in_pieces_of_any_size(parts: list[bytes], size: int) -> None:
    stream = b"\n".join(parts)
    assert feed(stream, size) == feed(stream, len(stream) or 1)
    whole = [part.removesuffix(b"\r") if len(part) <= LIMIT else LONG for part in stream.split(b"\n")[:-1]]
    assert feed(stream, size)[: len(whole)] == whole


@pytest.mark.hostile("J01", "J02")
@pytest.mark.parametrize("size", [10_000, 7, 1])
def test_an_overlong_line_shows_how_it_began_and_is_not_kept(size: int) -> None:
    framer, stream = LineFramer(500), bytes(range(48, 98)) * 40
    lines = [line for start in range(0, 2000, size) for line in framer.feed(stream[start : start + size])]
    assert [line.start for line in lines if isinstance(line, Overlong)] == [stream[:QUOTED]]
    assert framer.pending == 0
    assert framer.feed(b"rest\nnext\n") == [b"next"]
