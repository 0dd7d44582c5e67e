"""Hostile modes: bytes that are not messages, messages that are not answers, answers to other requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from peer import Peer, mode, register
from wire import Message, encode, text

CHUNK_BYTES = 65_536
GARBAGE = (
    b"Hostile Server v1.0 -- listening on stdio\n",
    b"Traceback (most recent call last):\n",
    b'  File "server.py", line 1, in <module>\n',
    b"{}\n",
    b"null\n",
    b"[]\n",
    b"42\n",
    b'"text"\n',
    b"\n",
    b"\x00\x01\x02\xff\xfe\x7f\n",
    b'{"jsonrpc":"2.0"\n',
)


@mode
def garbage_first(peer: Peer) -> None:
    """Eleven lines that are not messages, then the answer to initialize (--at). J03"""
    peer.before(lambda request: peer.wire.raw(b"".join(GARBAGE)), "initialize")


def next_id(request_id: Any) -> Any:
    """The id a client that counts would use next."""
    if isinstance(request_id, int):
        return request_id + 1
    return re.sub(r"\d+(?=\D*$)", lambda digits: str(int(digits[0]) + 1), request_id)


WRONG_IDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "wrong-id": ("an id nobody used", lambda request_id: 987_654_321),
    "next-id": ("the id of the next request", next_id),
    "string-id": ('"3" for 3', lambda request_id: str(request_id) if isinstance(request_id, int) else 3),
    "float-id": ("3.0 for 3", lambda request_id: float(re.sub(r"\D", "", str(request_id)) or 3)),
    "bool-id": ("true", lambda request_id: True),
    "null-id": ("null", lambda request_id: None),
    "list-id": ("a list", lambda request_id: [request_id]),
}


def wrong_id(change: Callable[[Any], Any]) -> Callable[[Peer], None]:
    def install(peer: Peer) -> None:
        peer.before(lambda request: peer.wire.reply(change(request["id"]), peer.wrong(request)))

    return install


for name, (what, change) in WRONG_IDS.items():
    register(name, f"A wrong answer (--at) under {what}, then the right one. J08, J09", wrong_id(change))


@mode
def answer_twice(peer: Peer) -> None:
    """The right answer (--at), then a wrong one under the same id. J08"""

    def answer(request: Message) -> None:
        peer.right(request)
        peer.wire.reply(request["id"], peer.wrong(request))

    peer.instead(answer)


ERROR = {"code": -32000, "message": "it broke"}
SHAPES: dict[str, tuple[str, Message]] = {
    "both": ("with result and error", {"result": text("wrong"), "error": ERROR}),
    "neither": ("with neither result nor error", {}),
    "error-string": ("whose error is a string", {"error": "it broke"}),
    "error-null": ("whose error is null", {"error": None}),
    "bad-code": ("whose error code is a string", {"error": {**ERROR, "code": "E_BROKE"}}),
    "no-message": ("whose error has no message", {"error": {"code": -32000}}),
    "result-list": ("whose result is a list", {"result": [1, 2]}),
    "result-null": ("whose result is null", {"result": None}),
    "result-string": ("whose result is a string", {"result": "wrong"}),
    "jsonrpc-1": ("of JSON-RPC 1.0", {"jsonrpc": "1.0", "result": text("wrong")}),
    "no-jsonrpc": ("that does not name JSON-RPC 2.0", {"jsonrpc": None, "result": text("wrong")}),
    "answer-with-method": ("that is a request too", {"method": "ping", "result": text("wrong")}),
}


def misshapen(shape: Message) -> Callable[[Peer], None]:
    def install(peer: Peer) -> None:
        peer.instead(lambda request: peer.wire.send({"jsonrpc": "2.0", "id": request["id"], **shape}))

    return install


for name, (what, shape) in SHAPES.items():
    register(name, f"Only an answer (--at) {what}. J10", misshapen(shape))


def answer_bytes(request: Message, inside: bytes) -> bytes:
    """The line of an answer whose result says "wrong" and holds `inside` as its member `odd`."""
    head = b'{"jsonrpc":"2.0","id":%b,' % encode(request["id"]).encode()
    return head + b'"result":{"content":[{"type":"text","text":"wrong"}],"odd":%b}}\n' % inside


def deep(peer: Peer) -> bytes:
    depth = peer.count(100_000)
    return b"[" * depth + b"]" * depth


def invalid_utf8(peer: Peer) -> bytes:
    return b'"%b"' % INVALID_UTF8[peer.kind("latin-1")]


INVALID_UTF8 = {
    "latin-1": b"caf\xe9",
    "overlong": b"\xc0\xaf",
    "surrogate": b"\xed\xa0\x80",
    "cesu": b"\xed\xa0\xbd\xed\xb8\x80",
    "truncated": b"\xe2\x82",
    "too-high": b"\xf5\x80\x80\x80",
}
BAD_VALUES: dict[str, tuple[str, Callable[[Peer], bytes]]] = {
    "deep-json": ("nested --count (100 000) deep", deep),
    "nan": ("with NaN, Infinity and 1e400", lambda peer: b"[NaN,Infinity,-Infinity,1e400]"),
    "huge-integer": ("with an integer of --count (10 000) digits", lambda peer: b"9" * peer.count(10_000)),
    "duplicate-keys": ("with a key twice", lambda peer: b'{"a":1,"a":2}'),
    "invalid-utf8": (f"that is no UTF-8 (--kind {'|'.join(INVALID_UTF8)})", invalid_utf8),
    "raw-control": ("with raw control characters in a string", lambda peer: b'"\x00\x1b\t"'),
    "trailing-comma": ("that is almost JSON", lambda peer: b"[1,2,]"),
}


def bad_line(value: Callable[[Peer], bytes]) -> Callable[[Peer], None]:
    def install(peer: Peer) -> None:
        peer.before(lambda request: peer.wire.raw(answer_bytes(request, value(peer))))

    return install


for name, (what, value) in BAD_VALUES.items():
    register(name, f"A wrong answer (--at) {what}, then the right one. J04, J06", bad_line(value))


@mode
def bom(peer: Peer) -> None:
    """The right answer (--at) behind a byte order mark, then without one. J04"""

    def answer(request: Message) -> None:
        peer.wire.raw(b"\xef\xbb\xbf")
        peer.right(request)

    peer.before(answer)


@mode
def utf_16(peer: Peer) -> None:
    """A wrong answer (--at) in UTF-16, then the right one. J04"""
    peer.before(lambda request: peer.wire.raw(answer_bytes(request, b"1").decode().encode("utf-16-le") + b"\n"))


SURROGATES = {
    "content": [{"type": "text", "text": "right \ud800 and \udfff"}],
    "structuredContent": {"\udc00": "key", "__proto__": {"x": 1}, "constructor": "c", "__class__": "d"},
}


@mode
def surrogates(peer: Peer) -> None:
    """An answer with lone surrogates in text and keys, and keys such as __proto__. J07"""
    peer.instead(lambda request: peer.wire.reply(request["id"], SURROGATES))


@mode
def trickle(peer: Peer) -> None:
    """The right answer byte by byte, --interval seconds apart, with U+2028 inside and CR LF at the end. J05"""
    words = {"jsonrpc": "2.0", "result": text("right \u2028\u2029\x85 ünï €"), "id": 0}

    def answer(request: Message) -> None:
        for byte in encode(words | {"id": request["id"]}).encode() + b"\r\n":
            peer.wire.raw(bytes((byte,)))
            peer.pause(peer.options.interval)

    peer.instead(answer)


def pour(peer: Peer, size: int) -> None:
    """Writes that many bytes of text, in chunks."""
    chunk = b"x" * CHUNK_BYTES
    for _ in range(size // CHUNK_BYTES):
        peer.wire.raw(chunk)
    peer.wire.raw(chunk[: size % CHUNK_BYTES])


@mode
def long_line(peer: Peer) -> None:
    """An answer (--at) whose text has --bytes (50 MB), written in chunks. J01"""

    def answer(request: Message) -> None:
        head, tail = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": text("?")}).split("?")
        peer.wire.raw(head.encode())
        pour(peer, peer.size(50_000_000))
        peer.wire.raw(tail.encode() + b"\n")

    peer.instead(answer)


@mode
def no_newline(peer: Peer) -> None:
    """On a call (--at), --bytes (200 MB) without a newline, then nothing more on that line. J02"""
    peer.instead(lambda request: pour(peer, peer.size(200_000_000)))
