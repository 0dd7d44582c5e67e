"""The era without a handshake: a call beside one with it, the probe, rounds of input, connections that only listen."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from mcphost.client.client import Client, Identity
from mcphost.client.requester import ClientLimits
from mcphost.client.rounds import RoundLimits
from mcphost.client.server_requests import InputRequest
from mcphost.errors import InvalidResult
from mcphost.protocol.lifecycle.negotiation import Era
from mcphost.transports.base import TransportLimits
from mcphost.transports.http.streamable import HttpTransport
from mcphost.transports.stdio.transport import Command, StdioTransport
from tests.benchmarks.measure import Row, Sample, clocked, compare
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.web_works import served
from tests.benchmarks.wire_works import CallTool, Counting, one_after_the_other

SERVERS = Path(__file__).parents[1] / "servers"
ECHO = (str(SERVERS / "echo.py"), "--modern")
LEGACY = (str(SERVERS / "echo.py"),)
ENDLESS = (str(SERVERS / "hostile.py"), "modern-needs", "--kind", "endless")
LISTENED_TO = (str(SERVERS / "hostile.py"), "speaks-modern")

MODERN = "2026-07-28"

KEPT_MB = 0.5
"""Bytes that may remain after a thousand rounds."""

IDLE_SHARE = 0.005
"""Of a CPU, for all connections that only listen."""


class NoFolders:
    """Answers what a server needs with an empty list of folders."""

    def check(self, request: InputRequest) -> None: ...

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        return {"roots": []}

    def leave(self) -> None: ...


@asynccontextmanager
async def connected(script: tuple[str, ...], era: Era, **more: Any) -> AsyncIterator[Client]:
    transport = StdioTransport(Command(sys.executable, ("-S", "-E", *script)), TransportLimits(), os.environ)
    async with _open(Client(transport, Counting(), Identity("0"), era=era, **more)) as client:
        yield client


@asynccontextmanager
async def connected_over_http(url: str, era: Era) -> AsyncIterator[Client]:
    async with _open(Client(HttpTransport(url, TransportLimits()), Counting(), Identity("0"), era=era)) as client:
        await client.list_tools()
        yield client


@asynccontextmanager
async def _open(client: Client) -> AsyncIterator[Client]:
    try:
        await client.connect(30)
        yield client
    finally:
        await client.aclose()


async def modern_calls(sizes: Sizes, runs: int) -> list[Row]:
    async def take(client: Client) -> Sample:
        return await clocked(one_after_the_other(client.call_tool, sizes.calls), sizes.calls)

    async with connected(ECHO, "modern") as modern, connected(ECHO, "legacy") as legacy:
        name = "echo call without a handshake, beside one with"
        return [await compare(name, partial(take, modern), partial(take, legacy), runs, 1.15)]


async def modern_web_calls(sizes: Sizes, runs: int) -> list[Row]:
    total = sizes.web_calls

    async def take(client: Client) -> Sample:
        return await clocked(one_after_the_other(client.call_tool, total), total)

    async with (
        served() as server,
        connected_over_http(f"{server}/json", "modern") as modern,
        connected_over_http(f"{server}/json", "legacy") as legacy,
    ):
        name = "HTTP call without a handshake, beside one with"
        return [await compare(name, partial(take, modern), partial(take, legacy), runs, 1.15)]


async def official_client(sizes: Sizes, runs: int) -> list[Row]:
    """The client of the official SDK in the same era, at the same servers."""
    from mcp import Client as OfficialClient  # late: it would be in the memory that other works measure
    from mcp import StdioServerParameters, stdio_client

    async def row(work: str, ours: CallTool, theirs: CallTool, total: int) -> Row:
        async def take(call: CallTool) -> Sample:
            return await clocked(one_after_the_other(call, total), total)

        name = f"{work} without a handshake, beside the official SDK's client"
        return await compare(name, partial(take, ours), partial(take, theirs), runs, 1.0)

    parameters = StdioServerParameters(command=sys.executable, args=["-S", "-E", *ECHO])
    async with (
        connected(ECHO, "modern") as mine,
        OfficialClient(stdio_client(parameters, errlog=sys.__stderr__ or sys.stderr), mode=MODERN) as official,
    ):
        await official.list_tools()
        by_pipe = await row("echo call", mine.call_tool, official.call_tool, sizes.calls)
    async with (
        served() as server,
        connected_over_http(f"{server}/json", "modern") as mine,
        OfficialClient(f"{server}/json", mode=MODERN) as official,
    ):
        await official.list_tools()
        by_http = await row("HTTP call", mine.call_tool, official.call_tool, sizes.web_calls)
    return [by_pipe, by_http]


async def openings(sizes: Sizes, runs: int) -> list[Row]:
    """The probe costs a server with a handshake one more round trip; most of the time is that of its start."""

    async def take(era: Era) -> Sample:
        async def open_and_close() -> None:
            async with connected(LEGACY, era):
                pass

        return await clocked(open_and_close())

    name = "opening a server with a handshake, probed beside not"
    return [await compare(name, lambda: take("auto"), lambda: take("legacy"), max(runs, 5), 1.15)]


async def rounds_of_input(sizes: Sizes, runs: int) -> list[Row]:
    """Memory that stays of many rounds in one call."""
    async with connected(
        ENDLESS,
        "modern",
        capabilities={"roots": {}},
        handler=NoFolders(),
        limits=ClientLimits(rounds=RoundLimits(rounds=sizes.input_rounds)),
    ) as client:
        await _rounds(client)
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        await _rounds(client)
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    kept = Sample(max(after - before, 0) / 1e6)
    return [Row(f"memory kept of {sizes.input_rounds:,} rounds of input", (kept,), (Sample(KEPT_MB),), 1.0, unit="MB")]


async def _rounds(client: Client) -> None:
    try:
        await client.call_tool("act")
    except InvalidResult:  # the bound, which is what ends it
        return


async def listening(sizes: Sizes, runs: int) -> list[Row]:
    """The share of a CPU that connections take while nothing is announced."""
    async with AsyncExitStack() as open_:
        for _ in range(sizes.idle_servers):
            await open_.enter_async_context(connected(LISTENED_TO, "modern"))
        began = time.process_time()
        await asyncio.sleep(sizes.idle_seconds)
        share = (time.process_time() - began) / sizes.idle_seconds
    name = f"CPU of {sizes.idle_servers} connections that only listen, share of a second"
    return [Row(name, (Sample(share),), (Sample(IDLE_SHARE),), 1.0)]
