"""A server of Streamable HTTP that breaks one rule, chosen by name, and keeps all others.

    python tests/servers/http_hostile.py MODE

The handshake is right unless the mode is about it; a `tools/call` is spoiled. Text "right" is the right answer, and
text "wrong" must never be believed. Standard library only.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

from http_echo import TOOLS, Echo, answer, log
from web import Message, Talk, Web

Spoil = Callable[[Talk, Any], None]
Serve = Callable[[Talk], None]

CALLS: dict[str, Spoil] = {}
JSON, EVENTS = "application/json", "text/event-stream"


def call(function: Spoil) -> Spoil:
    CALLS[function.__name__.replace("_", "-")] = function
    return function


def body(request_id: Any, words: str = "right") -> bytes:
    return json.dumps(answer(request_id, words)).encode()


def plain(name: str, status: int, content: bytes, kind: str = "", **headers: Any) -> None:
    CALLS[name] = lambda talk, request_id: talk.whole(status, content, kind, **headers)


def made(name: str, make: Callable[[Any], bytes], kind: str = JSON, status: int = 200, **headers: Any) -> None:
    CALLS[name] = lambda talk, request_id: talk.whole(status, make(request_id), kind, **headers)


def events(name: str, *make: Callable[[Any], Message | bytes]) -> None:
    def spoil(talk: Talk, request_id: Any) -> None:
        talk.begin_events()
        talk.events(*(each(request_id) for each in make))
        talk.end_events()

    CALLS[name] = spoil


def bomb(megabytes: int) -> bytes:
    """gzip that stands for so many megabytes of spaces, a thousandth of that long."""
    packer = zlib.compressobj(9, wbits=31)
    head, block = (packer.compress(b" " * 1_000_000) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return head + block * (megabytes - 1)


def error(request_id: Any, **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **more, "error": {"code": -32602, "message": "too \x1b[31mred"}}).encode()


plain("html", 200, b"<html>\x1b[2J\n\n  <b>hello</b>" + b"x" * 5000, "text/html")
plain("no-type", 200, b'{"jsonrpc":"2.0"}')
plain("nothing", 200, b"", JSON)
plain("accepted", 202, b"")
plain("no-content", 204, b"")
plain("server-error", 502, b"<h1>Bad \x1b]0;gateway</h1>" + b"\x1b" * 5_000_000, "text/html")
plain("teapot", 418, b"short and stout", "text/plain")
plain("forbidden", 403, b"no", "text/plain")
plain("sign-in", 401, b"", www_authenticate='Bearer resource_metadata="https://x/.well-known"')
plain("scope", 403, b"", www_authenticate='Bearer error="insufficient_scope", scope="b"')
plain("not-json", 200, b"{oops", JSON)
plain("not-an-answer", 200, b"[1, 2]", JSON)
plain("odd-status", 799, b"what", "text/plain")
plain("long-type", 200, b"x", "text/" + "y" * 5000)
plain("gone", 404, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}', JSON)
made("json-as-events", body, EVENTS)
made("utf-16", lambda i: body(i).decode().encode("utf-16"))
made("error-of-nobody", lambda i: error(i), status=400)
made("error-null-id", lambda i: error(i, id=None), status=400)
made("error-other-id", lambda i: error(i, id="server-error"), status=500)
made("error-with-200", lambda i: error(i, id=None))
made("not-found-method", lambda i: error(i, id=i).replace(b"-32602", b"-32601"), status=404)
made("wrong-id", lambda i: body(i + 1, "wrong"))
made("string-id", lambda i: body(str(i), "wrong"))
made("both", lambda i: b'{"jsonrpc":"2.0","id":%d,"result":{},"error":{"code":1,"message":"m"}}' % i)
made("huge-body", lambda i: body(i, "x" * 150_000))
made("fitting-body", lambda i: body(i, "x" * 99_000))
made("gzip", lambda i: gzip.compress(body(i)), content_encoding="gzip")
made("zlib", lambda i: zlib.compress(body(i)), content_encoding="deflate")
made("raw-deflate", lambda i: zlib.compress(body(i), wbits=-15), content_encoding="deflate")
made("bomb", lambda i: bomb(10_000), content_encoding="gzip")
made("million", lambda i: b"[" + b"{}," * 999_999 + b"{}]")
made("million-numbers", lambda i: b"[" + b"1," * 999_999 + b"1]")
made("gzip-twice", lambda i: gzip.compress(gzip.compress(body(i))), content_encoding="gzip, gzip")
made("brotli", lambda i: b"\x0b\x02\x80hello\x03", content_encoding="br")
made("broken-gzip", lambda i: gzip.compress(body(i))[:10] + b"\xff" * 60, content_encoding="gzip")
made("gzip-cut", lambda i: gzip.compress(body(i))[:-30], content_encoding="gzip")
made("batch", lambda i: json.dumps([log("in"), 7, answer(i, "right"), log("batch")]).encode())
made("empty-batch", lambda i: b"[]")
made("long-batch", lambda i: json.dumps([log("x")] * 500 + [answer(i, "right")]).encode())
made("event-bomb", lambda i: gzip.compress(b": " + b"x" * 40_000_000), EVENTS, content_encoding="gzip")
made("line-bomb", lambda i: gzip.compress(b":\n" * 5_000_000), EVENTS, content_encoding="gzip")
events("ends-early", lambda i: log("first"))
events("other-first", lambda i: answer(i + 1, "wrong"), lambda i: answer(str(i), "wrong"), lambda i: answer(i, "right"))
events("answers-twice", lambda i: answer(i, "right"), lambda i: answer(i, "wrong"))
events(
    "bad-event-first", lambda i: b"data: {oops\n\n", lambda i: b"event: odd\ndata: x\n\n", lambda i: answer(i, "right")
)
events("invalid-answer", lambda i: {"jsonrpc": "2.0", "id": i, "result": 3})
events("huge-event", lambda i: answer(i, "x" * 150_000))
events("huge-other-event", lambda i: b"data: [" + b"x" * 150_000 + b"\n\n")
events("event-batch", lambda i: b"data: " + json.dumps([log("in"), answer(i, "right")]).encode() + b"\n\n")


@call
def endless_body(talk: Talk, request_id: Any) -> None:
    talk.head(200, content_type=JSON, transfer_encoding="chunked")
    while not talk.web.stopped.is_set():
        talk.events(b" " * 10_000)


@call
def endless_event(talk: Talk, request_id: Any) -> None:
    talk.begin_events()
    talk.events(b"data: ")
    while not talk.web.stopped.is_set():
        talk.events(b"x" * 10_000)


@call
def keeps_open(talk: Talk, request_id: Any) -> None:
    talk.begin_events()
    talk.events(answer(request_id, "right"))
    talk.linger()


@call
def silent_stream(talk: Talk, request_id: Any) -> None:
    talk.begin_events()
    talk.linger()


@call
def silent(talk: Talk, request_id: Any) -> None:
    talk.linger()


@call
def comments(talk: Talk, request_id: Any) -> None:
    talk.begin_events()
    while not talk.web.stopped.is_set():
        talk.events(b":\n\n")
        time.sleep(0.01)


@call
def drips(talk: Talk, request_id: Any) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 5000:
        talk.raw(bytes([byte]))
        time.sleep(0.01)


@call
def drips_body(talk: Talk, request_id: Any) -> None:
    talk.head(200, content_type=JSON, content_length=100_000)
    while not talk.web.stopped.is_set():
        talk.raw(b" ")
        time.sleep(0.01)


@call
def drips_event(talk: Talk, request_id: Any) -> None:
    talk.begin_events()
    talk.events(b"data: ")
    while not talk.web.stopped.is_set():
        talk.events(b"x")
        time.sleep(0.01)


@call
def hangs_up(talk: Talk, request_id: Any) -> None:
    talk.close_connection = True


@call
def half_a_body(talk: Talk, request_id: Any) -> None:
    talk.head(200, content_type=JSON, content_length=5000)
    talk.raw(b'{"jsonrpc":')
    talk.close_connection = True


@call
def broken_chunks(talk: Talk, request_id: Any) -> None:
    talk.head(200, content_type=JSON, transfer_encoding="chunked")
    talk.raw(b"zz\r\n{}\r\n")
    talk.close_connection = True


@call
def no_http(talk: Talk, request_id: Any) -> None:
    talk.raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    talk.close_connection = True


@call
def huge_head(talk: Talk, request_id: Any) -> None:
    talk.head(200, content_type=JSON, x="y" * 200_000)


@call
def folded_session(talk: Talk, request_id: Any) -> None:
    """A session id over two lines, the second of which would be a header of its own."""
    content = body(request_id)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(content)
    talk.raw(head + b"Mcp-Session-Id: a\r\n X-Admin: yes\r\n\r\n" + content)


@call
def storm(talk: Talk, request_id: Any) -> None:
    """Ends each connection at once, and wants the next one at once."""
    talk.begin_events()
    talk.events(b"retry: 0\nid: 1\ndata:\n\n")
    talk.end_events()


ACT: Message = {"name": "act", "description": "What is spoiled.", "inputSchema": {"type": "object"}}


def spoiling(mode: str, at: str = "tools/call") -> Serve:
    """A server that does what `mode` says to the tool `act`, or to the method `at`."""
    spoil, echo = CALLS[mode], Echo(listens=False, tools=[*TOOLS, ACT])

    def serve(talk: Talk) -> None:
        message = talk.visit.message or {}
        if message.get("method") == at and message["params"].get("name", "act") == "act":
            spoil(talk, message["id"])
        elif mode == "storm" and talk.command == "GET":
            spoil(talk, None)
        else:
            echo(talk)

    return serve


def redirecting(status: int, target: Callable[[Talk], str]) -> Serve:
    """A server that redirects each POST to what `target` says, and answers right at /there."""
    echo = Echo()

    def serve(talk: Talk) -> None:
        if talk.path == "/there":
            echo(talk)
        else:
            talk.whole(status, location=target(talk))

    return serve


def main() -> None:
    if sys.argv[1:2] == [] or sys.argv[1] not in CALLS:
        raise SystemExit(f"{__doc__}\nModes: {' '.join(CALLS)}")
    with Web(spoiling(sys.argv[1])) as web:
        print(web.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
