"""A well-behaved server of Streamable HTTP, and of HTTP+SSE where it is told to be an old one.

    python tests/servers/http_echo.py [--answers json|sse] [--stateless] [--no-listen] [--old]

Tools: `echo` says its `text`; `notify` sends `count` log messages first; `ask` pings the client and waits for its reply
before it answers; `breaks` ends its stream `count` times, after one log message each, and goes on by GET to say `text`
(`retry`: the milliseconds it names, `ids` false: without ids); `sleep` never answers. Standard library only.
"""

from __future__ import annotations

import argparse
import threading
from dataclasses import dataclass, field
from typing import Any

from web import Message, Talk, Web

LOG = "notifications/message"


TOOLS: list[Message] = [
    {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object"}}
    for name in ("echo", "notify", "ask", "breaks", "sleep")
]


def log(words: str) -> Message:
    return {"jsonrpc": "2.0", "method": LOG, "params": {"level": "info", "data": words}}


def answer(request_id: Any, words: str) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "result": {"content": [{"type": "text", "text": words}]}}


@dataclass
class Echo:
    """State of the server: sessions, replies it waits for, streams that were broken off, and those it may speak on.

    ``protocol`` is agreed on whatever was asked.
    """

    answers: str = "json"
    stateless: bool = False
    listens: bool = True
    old: bool = False
    protocol: str = ""
    session_header: str = "Mcp_Session_Id"
    capabilities: Message = field(default_factory=lambda: {"tools": {}})
    tools: list[Message] = field(default_factory=lambda: list(TOOLS))
    begun: int = 0
    sessions: set[str] = field(default_factory=set)
    replied: threading.Event = field(default_factory=threading.Event)
    unasked: list[Message] = field(default_factory=list)
    broken: dict[str, list[list[Message]]] = field(default_factory=dict)
    lines: list[Talk] = field(default_factory=list)

    def __call__(self, talk: Talk) -> None:
        if self.old:
            self.serve_the_old_way(talk)
        elif not self.knows(talk):
            error = {"code": -32001, "message": "Session not found"}
            talk.json({"jsonrpc": "2.0", "id": None, "error": error}, 404)
        elif talk.command == "GET":
            self.listen(talk)
        elif talk.command == "DELETE":
            self.sessions.discard(talk.headers.get("mcp-session-id", ""))
            talk.whole(200)
        else:
            self.take(talk, talk.visit.message)

    def knows(self, talk: Talk) -> bool:
        opening = talk.command == "POST" and talk.visit.message.get("method") == "initialize"
        return self.stateless or opening or talk.headers.get("mcp-session-id") in self.sessions

    def take(self, talk: Talk, message: Message) -> None:
        if message.get("method") == "initialize":
            self.open(talk, message)
        elif "method" not in message:
            self.replied.set()
            talk.whole(202)
        elif "id" not in message:
            talk.whole(202)
        elif message["method"] == "tools/call":
            params = message["params"]
            self.call(talk, message["id"], params["name"], params.get("arguments") or {})
        else:
            self.say(talk, self.plain(message))

    def plain(self, request: Message) -> Message:
        """The answer to a request other than a tool call."""
        result: Message = {"tools": self.tools} if request["method"] == "tools/list" else {}
        if request["method"] == "initialize":
            version = self.protocol or request["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": self.capabilities}
            result["serverInfo"] = {"name": "http echo", "version": "1"}
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}

    def open(self, talk: Talk, message: Message) -> None:
        self.begun += 1
        session = {} if self.stateless else {self.session_header: f"session-{self.begun}!"}
        self.sessions.update(session.values())
        self.say(talk, self.plain(message), **session)

    def say(self, talk: Talk, *messages: Message, **headers: Any) -> None:
        if self.answers == "json" and len(messages) == 1:
            talk.json(messages[0], **headers)
            return
        talk.begin_events(**headers)
        talk.events(b": hello\r\n\r\n", *messages)
        talk.end_events()

    def call(self, talk: Talk, request_id: Any, name: str, arguments: Message) -> None:
        match name:
            case "echo":
                self.say(talk, answer(request_id, arguments["text"]))
            case "notify":
                many = range(arguments["count"])
                self.say(talk, *(log(f"{number}") for number in many), answer(request_id, "told"))
            case "ask":
                talk.begin_events()
                talk.events({"jsonrpc": "2.0", "id": "from server", "method": "ping"})
                words = "replied" if self.replied.wait(10) else "no reply"
                talk.events(answer(request_id, words))
                talk.end_events()
            case "breaks":
                self.break_off(talk, request_id, **arguments)
            case _:
                talk.linger()

    def break_off(
        self, talk: Talk, request_id: Any, count: int, retry: int | None = None, ids: bool = True, text: str = "whole"
    ) -> None:
        parts: list[list[Message]] = [[log(f"part {number}")] for number in range(count)]
        stream = f"stream-{request_id}"
        self.broken[stream] = [*parts, [answer(request_id, text)]]
        talk.begin_events()
        talk.events(f"retry: {retry}\n".encode() if retry is not None else b": no pace\n")
        self.go_on(talk, stream, 0, named=ids)

    def go_on(self, talk: Talk, stream: str, place: int, *, named: bool = True) -> None:
        """Sends the part at `place`, with the one before it once more, and ends the connection."""
        for number in range(max(place - 1, 0), place + 1):
            mark = f"id: {stream}/{number + 1}\n".encode() if named else b""
            for message in self.broken[stream][number]:
                talk.events(mark, message)
        talk.end_events()

    def listen(self, talk: Talk) -> None:
        stream, _, place = talk.headers.get("last-event-id", "").partition("/")
        if stream in self.broken:
            talk.begin_events()
            self.go_on(talk, stream, int(place))
        elif not self.listens:
            talk.whole(405, allow="POST")
        else:
            talk.begin_events()
            talk.events(*self.unasked)
            self.lines.append(talk)
            talk.linger()

    # HTTP+SSE of 2024-11-05.

    def serve_the_old_way(self, talk: Talk) -> None:
        if talk.command == "GET" and talk.path == "/mcp":
            talk.begin_events()
            self.lines.append(talk)  # who hears where to send may do so at once
            talk.events(b"event: endpoint\r\ndata: /messages?session=old%2F1\r\n\r\n")
            talk.linger()
        elif talk.command == "POST" and talk.path == "/messages?session=old%2F1":
            talk.whole(202, b"Accepted", "text/plain")
            self.answer_the_old_way(talk.visit.message)
        else:
            talk.whole(405, b"Method Not Allowed", "text/plain")

    def answer_the_old_way(self, message: Message) -> None:
        line = self.lines[-1]
        if "id" in message and message.get("method", "tools/call") != "tools/call":
            line.events(self.plain(message))
        elif message.get("method") == "tools/call":
            name, arguments = message["params"]["name"], message["params"]["arguments"]
            if name == "notify":
                line.events(*(log(f"{number}") for number in range(arguments["count"])))
            if name == "hang up":
                line.connection.shutdown(2)
            elif name != "sleep":
                line.events(answer(message["id"], arguments.get("text", "told")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", choices=["json", "sse"], default="json")
    parser.add_argument("--stateless", action="store_true", help="without session ids")
    parser.add_argument("--no-listen", action="store_true", help="no GET stream")
    parser.add_argument("--old", action="store_true", help="the HTTP+SSE transport of 2024-11-05")
    chosen = parser.parse_args()
    with Web(Echo(chosen.answers, chosen.stateless, not chosen.no_listen, chosen.old)) as web:
        print(web.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
