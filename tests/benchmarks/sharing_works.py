"""The processes of many agents over a few servers that they share, and the processor time of all while none asks."""

from __future__ import annotations

import asyncio
import time

from mcphost.config import Config
from mcphost.config.policy import Policy
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.endpoint.service import EndpointOptions
from mcphost.host.host import Host
from mcphost.protocol.lifecycle.revisions import NEWEST_HANDSHAKE, NEWEST_MODERN
from tests.benchmarks.agent_works import IDLE
from tests.benchmarks.host_works import host_of
from tests.benchmarks.measure import Row, Sample
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.wire_works import ECHO_COMMAND, HELLO
from tests.host.endpoint.rig import Agent

SERVERS = 6
"""Half of them speak a revision without handshake; the others are shared by the configuration."""

MOST_PROCESSES = 8
"""One for each server, and mcphost."""


async def shared_servers(sizes: Sizes, runs: int) -> list[Row]:
    counted, idle = [], []
    for _ in range(runs):
        async with host_of(_config()) as host:
            agents = [await _agent(host, number) for number in range(sizes.agents)]
            running = (host.instances.report(name).processes for name in host.servers)
            counted.append(Sample(1 + sum(running)))
            began = time.process_time()
            await asyncio.sleep(sizes.idle_seconds)
            idle.append(Sample(time.process_time() - began))
            for agent in agents:
                agent.close()
    allowed = (Sample(MOST_PROCESSES),) * runs
    note = f"{max(each.wall for each in counted):.0f} processes"
    over = f"{sizes.agents} agents over {SERVERS} shared servers"
    return [
        Row(f"processes of {over}", tuple(counted), allowed, 1.0, unit="", note=note),
        Row(f"processor time, {over}, idle", tuple(idle), (Sample(IDLE * sizes.idle_seconds),) * runs, 1.0),
    ]


def _config() -> Config:
    command, *args = ECHO_COMMAND
    modern = {"command": command, "args": (*args, "--modern")}
    legacy = {"command": command, "args": tuple(args), "share": "all"}
    servers = {f"s{number}": legacy if number % 2 else modern for number in range(SERVERS)}
    return Config.model_validate({"servers": servers, "policy": Policy(default="allow")}, strict=False)


async def _agent(host: Host, number: int) -> Agent:
    """An agent that has called a tool of each server."""
    revision = NEWEST_HANDSHAKE if number % 2 else NEWEST_MODERN
    facts = AgentFacts(f"agent-{number}", given=f"agent-{number}")
    agent = Agent(host.endpoint.open(EndpointOptions(facts)), revision, {})
    await agent.open()
    listed = await agent.result("tools/list")
    names = [tool["name"] for tool in listed["tools"] if tool["name"].endswith("echo")]
    for name in names:
        await agent.call(name, HELLO)
    return agent
