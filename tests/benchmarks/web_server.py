"""The peer of the web works: as little HTTP as its two clients speak, so that what is measured is theirs.

python web_server.py      prints its port; POST /json is answered by JSON, POST /sse by events. The tool `echo` says its
text; `log` sends `count` log messages first.
"""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import Any

LOG = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hello there"}}
EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "logging": {}},
    "serverInfo": {"name": "web", "version": "1"},
}

KEPT = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private"}
TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
RESULTS = {
    "initialize": INITIALIZED,
    "server/discover": {**KEPT, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
    "tools/list": {**KEPT, "tools": [TOOL]},
}


class Line(asyncio.Protocol):
    """One connection, kept for as many requests as come."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._unread = transport, b""

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while (end := self._unread.find(b"\r\n\r\n") + 4) > 3:
            verb, path, *_ = self._unread.split(b" ", 2)
            size = length_in(self._unread[:end])
            if len(self._unread) < end + size:
                return
            body, self._unread = self._unread[end : end + size], self._unread[end + size :]
            self._transport.write(answer(path, json.loads(body)) if verb == b"POST" else status(b"405 No"))


def length_in(head: bytes) -> int:
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    return int(rest.split(b"\r\n", 1)[0]) if found else 0


def answer(path: bytes, message: dict[str, Any]) -> bytes:
    if "id" not in message:
        return status(b"202 Accepted")
    arguments = message.get("params", {}).get("arguments", {})
    words = arguments.get("text", "told")
    told = RESULTS.get(message["method"]) or {"content": [{"type": "text", "text": words}], "resultType": "complete"}
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": told}).encode()
    if path == b"/json":
        return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    return EVENTS + logs(arguments.get("count", 0)) + event(body) + b"0\r\n\r\n"


@cache
def logs(count: int) -> bytes:
    return event(json.dumps(LOG).encode()) * count


def event(data: bytes) -> bytes:
    """An event in a chunk of its own."""
    text = b"event: message\r\ndata: %s\r\n\r\n" % data
    return b"%x\r\n%s\r\n" % (len(text), text)


def status(line: bytes) -> bytes:
    return b"HTTP/1.1 %s\r\ncontent-length: 0\r\n\r\n" % line


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Line, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
