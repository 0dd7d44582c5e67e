"""Hostile modes: what a server sends without being asked: requests, logs, progress, changes, cancellations."""

from __future__ import annotations

import threading
import time
from typing import Any

from hostile_text import ALL_PAYLOADS
from peer import Peer, mode
from wire import LINGER_SECONDS, Message, encode

SAMPLING: Message = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say hello."}}],
    "maxTokens": 50,
}
ELICITATION: Message = {
    "message": "Who are you?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}
REQUESTS: dict[str, tuple[Any, str, Any]] = {
    # name for --kind: id, method, params; ... stands for a member left out
    "sampling": ("sampling", "sampling/createMessage", SAMPLING),
    "roots": ("roots", "roots/list", ...),
    "elicitation": ("elicitation", "elicitation/create", ELICITATION),
    "ping": ("ping", "ping", ...),
    "unknown": ("unknown", "foo/bar", {"a": 1}),
    "escapes": ("escapes", f"foo/{ALL_PAYLOADS}", {}),
    "no-params": ("no-params", "sampling/createMessage", ...),
    "null-params": ("null-params", "sampling/createMessage", None),
    "list-params": ("list-params", "elicitation/create", [1, 2]),
    "bad-params": ("bad-params", "sampling/createMessage", {"messages": 7, "maxTokens": "many"}),
    "bad-schema": (
        "bad-schema",
        "elicitation/create",
        {"message": "m", "requestedSchema": {"type": "array"}},
    ),
    "string-one": ("1", "ping", ...),
    "one": (1, "ping", ...),
    "one-again": (1, "ping", ...),
    "null-id": (None, "ping", ...),
    "float-id": (1.5, "ping", ...),
    "bool-id": (True, "ping", ...),
    "object-id": ({}, "ping", ...),
    "long-id": ("i" * 100_000, "ping", ...),
}


def ask(peer: Peer, request_id: Any, method: Any, params: Any = ...) -> None:
    members = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    peer.wire.send({name: value for name, value in members.items() if value is not ...})


@mode
def server_requests(peer: Peer) -> None:
    """On a call (--at), asks for sampling, roots, elicitation, foo/bar, with broken params and ids "1", 1, null, 1.5,
    {} (one of them: --kind). `report` then tells the answers it got. J13, F11"""
    chosen = [REQUESTS[peer.options.kind]] if peer.options.kind else list(REQUESTS.values())

    def call(request: Message) -> None:
        for asked in chosen:
            ask(peer, *asked)

    peer.before(call)


@mode
def pings_before_initialize(peer: Peer) -> None:
    """Before it answers initialize, --count (3) pings and a log message."""

    def early(request: Message) -> None:
        for number in range(peer.count(3)):
            ask(peer, f"early-{number}", "ping")
        peer.log("not awake yet")

    peer.before(early, "initialize")


@mode
def request_flood(peer: Peer) -> None:
    """On a call (--at), --count (1000) requests at once, --kind sampling|roots|elicitation|ping|unknown. F03, F09"""
    _, method, params = REQUESTS[peer.kind("sampling")]

    def call(request: Message) -> None:
        for number in range(peer.count(1000)):
            ask(peer, f"flood-{number}", method, params)

    peer.before(call)


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency", "catastrophe", "")


def flood(peer: Peer, lines: list[bytes]) -> None:
    """Writes --count lines as fast as the pipe takes them, by turns from `lines`."""
    block = b"".join(line + b"\n" for line in lines)
    rounds, rest = divmod(peer.count(10_000), len(lines))
    for _ in range(rounds):
        peer.wire.raw(block)
    for line in lines[:rest]:
        peer.wire.raw(line + b"\n")


def note(method: str, **params: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "method": method, "params": params}).encode()


@mode
def notification_flood(peer: Peer) -> None:
    """On a call (--at), --count (10 000) log messages of --bytes (40) at all levels and two unknown ones. F01"""
    data = "f" * peer.size(40)
    lines = [note("notifications/message", level=level, logger="flood", data=data) for level in LEVELS]
    peer.before(lambda request: flood(peer, lines * 10))


@mode
def list_changed_flood(peer: Peer) -> None:
    """On a call (--at), --count (10 000) times tools/list_changed. F02"""
    peer.before(lambda request: flood(peer, [note("notifications/tools/list_changed")] * 100))


def token_of(request: Message) -> Any:
    """The call's progress token, or an invented one."""
    return (request["params"].get("_meta") or {}).get("progressToken", "nobody's")


@mode
def progress_flood(peer: Peer) -> None:
    """On a call, --count (10 000) progress notifications, the last one 100 of 100. F02"""

    def call(request: Message) -> None:
        token = token_of(request)
        steps = [{"progressToken": token, "progress": n, "total": 100} for n in range(1, 101)]
        flood(peer, [note("notifications/progress", **step) for step in steps])
        peer.progress(request, 100, total=100)

    peer.before(call)


ODD_PROGRESS: list[Message] = [
    {"progress": 0.5, "total": 1}, {"progress": 0.2, "total": 1}, {"progress": 5, "total": 1},
    {"progress": -1, "total": 1}, {"progress": 1, "total": 0}, {"progress": 1, "total": -3},
    {"progress": 1e308, "total": 1e-308}, {"progress": "half"}, {"progress": None}, {"progress": True}, {},
    {"progress": 1, "total": "two"}, {"progress": 0.6, "message": 7}, {"progress": 0.7, "message": "Reticulating"},
    {"progressToken": "nobody's", "progress": 0.9}, {"progressToken": None, "progress": 0.9},
    {"progressToken": [1], "progress": 0.9}, {"progressToken": {}, "progress": 0.9},
]  # fmt: skip


@mode
def progress_odd(peer: Peer) -> None:
    """On a call, progress that falls, passes its total, is not a number, or has another token; also after the
    answer. F02"""

    def call(request: Message) -> None:
        for odd in ODD_PROGRESS:
            peer.wire.notify("notifications/progress", {"progressToken": token_of(request), **odd})
        peer.right(request)
        peer.progress(request, 99, total=100, message="after the end")

    peer.instead(call)


@mode
def progress_forever(peer: Peer) -> None:
    """Never answers a call but reports progress every --interval (0.02) seconds, cancelled or not. J14"""

    def report(request: Message) -> None:
        for step in range(1, int(LINGER_SECONDS / max(peer.options.interval, 0.001))):
            peer.progress(request, step)
            time.sleep(peer.options.interval)

    def call(request: Message) -> None:
        peer.progress(request, 0)
        threading.Thread(target=report, args=(request,), daemon=True).start()

    peer.instead(call)


@mode
def late_answer(peer: Peer) -> None:
    """Answers a call ("wrong") only after it was cancelled, and reports progress on it. J14"""
    waiting: dict[Any, Message] = {}

    def cancelled(notification: Message) -> None:
        if request := waiting.pop(notification["params"].get("requestId"), None):
            peer.progress(request, 50)
            peer.wire.reply(request["id"], peer.wrong(request))

    peer.instead(lambda request: waiting.__setitem__(request["id"], request))
    peer.on["notifications/cancelled"] = cancelled


CANCELS: tuple[Any, ...] = ({"requestId": "nobody's"}, {"requestId": None}, {"requestId": []}, {}, None)


@mode
def cancels_ours(peer: Peer) -> None:
    """Cancels the call it was asked, and others that never were, then answers it. J14"""

    def call(request: Message) -> None:
        peer.wire.notify("notifications/cancelled", {"requestId": request["id"], "reason": "I said so"})
        for params in CANCELS:
            peer.wire.notify("notifications/cancelled", params)

    peer.before(call)


@mode
def cancels_its_own(peer: Peer) -> None:
    """On a call, asks (--kind sampling|elicitation|roots) and cancels that at once, with a reason."""
    request_id, method, params = REQUESTS[peer.kind("sampling")]

    def call(request: Message) -> None:
        ask(peer, request_id, method, params)
        peer.wire.notify("notifications/cancelled", {"requestId": request_id, "reason": "changed my mind"})

    peer.before(call)


ODD_NOTIFICATIONS: tuple[tuple[str, Any], ...] = (
    ("notifications/hologram", {"depth": 3}),
    ("hologram", ...),
    (f"notifications/{ALL_PAYLOADS}", {}),
    ("notifications/message", ...),
    ("notifications/message", {"level": 5, "data": 1}),
    ("notifications/message", {"data": "no level"}),
    ("notifications/message", ["positional"]),
    ("notifications/progress", ...),
    ("notifications/tools/list_changed", None),
    ("notifications/resources/updated", {"uri": "demo://never/subscribed"}),
    ("notifications/prompts/list_changed", {}),
    ("notifications/initialized", {}),
    ("tools/call", {"name": "act"}),
)


@mode
def unknown_notification(peer: Peer) -> None:
    """On a call (--at), unknown notifications, or some without the params they need."""

    def call(request: Message) -> None:
        for method, params in ODD_NOTIFICATIONS:
            peer.wire.send({"jsonrpc": "2.0", "method": method} | ({} if params is ... else {"params": params}))

    peer.before(call)
