"""Programs that start before their host."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from mcphost.composition import dependencies
from mcphost.composition.early_start import started_early
from mcphost.config import Config, ServerConfig, Values
from mcphost.errors import SpawnFailed, UnresolvedReference
from mcphost.host.consent.questions import DeclineAll
from mcphost.host.dependencies import Dependencies
from mcphost.host.host import Host
from mcphost.transports.stdio.process import live_groups
from tests.conftest import SERVERS


@pytest.fixture
def given() -> Dependencies:
    return dependencies(DeclineAll("nobody is asked here"), Values({}))


def config(**more: Any) -> Config:
    entry = {"command": sys.executable, "args": ["-S", "-E", str(SERVERS / "echo.py")], **more}
    return Config(servers={"a": ServerConfig.model_validate(entry)})


async def test_a_host_takes_over_the_program_that_runs_already(given: Dependencies) -> None:
    async with started_early(config(), given) as parts:
        (group,) = live_groups
        async with Host(config(), parts) as host:
            await host.servers.ready()
            assert host.servers["a"].process.pid == group
            host.servers["a"].restart()
            await host.servers["a"].settled()
            assert host.servers["a"].process.pid not in (group, None)
    assert not live_groups


async def test_a_program_that_no_host_takes_over_is_stopped(given: Dependencies) -> None:
    async with started_early(config(), given):
        assert live_groups
    assert not live_groups


@pytest.mark.parametrize("more", [{"enabled": False}, {"start": "lazy"}])
async def test_what_a_host_would_not_start_is_not_started(given: Dependencies, more: dict[str, Any]) -> None:
    async with started_early(config(**more), given):
        assert not live_groups


async def test_why_a_program_did_not_start_is_said_when_its_host_opens_it(given: Dependencies) -> None:
    missing, unresolved = config(command="no-such-program"), config(env={"KEY": "${NOWHERE}"})
    async with started_early(missing, given) as parts:
        transport = await parts.open_transport(missing, "a")
        with pytest.raises(SpawnFailed, match="no-such-program was not found"):
            await transport.open(Silence())
    async with started_early(unresolved, given) as parts:
        with pytest.raises(UnresolvedReference):
            await parts.open_transport(unresolved, "a")


class Silence:
    """Receives nothing: no program runs."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was called")
