"""Modes of a server of revision 2026-07-28, and of older ones that do not bear its first request."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from peer import Peer, mode, tool
from wire import Message

PREFIX = "io.modelcontextprotocol/"
EXIT_CODE = 3


def discovery(**more: Any) -> Message:
    return {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}},
        "_meta": {f"{PREFIX}serverInfo": {"name": "modern", "version": "1.0"}},
        **more,
    }


def modern(peer: Peer, **more: Any) -> None:
    """Make the peer speak without a handshake."""
    peer.results["server/discover"] = lambda request: discovery(**more)
    peer.results["resources/list"] = lambda request: {"resources": []}
    peer.results["resources/templates/list"] = lambda request: {"resourceTemplates": []}
    peer.on["subscriptions/listen"] = lambda request: acknowledge(peer, request)


def acknowledge(peer: Peer, request: Message) -> None:
    announce(peer, request["id"], "subscriptions/acknowledged", notifications=request["params"]["notifications"])


def announce(peer: Peer, subscription: Any, method: str, **params: Any) -> None:
    meta = {f"{PREFIX}subscriptionId": subscription}
    peer.wire.notify(f"notifications/{method}", {**params, "_meta": meta})


@mode
def speaks_modern(peer: Peer) -> None:
    """Speaks revision 2026-07-28, and keeps its rules."""
    modern(peer)


@mode
def probe_dies(peer: Peer) -> None:
    """Exits when it is asked for its protocol versions."""
    peer.on["server/discover"] = lambda request: os._exit(EXIT_CODE)


@mode
def probe_silent(peer: Peer) -> None:
    """Leaves server/discover without an answer, and does all else right."""
    peer.on["server/discover"] = lambda request: None


@mode
def probe_refuses(peer: Peer) -> None:
    """Refuses everything after a first request that is not initialize."""

    def refuse(request: Message) -> None:
        peer.wire.refuse(request["id"], -32002, "Server not initialized")

    def first(request: Message) -> None:
        refuse(request)
        peer.on = dict.fromkeys(peer.results, refuse)

    peer.on["server/discover"] = first


@mode
def probe_overtaken(peer: Peer) -> None:
    """Speaks revision 2026-07-28, and answers server/discover only once initialize has come.

    --kind refuses: it then refuses initialize, else it goes on in the older era. Where --record has lines from a start
    before, it answers server/discover after --bytes milliseconds.
    """
    modern(peer)
    asked: list[Message] = []
    if peer.options.record and os.stat(peer.options.record).st_size > 0:

        def late(request: Message) -> None:
            time.sleep(peer.size(0) / 1000)
            peer.wire.reply(request["id"], discovery())

        peer.on["server/discover"] = late
        return
    peer.on["server/discover"] = asked.append

    def hello(request: Message) -> None:
        for probe in asked:
            peer.wire.reply(probe["id"], discovery())
        if peer.kind("answers") == "refuses":
            peer.wire.refuse(request["id"], -32022, "too late", data={"supported": ["2026-07-28"]})
            return
        peer.right(request)

    peer.on["initialize"] = hello


@mode
def probe_mute(peer: Peer) -> None:
    """Answers nothing any more once it was asked with server/discover."""

    def mute(request: Message) -> None:
        peer.on = dict.fromkeys(peer.results, lambda request: None)

    peer.on["server/discover"] = mute


@mode
def probe_late(peer: Peer) -> None:
    """Answers server/discover after it answered initialize."""
    asked: list[Message] = []
    peer.on["server/discover"] = asked.append

    def hello(request: Message) -> None:
        peer.right(request)
        for late in asked:
            peer.wire.reply(late["id"], discovery())

    peer.on["initialize"] = hello


@mode
def modern_asks(peer: Peer) -> None:
    """Speaks revision 2026-07-28, and sends the requests of older ones before it answers act."""
    modern(peer)

    def act(request: Message) -> None:
        for number, method in enumerate(("ping", "roots/list", "sampling/createMessage", "elicitation/create")):
            peer.wire.send({"jsonrpc": "2.0", "id": f"own-{number}", "method": method, "params": {}})
        peer.wire.send({"jsonrpc": "2.0", "id": "own-4"})
        peer.right(request)

    peer.instead(act)


@mode
def modern_needs(peer: Peer) -> None:
    """--kind endless|unknown|huge|nothing: needs input for act that no server may need, or for ever."""
    modern(peer)
    form = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {"type": "object"}}}
    needs: dict[str, Message] = {
        "endless": {"inputRequests": {"a": {"method": "roots/list"}}, "requestState": "s"},
        "unknown": {"inputRequests": {"a": form, "b": {"method": "tools/list"}}},
        "huge": {"requestState": "x" * peer.size(10_000_000)},
        "nothing": {},
    }
    kind = peer.kind("endless")
    peer.instead(lambda request: peer.wire.reply(request["id"], {"resultType": "input_required", **needs[kind]}))


STATE = "canary-state-20260728"


@mode
def modern_state(peer: Peer) -> None:
    """--kind complete|refused|exits: needs folders for act and has a state carried, which it puts elsewhere, too."""
    modern(peer)
    needed = {
        "requestState": STATE,
        "resultType": "input_required",
        "inputRequests": {"a": {"method": "roots/list"}},
    }

    def act(request: Message) -> None:
        if "requestState" not in request["params"]:
            peer.wire.reply("nobody", needed)
            peer.wire.send({"jsonrpc": "2.0", "id": "both", "result": needed, "error": needed})
            peer.wire.send({"jsonrpc": "2.0", "method": 5, "params": needed})
            peer.wire.raw(f"no message: {json.dumps(needed)}\n".encode())
            peer.wire.reply(request["id"], needed)
        elif peer.kind("complete") == "complete":
            peer.right(request)
        elif peer.kind("") == "refused":
            peer.wire.refuse(request["id"], -32021, "no")
        else:
            os._exit(EXIT_CODE)

    peer.instead(act)


@mode
def modern_strays(peer: Peer) -> None:
    """Announces changes for unknown subscriptions, before it answers act."""
    modern(peer)
    heard: list[Any] = []

    def listen(request: Message) -> None:
        heard.append(request["id"])
        acknowledge(peer, request)

    def act(request: Message) -> None:
        known = heard[-1] if heard else 1
        for stray in (str(known), float(known) + 0.5, known + 1, None, [known]):
            announce(peer, stray, "tools/list_changed")
        peer.wire.notify("notifications/tools/list_changed")
        peer.right(request)

    peer.on["subscriptions/listen"] = listen
    peer.instead(act)


@mode
def modern_page(peer: Peer) -> None:
    """Speaks revision 2026-07-28, and wants a page visited before it answers act."""
    modern(peer)
    page = {"mode": "url", "message": "Pay here", "url": "http://127.0.0.1:9/pay"}
    needed = {
        "resultType": "input_required",
        "inputRequests": {"page": {"method": "elicitation/create", "params": page}},
    }

    def act(request: Message) -> None:
        if "inputResponses" in request["params"]:
            peer.right(request)
        else:
            peer.wire.reply(request["id"], needed)

    peer.instead(act)


@mode
def modern_exits(peer: Peer) -> None:
    """Speaks revision 2026-07-28, and exits at act."""
    modern(peer)
    peer.instead(lambda request: os._exit(EXIT_CODE))


@mode
def modern_mismatch(peer: Peer) -> None:
    """--kind same|changed: refuses the first act for its headers, after the definition of act became the --kind."""
    modern(peer)
    refused: list[Message] = []

    def act(request: Message) -> None:
        if refused:
            peer.right(request)
            return
        refused.append(request)
        if peer.kind("same") == "changed":
            peer.tools[0] = {**peer.tools[0], "description": "Something else."}
        peer.wire.refuse(request["id"], -32020, "the header Mcp-Param-X is missing")

    peer.instead(act)


@mode
def modern_annotated(peer: Peer) -> None:
    """Speaks revision 2026-07-28, and wants arguments in headers, one of which looks secret."""
    modern(peer)
    for name in ("api_key", "place"):
        annotated = {"type": "string", "x-mcp-header": name.replace("_", "-")}
        peer.tools.append(tool(f"with_{name}", inputSchema={"type": "object", "properties": {name: annotated}}))


@mode
def modern_refuses_to_listen(peer: Peer) -> None:
    """Speaks revision 2026-07-28, and refuses subscriptions/listen."""
    modern(peer)
    peer.on["subscriptions/listen"] = lambda request: peer.wire.refuse(request["id"], -32601, "no announcements here")
