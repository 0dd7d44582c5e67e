"""The demo server and its replay, each with a client of any revision that keeps what it got."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from mcphost.demo.server import Server
from mcphost.host.recordings.reading import recording_of
from mcphost.host.recordings.recording import RecordedSession
from mcphost.host.recordings.replay import ReplayedContent
from mcphost.host.recordings.replayed_server import ReplayedServer, ReplayOptions
from mcphost.protocol.extensions import TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import META_PREFIX, Revision
from mcphost.serving.negotiation import LEVEL_KEY
from mcphost.serving.session import ServerSession
from tests.serving.manual_timers import ManualTimers

Json = dict[str, Any]

CAPABILITIES: Json = {
    "roots": {},
    "sampling": {},
    "elicitation": {"form": {}, "url": {}},
    "extensions": {TASKS_EXTENSION: {}},
}
ANSWERS: Mapping[str, Json] = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada", "steps": 12}},
    "sampling/createMessage": {
        "role": "assistant", "model": "m", "stopReason": "endTurn", "content": {"type": "text", "text": "O lamp."},
    },
    "roots/list": {"roots": [{"uri": "file:///charts", "name": "charts"}]},
}  # fmt: skip
WAIT_SECONDS = 20.0


class Reply(NamedTuple):
    """An answer, and what came before it."""

    result: Json | None
    error: Json | None
    progress: list[Json]
    logs: list[Json]
    asked: list[str]


class ScriptedClient:
    """``take`` passes a message to a server; `receive` takes one of it. ``advance`` moves the server's time, if any."""

    def __init__(self, revision: Revision, answers: Mapping[str, Json] = ANSWERS) -> None:
        self.revision, self.answers = revision, answers
        self.capabilities = CAPABILITIES
        self.take: Callable[[Json], object] = lambda message: None
        self.advance: Callable[[], object] = lambda: None
        self.lines: list[tuple[bool, Json]] = []
        """All messages, with True for those of the client."""
        self.notices: list[Json] = []
        self._incoming: SimpleQueue[Json] = SimpleQueue()
        self._last = 0

    def receive(self, message: Json, about: object = None) -> None:
        self._incoming.put(json.loads(json.dumps(message)))

    def send(self, message: Json) -> None:
        self.lines.append((True, json.loads(json.dumps(message))))
        self.take(message)

    def open(self) -> Json:
        """Introduce the client as its era does; the answer of the server."""
        if self.revision.modern:
            return self.ask("server/discover").result or {}
        client = {"clientInfo": {"name": "script", "version": "1"}, "capabilities": self.capabilities}
        found = self.ask("initialize", {"protocolVersion": self.revision.version, **client}).result
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        if "logging" in (found or {})["capabilities"]:
            self.ask("logging/setLevel", {"level": "debug"})
        return found or {}

    def start(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request; its id."""
        self._last += 1
        meta: Json = {"progressToken": self._last}
        if self.revision.modern:
            meta |= {
                f"{META_PREFIX}protocolVersion": self.revision.version,
                f"{META_PREFIX}clientCapabilities": self.capabilities,
                LEVEL_KEY: "debug",
            }
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": {**(params or {}), "_meta": meta}}
        self.send(message)
        return self._last

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Reply:
        """Send a request and wait for its answer; the server's questions are answered meanwhile."""
        key, reply = self.start(method, params), Reply(None, None, [], [], [])
        while True:
            message = self.next()
            if "method" in message and "id" in message:
                reply.asked.append(message["method"])
                self.send({"jsonrpc": "2.0", "id": message["id"], **self._outcome(message["method"])})
            elif "method" in message:
                self._notice(message, reply)
            elif message.get("id") == key and "error" in message:
                return reply._replace(error=message["error"])
            elif message.get("id") == key and message["result"].get("resultType") == "input_required":
                asked = message["result"]["inputRequests"]
                reply.asked.extend(each["method"] for each in asked.values())
                given = {name: self.answers[each["method"]] for name, each in asked.items()}
                state = {"requestState": message["result"]["requestState"]}
                key = self.start(method, {**(params or {}), "inputResponses": given, **state})
            elif message.get("id") == key:
                return reply._replace(result=message["result"])

    def call(self, tool: str, **arguments: Any) -> Reply:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def listed(self, method: str, member: str) -> list[Json]:
        """All items of a list."""
        items: list[Json] = []
        cursor: Json = {}
        while True:
            page = self.ask(method, cursor).result or {}
            items += page[member]
            if "nextCursor" not in page:
                return items
            cursor = {"cursor": page["nextCursor"]}

    def next(self) -> Json:
        """The next message of the server."""
        self.advance()
        message = self._incoming.get(timeout=WAIT_SECONDS)
        self.lines.append((False, message))
        return message

    def drain(self) -> list[Json]:
        """The notices that have come and were not taken yet."""
        self.advance()
        while True:
            try:
                message = self._incoming.get_nowait()
            except Empty:
                return self.notices
            self.lines.append((False, message))
            self.notices.append(message)

    def session(self) -> RecordedSession:
        """The session so far, as a recording has it."""
        lines = (_line(number, sent, message) for number, (sent, message) in enumerate(self.lines))
        recording = recording_of(b"".join(lines), "demo.mcp.jsonl")
        assert recording.problems == ()
        (session,) = recording.sessions
        return session

    def _outcome(self, method: str) -> Json:
        answer = self.answers[method]
        return {"error": answer} if "code" in answer else {"result": answer}

    def _notice(self, message: Json, reply: Reply) -> None:
        params = dict(message.get("params", {}))
        if message["method"] == "notifications/progress":
            params.pop("progressToken")
            reply.progress.append(params)
        elif message["method"] == "notifications/message":
            reply.logs.append(params)
        else:
            self.notices.append(message)


class _Sink(io.RawIOBase):
    """Passes each line on as a message."""

    def __init__(self, receive: Callable[[Json], object]) -> None:
        self._receive = receive

    def write(self, line: Any) -> int:
        self._receive(json.loads(line))
        return len(line)


def demo_client(revision: Revision) -> ScriptedClient:
    """A client of the demo server, in this process."""
    client = ScriptedClient(revision)
    server = Server(io.BytesIO(), _Sink(client.receive))  # type: ignore[arg-type]

    def take(message: Json) -> None:
        with server._lock:
            server._session.take(message)

    client.take = take
    return client


def replay_client(
    revision: Revision, *sessions: RecordedSession, answers: Mapping[str, Json] = ANSWERS, **options: Any
) -> tuple[ScriptedClient, ReplayedServer]:
    """A client of the replay of these sessions, and the server that counts."""
    server = ReplayedServer(sessions, ReplayOptions(**options))
    return another_client(server, revision, answers), server


def another_client(server: ReplayedServer, revision: Revision, answers: Mapping[str, Json] = ANSWERS) -> ScriptedClient:
    client, timers = ScriptedClient(revision, answers), ManualTimers()
    content = ReplayedContent(server, timers)
    session = ServerSession(content, client.receive, timers=timers)
    content.attach(session)
    client.take, client.advance = session.take, lambda: timers.advance(0.0)
    return client


def _line(number: int, sent: bool, message: Json) -> bytes:
    fields = {
        "time": datetime.fromtimestamp(1_700_000_000 + number / 1000, UTC).isoformat(),
        "server": "demo",
        "connection": 1,
        "direction": "out" if sent else "in",
        "kind": "message",
        "text": json.dumps(message),
        "size": 0,
    }
    return json.dumps(fields).encode() + b"\n"
