"""The time for which one piece of work holds the event loop; meanwhile no key and no other server is heard."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from mcphost.config import Config, ServerConfig
from mcphost.config.policy import Policy
from mcphost.protocol.schema.validation import refers_outside
from tests.benchmarks.host_works import host_of
from tests.benchmarks.measure import Row, Sample
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.web_works import opened
from tests.benchmarks.wire_works import ECHO_COMMAND
from tests.loop_watchdog import LoopWatchdog

LARGE: Final = str(Path(__file__).with_name("large.py"))


async def hold(
    work: str,
    take: Callable[[], Awaitable[object]],
    bound: float,
    runs: int,
    prepare: Callable[[], None] = lambda: None,
) -> Row:
    """The longest hold of each run, beside the longest there may be."""
    holds: list[Sample] = []
    for _ in range(runs):
        prepare()
        gc.collect()
        gc.freeze()  # as mcphost does once it has started: what others left is not looked through in this work's time
        watchdog = LoopWatchdog(asyncio.get_running_loop())
        try:
            await take()
            holds.append(Sample(watchdog.longest))
        finally:
            watchdog.stop()
    return Row(f"longest hold: {work}", tuple(holds), (Sample(bound),) * runs, 1.0)


async def large_answers(sizes: Sizes, runs: int) -> list[Row]:
    entry = ServerConfig(command=sys.executable, args=("-S", "-E", LARGE, str(sizes.large)))
    config = Config(servers={"s0": entry}, policy=Policy(default="allow"))
    rows = []
    async with host_of(config) as host:
        for kind in ("numbers", "floats", "members", "strings"):

            async def take(kind: str = kind) -> None:
                await host.tool_calls.call("s0", "answer", {"kind": kind}).result()

            rows.append(await hold(f"answer of {sizes.large / 1e6:g} MB of {kind}", take, 0.25, runs))
    return rows


async def many_references(sizes: Sizes, runs: int) -> list[Row]:
    count = sizes.references
    schema = {"$defs": {str(n): {"$ref": f"#/$defs/{(n + 1) % count}"} for n in range(count)}}

    async def take() -> None:
        refers_outside(schema)

    return [await hold(f"schema with {count:,} references", take, 0.05, runs)]


async def many_notifications(sizes: Sizes, runs: int) -> list[Row]:
    count = sizes.web_flood
    async with opened("/sse") as (client, _, counting):

        async def take() -> None:
            before = counting.notified
            await client.call_tool("log", {"count": count})
            assert counting.notified == before + count

        return [await hold(f"{count:,} notifications over HTTP", take, 0.05, runs)]


async def many_tools(sizes: Sizes, runs: int) -> list[Row]:
    entry = ServerConfig(command=ECHO_COMMAND[0], args=(*ECHO_COMMAND[1:], "--tools", str(sizes.tools)))
    async with host_of(Config(servers={"s0": entry})) as host:
        tools = host.catalog.tools()

        def list_anew() -> None:
            host.catalog.keep("s0", [each.tool.model_copy() for each in tools])

        async def take() -> None:
            chat = host.chats.begin()
            await chat.tools_checked()
            assert len(chat.tools.entries) == sizes.tools

        return [await hold(f"{sizes.tools:,} tools for a model", take, 0.05, runs, list_anew)]
