"""Starts servers' programs before their host exists, so that they start while the host's modules are imported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from mcphost.config import Config
from mcphost.errors import McphostError, SpawnFailed
from mcphost.host.dependencies import Dependencies
from mcphost.transports.base import Transport
from mcphost.transports.stdio.transport import StdioTransport


@asynccontextmanager
async def started_early(config: Config, dependencies: Dependencies) -> AsyncIterator[Dependencies]:
    """Start the programs that a host with this configuration starts at once; yield what to make that host of.

    Why one could not be started is raised when the host opens its transport. What the host never opens is closed.
    """
    starting = {
        name: asyncio.create_task(_started(dependencies, config, name), name=f"start {name}")
        for name, server in config.servers.items()
        if server.command is not None and server.enabled and server.start == "eager"
    }

    async def open_transport(config: Config, name: str) -> Transport:
        early = starting.pop(name, None)
        return await (early or dependencies.open_transport(config, name))

    try:
        if starting:
            await asyncio.wait(starting.values())
        yield replace(dependencies, open_transport=open_transport)
    finally:
        for unused in starting.values():
            with suppress(McphostError):
                await (await unused).aclose()


async def _started(dependencies: Dependencies, config: Config, name: str) -> Transport:
    transport = await dependencies.open_transport(config, name)
    if isinstance(transport, StdioTransport):
        with suppress(SpawnFailed):  # the host tries again, and hears why
            await transport.start()
    return transport
