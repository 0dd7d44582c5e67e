"""Starts servers' programs before the host exists, so that they load while its modules are imported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

from mcphost.config import Config
from mcphost.errors import SpawnFailed
from mcphost.host.dependencies import Dependencies
from mcphost.transports.base import Transport
from mcphost.transports.stdio.transport import StdioTransport

HEAD_START: Final = 0.1
"""Seconds to wait for the programs to run. More is needed only to look up a value, as in a keychain."""


@asynccontextmanager
async def started_early(config: Config, dependencies: Dependencies) -> AsyncIterator[Dependencies]:
    """Start the programs of all enabled eager servers; yield the dependencies for their host.

    Why a program did not start is raised when the host opens its transport. What the host never opens is closed.
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
            await asyncio.wait(starting.values(), timeout=HEAD_START)
        yield replace(dependencies, open_transport=open_transport)
    finally:
        for task in starting.values():
            task.cancel()
        unused = await asyncio.gather(*starting.values(), return_exceptions=True)
        await asyncio.gather(*(each.aclose() for each in unused if not isinstance(each, BaseException)))


async def _started(dependencies: Dependencies, config: Config, name: str) -> Transport:
    transport = await dependencies.open_transport(config, name)
    if isinstance(transport, StdioTransport):
        try:
            with suppress(SpawnFailed):  # `Transport.open` tries again and raises the reason
                await transport.start()
        except asyncio.CancelledError:
            await transport.aclose()
            raise
    return transport
