#!/usr/bin/env python3
"""The client that the published conformance suite tests: mcphost's own client, with one script a scenario.

    MCP_CONFORMANCE_SCENARIO=tools_call tests/conformance/client.py URL

A scenario without a script is followed as `tests.conformance.generic` follows any server. Exit codes: 0 it went
through, 1 it did not (stderr says why). Whether what was sent is right, the suite decides. It ends by itself: the
suite, when it gives up, only ends the shell around it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from mcphost import __version__
from mcphost.client.client import Client, Identity
from mcphost.errors import McphostError
from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.models.tasks import Task
from mcphost.protocol.wire.jsonrpc import Malformed
from mcphost.transports.base import NoteKind, TransportLimits
from mcphost.transports.http.detection import DetectedTransport
from mcphost.transports.http.sse_2024 import SseTransport
from mcphost.transports.http.streamable import HttpTransport

CONNECT_SECONDS = 10.0
DEADLINE_SECONDS = 25.0
"""Less than the 30 s after which the suite gives up."""
SHOWN = 500
"""Bytes of a message that are written down."""

MODERN = "2026-07-28"
"""The first revision without a handshake. `generic` handles its scenarios, and those without a script."""


class Trace:
    """Writes all messages to stderr, where they explain a failed scenario."""

    def __init__(self) -> None:
        self._asked = False
        self.listens = asyncio.Event()
        """Set once the server has answered the request for a listening stream, in whatever way."""

    def sent(self, data: bytes) -> None:
        say(f"sent: {data[:SHOWN]!r}")

    def received(self, data: bytes) -> None:
        say(f"received: {data[:SHOWN]!r}")

    def noted(self, kind: NoteKind, text: str) -> None:
        say(f"{kind}: {text}")
        if self._asked and text.startswith("HTTP "):
            self.listens.set()
        self._asked = self._asked or text.startswith("GET ")


class Heard:
    """Writes everything that the client reports to stderr."""

    def logged(self, params: Mapping[str, Any]) -> None:
        say(f"log: {params}")

    def list_changed(self, kind: str) -> None:
        say(f"list changed: {kind}")

    def resource_updated(self, uri: str) -> None:
        say(f"updated: {uri}")

    def served_from_cache(self, method: str, params: Mapping[str, Any], freshness: Freshness) -> None:
        say(f"from the cache: {method} {params}")

    def elicitation_completed(self, elicitation: str) -> None:
        say(f"completed: {elicitation!r}")

    def listening_changed(self) -> None:
        say("listening changed")

    def task_changed(self, task: Task) -> None:
        say(f"task: {task}")

    def malformed(self, problem: Malformed) -> None:
        say(f"malformed: {problem}")

    def stderr(self, line: str) -> None:
        say(line)

    def noted(self, text: str) -> None:
        say(f"note: {text}")

    def remarked(self, text: str) -> None:
        say(f"remark: {text}")

    def lost(self, reason: Exception) -> None:
        say(f"lost: {reason}")


def say(text: str) -> None:
    print(text, file=sys.stderr)


async def look_around(client: Client, trace: Trace) -> None:
    if "tools" in client.open_session.server.capabilities:
        await client.list_tools()
    else:
        await client.ping()


async def add_numbers(client: Client, trace: Trace) -> None:
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def call_over_a_break(client: Client, trace: Trace) -> None:
    # This server puts the answer on whichever stream is asked for next. One that resumes nothing may not carry it.
    await trace.listens.wait()
    await client.call_tool("test_reconnection", {})


Script = Callable[[Client, Trace], Awaitable[None]]
SCRIPTS: Mapping[str, Script] = {
    "initialize": look_around,
    "tools_call": add_numbers,
    "sse-retry": call_over_a_break,
}

ASKED = ("elicitation-sep1034-client-defaults",)
"""Scenarios that `asked` follows: every tool is called, and every question accepted as it comes."""


async def run(url: str, script: Script) -> None:
    """Connect as mcphost does to any URL, follow the script, and leave."""
    trace, limits = Trace(), TransportLimits()
    transport = DetectedTransport(
        lambda: HttpTransport(url, limits, observer=trace), lambda: SseTransport(url, limits, observer=trace)
    )
    client = Client(transport, Heard(), Identity(__version__))
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await client.connect(CONNECT_SECONDS)
            await script(client, trace)
    finally:
        await client.aclose()


def main() -> int:
    scenario, url = os.environ.get("MCP_CONFORMANCE_SCENARIO", ""), sys.argv[-1]
    script = SCRIPTS.get(scenario)
    modern = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "") >= MODERN
    try:
        if script is not None and not modern:
            asyncio.run(run(url, script))
        else:
            sys.path.insert(0, str(Path(__file__).parents[2]))  # this file is run, and not imported
            from tests.conformance import asked, generic

            if scenario in ASKED:
                asked.run(url, DEADLINE_SECONDS)
            else:
                context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
                generic.run(url, context, DEADLINE_SECONDS)
    except (McphostError, TimeoutError) as error:
        say(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
