"""Programs that start before their host."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import Any

import pytest

from mcphost.composition import dependencies, early_start
from mcphost.composition.early_start import started_early
from mcphost.config import Config, ServerConfig, Values
from mcphost.errors import SpawnFailed, UnresolvedReference
from mcphost.host.consent.questions import DeclineAll
from mcphost.host.dependencies import Dependencies
from mcphost.host.host import Host
from mcphost.transports.base import Transport
from mcphost.transports.stdio.process import live_groups
from tests.conftest import SERVERS, Until


@pytest.fixture
def given() -> Dependencies:
    return dependencies(DeclineAll("nobody is asked here"), Values({}))


def config(**more: Any) -> Config:
    entry = {"command": sys.executable, "args": ["-S", "-E", str(SERVERS / "echo.py")], **more}
    return Config(servers={"a": ServerConfig.model_validate(entry)})


async def test_a_host_takes_over_the_program_that_runs_already(given: Dependencies, until: Until) -> None:
    async with started_early(config(), given) as parts:
        await until(lambda: live_groups)  # a busy machine may need longer than the head start
        (group,) = live_groups
        async with Host(config(), parts) as host:
            await host.servers.ready()
            assert host.servers["a"].process.pid == group
            host.servers["a"].restart()
            await host.servers["a"].settled()
            assert host.servers["a"].process.pid not in (group, None)
    assert not live_groups


async def test_a_program_that_no_host_takes_over_is_stopped(given: Dependencies, until: Until) -> None:
    async with started_early(config(), given):
        await until(lambda: live_groups)
    assert not live_groups


@pytest.mark.parametrize("more", [{"enabled": False}, {"start": "lazy"}, {"start": "manual"}])
async def test_only_enabled_eager_servers_start_early(given: Dependencies, more: dict[str, Any]) -> None:
    async with started_early(config(**more), given):
        assert not live_groups


async def test_a_failed_start_is_raised_when_the_host_opens_the_transport(given: Dependencies) -> None:
    missing, unresolved = config(command="no-such-program"), config(env={"KEY": "${NOWHERE}"})
    async with started_early(missing, given) as parts:
        transport = await parts.open_transport(missing, "a")
        with pytest.raises(SpawnFailed, match="no-such-program was not found"):
            await transport.open(Silence())
    async with started_early(unresolved, given) as parts:
        with pytest.raises(UnresolvedReference):
            await parts.open_transport(unresolved, "a")


async def test_a_slow_lookup_delays_no_other_server_and_no_interrupt(
    given: Dependencies, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    monkeypatch.setattr(early_start, "HEAD_START", 0.02)
    found = asyncio.Event()
    entry = config().servers["a"]
    both = Config(servers={"a": entry, "slow": entry})

    async def open_transport(config: Config, name: str) -> Transport:
        if name == "slow":
            await found.wait()
        return await given.open_transport(config, name)

    async with started_early(both, replace(given, open_transport=open_transport)) as parts:
        async with Host(both, parts) as host:
            await host.servers["a"].settled()
            assert [each.ready for each in host.servers.values()] == [True, False]
            found.set()
            await host.servers["slow"].settled()
            assert [each.ready for each in host.servers.values()] == [True, True]
        assert not live_groups
    found.clear()

    async def run() -> None:
        async with started_early(both, replace(given, open_transport=open_transport)):
            await found.wait()

    interrupted = asyncio.create_task(run())
    await until(lambda: live_groups)
    interrupted.cancel()
    with pytest.raises(asyncio.CancelledError):
        await interrupted
    assert not live_groups


class Silence:
    """An inbound that nothing may reach: no program runs."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was called")
