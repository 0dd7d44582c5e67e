"""The demo server as another host would use it: a real process and plain JSON lines, without our client."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
COMMAND = [sys.executable, "-m", "mcphost.demo"]
Json = dict[str, Any]


class Keeper:
    """A running demo server and everything it said."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.heard: list[Json] = []
        self.last_id = 0

    def write(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: Json | None = None, **more: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}, **more}).encode())

    def ask(self, method: str, params: Json | None = None) -> int:
        self.last_id += 1
        self.send(method, params, id=self.last_id)
        return self.last_id

    def hear(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), "the server ended"
        return json.loads(line)

    def answer(self, request_id: int | None = None) -> Json:
        """The answer to a request, the last one if none is named; what came before it is in `heard`."""
        wanted = self.last_id if request_id is None else request_id
        while True:
            self.heard.append(self.hear())
            if self.heard[-1].get("id") == wanted and "method" not in self.heard[-1]:
                return self.heard[-1]

    def greet(self, revision: str = REVISIONS[-1], **capabilities: Any) -> Json:
        said = {"protocolVersion": revision, "clientInfo": {"name": "t", "version": "1"}}
        self.ask("initialize", {**said, "capabilities": capabilities})
        result: Json = self.answer()["result"]
        self.send("notifications/initialized")
        return result

    def start(self, name: str, /, token: Any = None, **arguments: Any) -> int:
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.ask("tools/call", {"name": name, "arguments": arguments, **meta})

    def call(self, name: str, /, **arguments: Any) -> Json:
        self.start(name, **arguments)
        result: Json = self.answer()["result"]
        return result

    def tools(self) -> dict[str, Json]:
        found: list[Json] = []
        params: Json = {}
        while True:
            self.ask("tools/list", params)
            page = self.answer()["result"]
            found += page["tools"]
            if "nextCursor" not in page:
                return {tool["name"]: tool for tool in found}
            params = {"cursor": page["nextCursor"]}

    def notices(self, method: str) -> list[Json]:
        return [
            message.get("params", {}) for message in self.heard if message.get("method") == f"notifications/{method}"
        ]


@pytest.fixture
def newcomer() -> Iterator[Keeper]:
    """A server before initialization."""
    keeper = Keeper()
    yield keeper
    keeper.process.kill()
    with keeper.process:
        pass


@pytest.fixture
def keeper(newcomer: Keeper) -> Keeper:
    """A server after initialization."""
    newcomer.greet()
    return newcomer
