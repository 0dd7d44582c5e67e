"""Rows 1 to 4: `Client` over stdio against the bare loop, on the same server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcphost.client.client import Client, Identity
from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.models.tasks import Task
from mcphost.protocol.wire.jsonrpc import Malformed
from mcphost.transports.base import TransportLimits
from mcphost.transports.stdio.transport import Command, StdioTransport
from tests.benchmarks.bare import BareLoop
from tests.benchmarks.measure import Row, Sample, clocked, compare
from tests.benchmarks.sizes import Sizes

ECHO = str(Path(__file__).parents[1] / "servers" / "echo.py")
ECHO_COMMAND = (sys.executable, "-S", "-E", ECHO)
HELLO = {"text": "hello"}

CallTool = Callable[[str, dict[str, Any]], Awaitable[object]]


class Counting:
    """A listener that counts log messages, as the bare loop does."""

    def __init__(self) -> None:
        self.notified = 0

    def logged(self, params: Mapping[str, Any]) -> None:
        self.notified += 1

    def list_changed(self, kind: str) -> None: ...
    def resource_updated(self, uri: str) -> None: ...
    def listening_changed(self) -> None: ...
    def served_from_cache(self, method: str, params: Mapping[str, Any], freshness: Freshness) -> None: ...
    def task_changed(self, task: Task) -> None: ...
    def elicitation_completed(self, elicitation: str) -> None: ...
    def malformed(self, problem: Malformed) -> None: ...
    def stderr(self, line: str) -> None: ...
    def noted(self, text: str) -> None: ...
    def remarked(self, text: str) -> None: ...
    def lost(self, reason: Exception) -> None: ...


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Client, BareLoop, Counting]]:
    """A client and a bare loop, each with an echo server of its own."""
    counting, bare = Counting(), BareLoop()
    transport = StdioTransport(Command(ECHO_COMMAND[0], ECHO_COMMAND[1:]), TransportLimits(), os.environ)
    client = Client(transport, counting, Identity("0"))
    await client.connect(30)
    try:
        await bare.open(*ECHO_COMMAND)
        yield client, bare, counting
        await bare.close()
    finally:
        await client.aclose()


async def one_after_the_other(call: CallTool, count: int) -> None:
    for _ in range(count):
        await call("echo", HELLO)


async def side_by_side(call: CallTool, count: int, width: int) -> None:
    await asyncio.gather(*(one_after_the_other(call, count // width) for _ in range(width)))


async def sequential_calls(sizes: Sizes, runs: int) -> list[Row]:
    async def take(call: CallTool) -> Sample:
        return await clocked(one_after_the_other(call, sizes.calls), sizes.calls)

    async with opened() as (client, bare, _):
        row = await compare(
            "1 echo call, one at a time", lambda: take(client.call_tool), lambda: take(bare.call_tool), runs, 1.6
        )
    return [row]


async def parallel_calls(sizes: Sizes, runs: int) -> list[Row]:
    count = sizes.calls // sizes.flights * sizes.flights

    async def take(call: CallTool) -> Sample:
        return await clocked(side_by_side(call, count, sizes.flights), count)

    async with opened() as (client, bare, _):
        name = f"2 echo call, {sizes.flights} in flight"
        row = await compare(name, lambda: take(client.call_tool), lambda: take(bare.call_tool), runs, 1.8)
    return [row]


async def log_messages(sizes: Sizes, runs: int) -> list[Row]:
    async def take(call: CallTool, counter: Counting | BareLoop) -> Sample:
        before = counter.notified
        sample = await clocked(call("log", {"count": sizes.logs}), sizes.logs)
        assert counter.notified == before + sizes.logs
        return sample

    async with opened() as (client, bare, counting):
        ours, theirs = lambda: take(client.call_tool, counting), lambda: take(bare.call_tool, bare)
        row = await compare(f"3 log message, of {sizes.logs:,}", ours, theirs, runs, 2.5)
    return [row]


async def one_big_result(sizes: Sizes, runs: int) -> list[Row]:
    async def take(call: CallTool) -> Sample:
        return await clocked(call("big", {"bytes": sizes.big}))

    async with opened() as (client, bare, _):
        name = f"4 one text result of {sizes.big / 1e6:g} MB"
        row = await compare(name, lambda: take(client.call_tool), lambda: take(bare.call_tool), runs, 2)
    return [row]
