"""The tools that ask the user something: a form, a URL to visit, the roots."""

from __future__ import annotations

import json
import threading
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mcphost.demo.tool import DemoCall, Json, ToolFailedError, text, tool

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

READS = {"readOnlyHint": True, "openWorldHint": False}
PAGE_SECONDS = 600.0
"""How long the ticket office stays open."""
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
"""What the revision before 2025-11-25 has words for."""

_tickets = count(1)


@tool("Sign the guest book", slow=True)
def sign_guest_book(call: DemoCall) -> Json:
    """Asks you, through your host, to fill in a form, and writes what you answer into the guest book."""
    words: Json = {"message": "Who climbed up to us today?", "requestedSchema": _form(call)}
    answer = call.ask("elicitation", "elicitation/create", **words)
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
                "elicitation",
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
    """Asks your host which folders this server may know of, and says what it was told. It opens none of them."""
    answer = call.ask("roots", "roots/list")
    roots = [root for root in answer.get("roots", ()) if isinstance(root, dict)]
    if not roots:
        return text("You brought no charts, or keep them to yourself.")
    lines = [f"{root.get('name') or 'unnamed'}: {unquote(urlsplit(str(root.get('uri'))).path)}" for root in roots]
    return text("On the table:\n" + "\n".join(lines))


def _form(call: DemoCall) -> Json:
    """All fields where the client knows of modes: it is a newer one."""
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
    call.notify("notifications/elicitation/complete", {"elicitationId": ticket})
    return text(f"{ticket} is stamped. Mind the steps.")


def _office(visited: threading.Event) -> ThreadingHTTPServer:
    """A web server of this machine's own, which stamps whoever comes."""
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
            """Nobody reads it."""

    office = ThreadingHTTPServer(("127.0.0.1", 0), Clerk)
    office.daemon_threads = True
    return office


TOOLS = (sign_guest_book, stamp_ticket, look_at_charts)
