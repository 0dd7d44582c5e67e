"""Shared by the tests of transports: a started server, records of what arrives, and the processes of a group."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcphost.protocol.wire.jsonrpc import Malformed, Notification, Request, Response
from mcphost.transports.base import TransportLimits
from mcphost.transports.stdio.transport import StdioTransport

FAST = TransportLimits(exit_grace=9.0)
AT_ONCE = 6.0
"""Seconds in which the end of a server must be reported: less than any limit that could report it instead."""


class Inbox:
    """Keeps what arrives unasked."""

    def __init__(self) -> None:
        self.messages: list[Request | Notification] = []
        self.problems: list[Malformed] = []
        self.strays: list[Response] = []
        self.lines: list[str] = []
        self.ends: list[Exception] = []
        self.reauthorized = 0
        self.message = self.messages.append
        self.malformed = self.problems.append
        self.unmatched = self.strays.append
        self.stderr = self.lines.append
        self.closed = self.ends.append

    def authorization_changed(self) -> None:
        self.reauthorized += 1


class RecordingObserver:
    """Records messages and notes of a transport in order, as (kind, text)."""

    def __init__(self) -> None:
        self.records: list[tuple[str, str]] = []

    def sent(self, data: bytes) -> None:
        self.records.append(("sent", data.decode("utf-8", "replace")))

    def received(self, data: bytes) -> None:
        self.records.append(("received", data.decode("utf-8", "replace")))

    def noted(self, kind: str, text: str) -> None:
        self.records.append((kind, text))

    def of(self, kind: str) -> list[str]:
        return [text for each, text in self.records if each == kind]


@dataclass
class Line:
    """A started server, and what it said."""

    transport: StdioTransport
    inbox: Inbox = field(default_factory=Inbox)
    asked: int = 0

    @property
    def pid(self) -> int:
        pid = self.transport.report().pid
        assert pid
        return pid

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Response:
        self.asked += 1
        return await self.transport.request(Request(self.asked, method, params), {})

    async def call(self, tool: str = "act", **arguments: Any) -> dict[str, Any]:
        response = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert response.result is not None
        return dict(response.result)

    async def says_right(self, tool: str = "act") -> bool:
        content: list[dict[str, str]] = (await self.call(tool))["content"]
        return content[0]["text"].startswith("right")


def members(group: int) -> list[int]:
    """The processes of a group that still run; one that waits to be reaped, or is being reaped, does not."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp, *_ = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(pgrp) == group and state not in "ZX":
            found.append(int(stat.parent.name))
    return found
