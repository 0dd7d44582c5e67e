"""Shared by the tests of the HTTP transports: a server in a thread, a transport to it, and a record."""

from __future__ import annotations

import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mcphost.protocol.lifecycle.revisions import V2025_11_25, Revision
from mcphost.protocol.wire.jsonrpc import Notification, Request, Response
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.http.endpoint import PhaseTimeouts
from mcphost.transports.http.sse_2024 import SseTransport
from mcphost.transports.http.streamable import HttpTransport
from tests.transports.processes import Inbox

sys.path.insert(0, str(Path(__file__).parents[2] / "servers"))  # the scripts there import each other by bare names

from http_echo import Echo, answer
from http_hostile import redirecting, spoiling
from web import Talk, Visit, Web

SMALL = replace(TransportLimits(), message_bytes=100_000)
QUICK = PhaseTimeouts(connect=1.0, headers=1.0, ending=0.5)
PROMPT = 10.0
"""Seconds in which what waits for no limit has happened, on a busy machine too; servers linger for longer."""

HELLO = {"protocolVersion": V2025_11_25.version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}

__all__ = [
    "HELLO",
    "PROMPT",
    "QUICK",
    "SMALL",
    "Echo",
    "Inbox",
    "Talk",
    "Visit",
    "Web",
    "WebLine",
    "answer",
    "connected",
    "redirecting",
    "spoiling",
]


@dataclass
class WebLine:
    """A transport to a server, and what it said."""

    web: Web
    transport: Transport
    inbox: Inbox = field(default_factory=Inbox)
    asked: int = 0

    async def ask(self, method: str, params: Any = None) -> Response:
        self.asked += 1
        return await self.transport.request(Request(self.asked, method, params), {})

    async def call(self, tool: str = "act", **arguments: Any) -> str:
        """Call a tool and return its text."""
        response = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert response.result is not None
        return str(response.result["content"][0]["text"])

    async def shake_hands(self, revision: Revision = V2025_11_25) -> None:
        response = await self.ask("initialize", {**HELLO, "protocolVersion": revision.version})
        assert response.result is not None
        self.transport.agreed(revision)
        await self.transport.send(Notification("notifications/initialized"))

    @property
    def words(self) -> list[Any]:
        """The data of the log messages."""
        return [message.params["data"] for message in self.inbox.messages if message.params]


@asynccontextmanager
async def connected(
    serve: Callable[[Talk], None],
    *,
    revision: Revision | None = V2025_11_25,
    limits: TransportLimits = SMALL,
    kind: type[HttpTransport] | type[SseTransport] = HttpTransport,
    tls: ssl.SSLContext | None = None,
    **more: Any,
) -> AsyncIterator[WebLine]:
    """A server that answers as ``serve`` does and a transport to it; hands shaken unless ``revision`` is None."""
    with Web(serve, tls) as web:
        line = WebLine(web, kind(web.url, limits, **{"timeouts": QUICK, **more}))
        try:
            await line.transport.open(line.inbox)
            if revision is not None:
                await line.shake_hands(revision)
            yield line
        finally:
            await line.transport.aclose()
