"""Row 7 and the host's own share of a call: connecting many servers at once, consent and the audit log."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcphost.client.client import Client
from mcphost.config import Config, ServerConfig
from mcphost.config.policy import Policy
from mcphost.host.connections.connection import ServerState
from mcphost.host.consent.questions import DeclineAll
from mcphost.host.dependencies import Dependencies
from mcphost.host.host import Host
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.stdio.transport import Command, StdioTransport
from tests.benchmarks.measure import Row, Sample, against, clocked, compare
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.wire_works import ECHO_COMMAND, HELLO, one_after_the_other


async def _open_transport(config: Config, name: str) -> Transport:
    server = config.servers[name]
    return StdioTransport(Command(server.command or "", server.args), TransportLimits(), os.environ)


def _config(servers: int, *options: str) -> Config:
    entry = ServerConfig(command=ECHO_COMMAND[0], args=(*ECHO_COMMAND[1:], *options))
    return Config(servers={f"s{n}": entry for n in range(servers)}, policy=Policy(default="allow"))


@asynccontextmanager
async def host_of(config: Config, audit: Path | None = None) -> AsyncIterator[Host]:
    dependencies = Dependencies(_open_transport, DeclineAll("nobody is asked here"), "0", audit_path=audit)
    async with Host(config, dependencies) as host:
        await host.servers.ready()
        states = {server.state for server in host.servers.values()}
        assert states == {ServerState.READY}, states
        yield host


async def many_servers(sizes: Sizes, runs: int) -> list[Row]:
    config = _config(sizes.servers, "--delay", str(sizes.delay))

    async def take() -> Sample:
        host = host_of(config)
        sample = await clocked(host.__aenter__())
        await host.__aexit__(None, None, None)
        return sample

    name = f"7 {sizes.servers} servers ready, {sizes.delay:g} s each"
    return [await against(name, take, sizes.delay, max(1, runs // 2), 1.5)]


async def audited_calls(sizes: Sizes, runs: int) -> list[Row]:
    count = sizes.calls // 4

    async def host_calls(host: Host) -> None:
        for _ in range(count):
            await host.tool_calls.call("s0", "echo", HELLO).result()

    async def client_calls(client: Client) -> None:
        await one_after_the_other(client.call_tool, count)

    with tempfile.TemporaryDirectory() as folder:
        async with host_of(_config(1), Path(folder) / "audit.jsonl") as host:
            client = host.servers["s0"].client
            gc.collect()
            gc.freeze()  # as mcphost does once it has started
            row = await compare(
                "host call with policy and audit; beside it: client call",
                lambda: clocked(host_calls(host), count),
                lambda: clocked(client_calls(client), count),
                runs,
                2.0,
            )
    return [row]
