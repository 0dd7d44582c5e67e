"""Hostile modes: how a server begins, what it says to initialize, and how it ends."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from hostile_messages import answer_twice
from hostile_text import ALL_PAYLOADS
from peer import Peer, mode
from wire import LINGER_SECONDS, Message, encode, text

VERSIONS: dict[str, Any] = {
    "future": "2199-01-01", "old": "2024-10-07", "number": 20251125, "null": None, "empty": "", "list": ["2025-11-25"],
}  # fmt: skip


@mode
def version_unknown(peer: Peer) -> None:
    """Agrees on an unknown version (--kind future|old|number|null|empty|list). J12"""
    version = VERSIONS[peer.kind("future")]
    peer.results["initialize"] = lambda request: peer.hello(request) | {"protocolVersion": version}


@mode
def version_none(peer: Peer) -> None:
    """Answers initialize without a protocolVersion. J12"""
    peer.results["initialize"] = lambda request: peer.greeting


CAPABILITIES: dict[str, Any] = {
    "list": ["tools"], "null": None, "string": "tools", "tools-true": {"tools": True}, "tools-list": {"tools": []},
}  # fmt: skip


@mode
def bad_capabilities(peer: Peer) -> None:
    """Capabilities of a wrong type (--kind list|null|string|tools-true|tools-list). J12"""
    peer.greeting["capabilities"] = CAPABILITIES[peer.kind("list")]


@mode
def bare_greeting(peer: Peer) -> None:
    """Answers initialize with nothing but a version. J12"""
    peer.greeting = {}


@mode
def initialize_error(peer: Peer) -> None:
    """Refuses initialize with -32602 and the versions it knows (--kind plain|escapes). J12"""
    words = ALL_PAYLOADS if peer.kind("plain") == "escapes" else "Unsupported protocol version"

    def refuse(request: Message) -> None:
        data = {"supported": ["2023-01-01", words], "requested": request["params"].get("protocolVersion")}
        peer.wire.refuse(request["id"], -32602, words, data=data)

    peer.instead(refuse, "initialize")


@mode
def initialize_silent(peer: Peer) -> None:
    """Never answers initialize (--at). J12"""
    peer.instead(lambda request: None, "initialize")


@mode
def double_initialize_answer(peer: Peer) -> None:
    """Answers initialize twice, the second time under another name. J12"""
    peer.options.at = "initialize"
    answer_twice(peer)


def die(peer: Peer, code: int = 3) -> None:
    """Ends with some last words on stderr."""
    for number in range(1, 31):
        sys.stderr.write(f"last words {number} of 30\n")
    sys.stderr.flush()
    os._exit(peer.count(code))


@mode
def crash_at_start(peer: Peer) -> None:
    """Exits with 3 (--count) before it read anything, after thirty lines on stderr. S06"""
    die(peer)


@mode
def crash_in_initialize(peer: Peer) -> None:
    """Exits with 3 (--count) when it is asked to initialize. S06"""
    peer.instead(lambda request: die(peer), "initialize")


@mode
def crash_on_call(peer: Peer) -> None:
    """Dies on the --count th call (first), --kind exit|half|segv|kill; half means in mid-answer. S06"""
    kind, calls = peer.kind("exit"), peer.count(1)
    peer.options.count = None

    def call(request: Message) -> None:
        if peer.seen["tools/call"] < calls:
            peer.right(request)
            return
        if kind == "half":
            whole = encode({"jsonrpc": "2.0", "id": request["id"], "result": text("right")}).encode()
            peer.wire.raw(whole[: len(whole) // 2])
        if kind in ("segv", "kill"):
            os.kill(os.getpid(), signal.SIGSEGV if kind == "segv" else signal.SIGKILL)
        die(peer)

    peer.instead(call)


@mode
def close_stdout(peer: Peer) -> None:
    """On a call (--at) closes its stdout and lives until EOF. S07"""

    def call(request: Message) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    peer.instead(call)


@mode
def close_stdin(peer: Peer) -> None:
    """After the answer to a call (--at) closes its stdin and lives. S07"""

    def call(request: Message) -> None:
        peer.right(request)
        os.close(0)
        peer.pause(LINGER_SECONDS)

    peer.instead(call)


@mode
def stop_reading(peer: Peer) -> None:
    """After the answer to a call (--at) never reads its stdin again. S07"""

    def call(request: Message) -> None:
        peer.right(request)
        peer.pause(LINGER_SECONDS)

    peer.instead(call)


def open_descriptors() -> list[int]:
    """Which of the first 256 file descriptors are open."""
    found = []
    for number in range(256):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return found


def terminal() -> str:
    """The outcome of writing to the controlling terminal."""
    try:
        with open("/dev/tty", "wb", buffering=0) as tty:
            tty.write(b"\x1b]0;hostile was here\x07Password: ")
    except OSError as error:
        return f"refused: {error.strerror}"
    return "opened"


@mode
def tty(peer: Peer) -> None:
    """A call tries to write to /dev/tty and reports that, session, group and descriptors. T13, S08"""

    def call(request: Message) -> None:
        found = {
            "tty": terminal(), "pid": os.getpid(), "session": os.getsid(0), "group": os.getpgid(0),
            "descriptors": open_descriptors(), "isatty": [number for number in (0, 1, 2) if os.isatty(number)],
        }  # fmt: skip
        peer.wire.reply(request["id"], text(str(found["tty"]), structuredContent=found))

    peer.instead(call)
