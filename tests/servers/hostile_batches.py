"""Hostile modes: JSON arrays of messages, which only revision 2025-03-26 knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peer import Peer, mode
from wire import Message, text

NOTICE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "batched"}}
PING = {"jsonrpc": "2.0", "id": "batched-ping", "method": "ping"}


def answer(request: Message, words: str = "right") -> Message:
    return {"jsonrpc": "2.0", "id": request["id"], "result": text(words)}


BATCHES: dict[str, Callable[[Peer, Message], Any]] = {
    "good": lambda peer, request: [NOTICE, PING, answer(request)],
    "bad-element": lambda peer, request: [1, None, {}, [], "x", NOTICE, answer(request)],
    "empty": lambda peer, request: [],
    "nested": lambda peer, request: [[answer(request, "wrong")]],
    "huge": lambda peer, request: [NOTICE] * peer.count(100_000) + [answer(request, "wrong")],
}


@mode
def batch(peer: Peer) -> None:
    """On a call, a batch (--kind good|bad-element|empty|nested|huge, --count); alone where it holds no answer.
    Agrees on 2025-03-26 unless --protocol says otherwise. J11"""
    kind = peer.kind("good")
    peer.options.protocol = peer.options.protocol or "2025-03-26"

    def send(request: Message) -> None:
        peer.wire.send(BATCHES[kind](peer, request))
        if kind in ("empty", "nested", "huge"):
            peer.right(request)

    peer.instead(send)
