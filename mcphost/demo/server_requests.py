"""The tools that ask the host: elicitation by form and URL, roots, sampling."""

from __future__ import annotations

import json
import threading
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mcphost.demo.lighthouse import SHIPS
from mcphost.demo.tool import DemoCall, ToolFailedError, text, tool
from mcphost.protocol.models.logging import LogLevel
from mcphost.serving.served_request import Json

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

READS = {"readOnlyHint": True, "openWorldHint": False}
PAGE_SECONDS = 600.0
"""Seconds for which the page of the URL elicitation is served."""
PAGE = b"<!doctype html><title>Ticket office</title><h1>Stamped.</h1><p>Go back to your terminal."

GUEST: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1, "maxLength": 60},
        "email": {"type": "string", "title": "Where a postcard finds you", "format": "email"},
        "arrived": {"type": "string", "title": "Arrived on", "format": "date"},
        "steps": {"type": "integer", "title": "Steps climbed", "minimum": 0, "maximum": 199, "default": 199},
        "seasick": {"type": "boolean", "title": "Seasick on the way", "default": False},
        "weather": {
            "type": "string",
            "title": "Weather",
            "oneOf": [{"const": "fair", "title": "Fair"}, {"const": "foul", "title": "Foul, as always"}],
            "default": "foul",
        },
        "liked": {
            "type": "array",
            "title": "Liked best",
            "items": {"anyOf": [{"const": "lamp", "title": "The lamp"}, {"const": "gulls", "title": "The gulls"}]},
            "minItems": 1,
            "default": ["lamp"],
        },
    },
    "required": ["name"],
}
SIMPLE = ("name", "email", "arrived", "steps", "seasick")
"""Fields that the revision before 2025-11-25 has, too."""

_tickets = count(1)


@tool("Sign the guest book", slow=True)
def sign_guest_book(call: DemoCall) -> Json:
    """Asks you, through your host, to fill in a form, and writes what you answer into the guest book."""
    words: Json = {"message": "Who climbed up to us today?", "requestedSchema": _form(call)}
    answer = call.ask("elicitation/create", **words)
    if answer.get("action") != "accept":
        return text(f"The page stays empty: the answer was {answer.get('action')}.")
    return text(f"The guest book says: {json.dumps(answer.get('content'), ensure_ascii=False)}")


@tool("Get a ticket stamped", slow=True)
def stamp_ticket(call: DemoCall) -> Json:
    """Asks you, through your host, to visit a page on this machine; your ticket is stamped once you have been there."""
    if not call.offers("elicitation", "url"):
        raise ToolFailedError("Your host opens no pages for servers.")
    ticket, visited = f"ticket-{next(_tickets)}", threading.Event()
    with _office(visited) as office:
        threading.Thread(target=office.serve_forever, daemon=True).start()
        try:
            answer = call.ask(
                "elicitation/create",
                mode="url",
                message="The ticket office is downstairs. Come and have your ticket stamped.",
                url=f"http://127.0.0.1:{office.server_port}/{ticket}",
                elicitationId=ticket,
            )
            if answer.get("action") != "accept":
                return text(f"No ticket, no stamp: the answer was {answer.get('action')}.")
            return _stamped(call, ticket, visited)
        finally:
            office.shutdown()


@tool("Look at your charts", hints=READS, slow=True)
def look_at_charts(call: DemoCall) -> Json:
    """Asks your host which folders this server may know of, and reports the answer. It opens none of them."""
    answer = call.ask("roots/list")
    roots = [root for root in answer.get("roots", ()) if isinstance(root, dict)]
    if not roots:
        return text("You brought no charts, or keep them to yourself.")
    lines = [f"{root.get('name') or 'unnamed'}: {unquote(urlsplit(str(root.get('uri'))).path)}" for root in roots]
    return text("On the table:\n" + "\n".join(lines))


def _form(call: DemoCall) -> Json:
    """All fields if the client declares modes, which only newer ones do."""
    fields: Json = GUEST["properties"]
    newer = bool(call.offers("elicitation", "form") or call.offers("elicitation", "url"))
    return GUEST | {"properties": fields if newer else {key: fields[key] for key in SIMPLE}}


def _stamped(call: DemoCall, ticket: str, visited: threading.Event) -> Json:
    waited = 0.0
    while not visited.is_set():
        call.progress(waited, PAGE_SECONDS, "waiting at the ticket office")
        call.wait(0.5)
        waited += 0.5
        if waited >= PAGE_SECONDS:
            raise ToolFailedError("The ticket office has closed: nobody came.")
    call.complete_elicitation(ticket)
    return text(f"{ticket} is stamped. Mind the steps.")


def _office(visited: threading.Event) -> ThreadingHTTPServer:
    """A web server on the loopback interface, which notes a visit."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # late: it would delay the start

    class Clerk(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)
            if self.path.startswith("/ticket-"):
                visited.set()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: stderr belongs to the demo."""

    office = ThreadingHTTPServer(("127.0.0.1", 0), Clerk)
    office.daemon_threads = True
    return office


# Sampling.

ROUNDS = 3
"""Tool uses that the model is offered."""

WINDOW: Json = {
    "name": "look_out",
    "description": "The ships that can be seen from the gallery right now.",
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
}


@tool(
    "Have a verse written",
    {"about": {"type": "string", "maxLength": 200, "default": "the fog", "title": "What it is about"}},
    hints={"readOnlyHint": True, "openWorldHint": True},
    slow=True,
)
def write_verse(call: DemoCall) -> Json:
    """Asks your host to have a language model write a verse for the logbook. You see what it is asked and answers."""
    messages = [_said(f"Write a verse of four lines about {call.arguments['about']}.")]
    looks = call.offers("sampling", "tools")
    for left in reversed(range(ROUNDS + 1)):
        answer = call.ask("sampling/createMessage", **_request(messages, looks, left))
        uses = [block for block in _blocks(answer) if block.get("type") == "tool_use"]
        if not uses or not left:
            break
        call.log(LogLevel.INFO, f"the poet looks out of the window ({left} looks left)", "poets")
        messages.append({"role": "assistant", "content": _blocks(answer)})
        messages.append({"role": "user", "content": [_seen(use) for use in uses]})
    verse = "\n".join(str(block.get("text")) for block in _blocks(answer) if block.get("type") == "text")
    return text(f"{verse or 'Not a word came.'}\n\n(by {answer.get('model')}; it stopped: {answer.get('stopReason')})")


def _request(messages: list[Json], looks: bool, left: int) -> Json:
    request: Json = {
        "messages": messages,
        "systemPrompt": "You are the poet of a lighthouse. Four lines, plain words, no title.",
        "maxTokens": 200,
        "temperature": 0.8,
        "modelPreferences": {"hints": [{"name": "haiku"}], "speedPriority": 0.7, "costPriority": 0.5},
    }
    tools: Json = {"tools": [WINDOW], "toolChoice": {"mode": "auto" if left else "none"}} if looks else {}
    return request | tools


def _said(words: str) -> Json:
    return {"role": "user", "content": {"type": "text", "text": words}}


def _seen(use: Json) -> Json:
    ships = json.dumps([ship.row() for ship in SHIPS[:3]])
    return {"type": "tool_result", "toolUseId": use.get("id"), "content": [{"type": "text", "text": ships}]}


def _blocks(answer: Json) -> list[Json]:
    content = answer.get("content")
    blocks = content if isinstance(content, list) else [content]
    return [block for block in blocks if isinstance(block, dict)]


TOOLS = (sign_guest_book, stamp_ticket, look_at_charts, write_verse)
