"""The cost of mcphost as the server of an agent, beside the agent's own connection to the same server."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any
from unittest.mock import patch

from tests.benchmarks.agent_works import AGENT, OURS
from tests.benchmarks.bare import BareLoop
from tests.benchmarks.measure import Row, Sample, clocked, compare
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.terminal import lonely_environment
from tests.benchmarks.wire_works import ECHO_COMMAND, HELLO

ADDED_BY_SERVE = 0.002
"""Seconds for a call with its answer."""

IN_FLIGHT_BOUND = 2.5
"""Times as long as direct: 0.4 of its rate."""

SDK_COMMAND = (sys.executable, str(Path(__file__).parents[1] / "servers" / "sdk.py"), "stdio")
"""A server as users have them: the echo server answers faster than any that checks what it is sent."""


async def served_calls(sizes: Sizes, runs: int) -> list[Row]:
    count = max(1, sizes.calls // 4)

    async def take(loop: BareLoop) -> Sample:
        return await _calls(loop, "echo", HELLO, count, 1)

    async with _both(ECHO_COMMAND, "echo", HELLO) as (direct, served):
        both = await compare("", partial(take, served), partial(take, direct), runs)
    pairs = zip(both.ours, both.theirs, strict=True)
    added = tuple(Sample(max(ours.wall - theirs.wall, 0.0)) for ours, theirs in pairs)
    note = f"direct {mean(each.wall for each in both.theirs) * 1e3:.3f} ms"
    allowed = (Sample(ADDED_BY_SERVE),) * runs
    return [Row("a served call, added", added, allowed, 1.0, note=note), await _in_flight(sizes, runs)]


async def _in_flight(sizes: Sizes, runs: int) -> Row:
    city, width = {"city": "Oslo"}, sizes.flights

    async def take(loop: BareLoop) -> Sample:
        return await _calls(loop, "weather", city, max(1, sizes.calls // 4 // width), width)

    async with _both(SDK_COMMAND, "weather", city) as (direct, served):
        name = f"served calls, {width} in flight, a server of the official SDK"
        return await compare(name, partial(take, served), partial(take, direct), runs, IN_FLIGHT_BOUND)


async def _calls(loop: BareLoop, tool: str, arguments: Mapping[str, Any], count: int, width: int) -> Sample:
    async def each() -> None:
        for _ in range(count):
            answer = await loop.call_tool(tool, dict(arguments))
            if answer.get("isError"):
                raise RuntimeError(f"the call was refused: {answer}"[:300])

    return await clocked(asyncio.gather(*(each() for _ in range(width))), count * width)


@asynccontextmanager
async def _both(
    command: Sequence[str], tool: str, arguments: Mapping[str, Any]
) -> AsyncIterator[tuple[BareLoop, BareLoop]]:
    """A connection to the server itself, and one to mcphost that serves it."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "serve.toml"
        program, *args = command
        config.write_text(
            f'[policy]\nallow = ["{AGENT}>one:*"]\n[servers.one]\ncommand = {program!r}\nargs = {list(args)!r}\n'
        )
        env = {**lonely_environment(Path(folder)), "MCPHOST_CONFIG": str(config)}
        async with _opened(command, env) as direct, _opened((*OURS, "serve", "--as", AGENT), env) as served:
            for loop in (direct, served):
                await _calls(loop, tool, arguments, 1, 1)
            yield direct, served


@asynccontextmanager
async def _opened(command: Sequence[str], env: Mapping[str, str]) -> AsyncIterator[BareLoop]:
    loop = BareLoop()
    with patch.dict(os.environ, env):
        await loop.open(*command)
    try:
        yield loop
    finally:
        await loop.close()
