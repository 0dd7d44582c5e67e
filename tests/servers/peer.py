"""A well-behaved server whose every answer a hostile mode may replace, and the table of such modes.

Its tools: `act` (answers "right"; what a mode spoils) and `report`, never spoilt: how often each method was
received and every answer the client gave, in the order received.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from script_options import Options
from wire import REVISIONS, Message, Wire, decode, text

Handler = Callable[[Message], None]
Mode = Callable[["Peer"], None]

MODES: dict[str, tuple[Mode, str]] = {}


def register(name: str, description: str, mode: Mode) -> None:
    """Adds a mode under its name on the command line."""
    MODES[name] = (mode, description)


def mode(function: Mode) -> Mode:
    """Adds a mode named after its function, described by its docstring."""
    register(function.__name__.replace("_", "-"), function.__doc__ or "", function)
    return function


def tool(name: str, /, **more: Any) -> Message:
    """A tool that takes anything."""
    return {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object"}} | more


class Peer:
    """The server. A mode changes `greeting`, `tools` and `on` before it starts."""

    def __init__(self, wire: Wire, options: Options) -> None:
        self.wire, self.options = wire, options
        self.tools = [tool("act"), tool("report")]
        self.greeting: Message = {
            "capabilities": {"tools": {"listChanged": True}, "logging": {}},
            "serverInfo": {"name": "hostile", "version": "1.0"},
        }
        self.results: dict[str, Callable[[Message], Any]] = {
            "initialize": self.hello,
            "ping": lambda request: {},
            "tools/list": lambda request: {"tools": self.tools},
            "tools/call": self.call,
            "logging/setLevel": lambda request: {},
        }
        self.on: dict[str, Handler] = {}
        self.seen: Counter[str] = Counter()
        self.replies: list[Message] = []

    def count(self, default: int) -> int:
        return int(self.options.count if self.options.count is not None else default)

    def size(self, default: int) -> int:
        return int(self.options.bytes if self.options.bytes is not None else default)

    def kind(self, default: str) -> str:
        return str(self.options.kind or default)

    def serve(self) -> None:
        for line in self.wire.lines():
            message = decode(line.decode())
            if isinstance(message, dict):
                self.receive(message)

    def receive(self, message: Message) -> None:
        method = message.get("method")
        if method is None:
            self.replies.append(message)
            return
        self.seen[method] += 1
        asks_report = method == "tools/call" and message["params"]["name"] == "report"
        if method in self.on and not asks_report:
            self.on[method](message)
        elif "id" in message:
            self.right(message)

    def right(self, request: Message) -> None:
        """Answers as a good server would."""
        if result := self.results.get(request["method"]):
            self.wire.reply(request["id"], result(request))
        else:
            self.wire.refuse(request["id"], -32601, f"unknown method {request['method']}")

    def instead(self, handler: Handler, at: str = "tools/call") -> None:
        """Lets `handler` take what comes with the method that --at names, else with `at`."""
        self.on[self.options.at or at] = handler

    def before(self, handler: Handler, at: str = "tools/call") -> None:
        """Lets `handler` act first; the right answer follows."""

        def both(request: Message) -> None:
            handler(request)
            if "id" in request:
                self.right(request)

        self.instead(both, at)

    def hello(self, request: Message) -> Message:
        asked = request["params"].get("protocolVersion")
        version = self.options.protocol or (asked if asked in REVISIONS else REVISIONS[-1])
        return {"protocolVersion": version} | self.greeting

    def call(self, request: Message) -> Message:
        if request["params"]["name"] != "report":
            return text("right")
        found = {"seen": dict(self.seen), "replies": self.replies}
        return text(f"{len(self.replies)} replies", structuredContent=found)

    def wrong(self, request: Message) -> Message:
        """An answer of the right shape that must never be believed."""
        if request["method"] == "initialize":
            return self.hello(request) | {"serverInfo": {"name": "wrong", "version": "0"}}
        return text("wrong") | {"tools": []}

    @staticmethod
    def pause(seconds: float) -> None:
        time.sleep(seconds)

    def log(self, data: Any, level: str = "info", /, **more: Any) -> None:
        self.wire.notify("notifications/message", {"level": level, "data": data, **more})

    def progress(self, request: Message, progress: Any, /, **more: Any) -> None:
        """Reports progress on a request, if it brought a token."""
        token = (request["params"].get("_meta") or {}).get("progressToken")
        if token is not None:
            self.wire.notify("notifications/progress", {"progressToken": token, "progress": progress, **more})
