from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcphost.client.client import RequestTimeouts
from mcphost.config import Config
from mcphost.errors import ConfigError, UnknownName
from mcphost.host.connections.connection import ServerState
from mcphost.host.events import ServersChanged
from mcphost.host.tool_calls.call import CallState
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.stdio.transport import Command, StdioTransport
from tests.conftest import Until
from tests.host.conftest import FileStore, HostOf, RecordingHost, alive, echo, hostile, settings

SAY = {"text": "x"}
ALLOW = {"default": "allow"}
READY, STOPPED, DISABLED = ServerState.READY, ServerState.STOPPED, ServerState.DISABLED


def pids(running: RecordingHost) -> dict[str, int | None]:
    return {name: connection.process.pid for name, connection in running.servers.items()}


@pytest.mark.parametrize(
    ("entry", "state"),
    [({}, READY), ({"start": "lazy"}, STOPPED), ({"start": "manual"}, STOPPED), ({"enabled": False}, DISABLED)],
)
@pytest.mark.requirement("HOST-03")
async def test_only_what_starts_by_itself_is_started(host: HostOf, entry: dict[str, Any], state: ServerState) -> None:
    async with host(a=echo(**entry)) as running:
        await running.servers.ready()
        assert running.servers["a"].state is state


@pytest.mark.parametrize(
    ("entry", "state", "words"),
    [
        ({"start": "lazy"}, CallState.DONE, ""),
        ({"start": "manual"}, CallState.ERROR, "a is stopped"),
        ({"enabled": False}, CallState.ERROR, "a is disabled"),
    ],
)
async def test_a_call_starts_a_lazy_server_and_no_other(
    host: HostOf, entry: dict[str, Any], state: CallState, words: str
) -> None:
    async with host(a=echo(**entry), policy=ALLOW) as running:
        call = await running.run("a", "echo", SAY)
        assert (call.state, str(call.error or "")) == (state, words)
        if not words:
            return
        assert running.approver.questions == []
        await running.servers.ready(["a"])
        assert running.servers["a"].ready


async def test_an_unknown_server_is_named_with_those_there_are(host: HostOf) -> None:
    async with host(a=echo(), b=echo()) as running:
        with pytest.raises(UnknownName, match="no server is called 'x'; configured: a, b"):
            await running.servers.ready(["a", "x"])


@pytest.mark.requirement("HOST-05", "LIFE-15")
async def test_waiting_for_one_server_does_not_wait_for_others(host: HostOf) -> None:
    async with host(dead=hostile("initialize-silent"), good=echo()) as running:
        await asyncio.wait_for(running.servers.ready(["good"]), 8)
        assert running.servers["dead"].state is ServerState.STARTING


@pytest.mark.hostile("P12")
@pytest.mark.requirement("HOST-02")
async def test_a_server_gets_nothing_that_was_meant_for_another(host: HostOf, tmp_path: Path) -> None:
    """The records of two servers, after a call on one."""
    records = {name: tmp_path / name for name in "ab"}
    servers = {name: echo("--record", record) for name, record in records.items()}
    async with host(**servers, policy=ALLOW) as running:
        await running.servers.ready()
        await running.run("a", "echo", {"text": "between us"})
    assert ["between us" in record.read_text() for record in records.values()] == [True, False]


# Leaving.


@pytest.mark.hostile("S01")
@pytest.mark.slow
@pytest.mark.requirement("LIFE-15", "LIFE-23", "HOST-05")
async def test_twenty_servers_that_ignore_everything_end_in_time() -> None:
    """In parallel, with the grace every server has by default."""

    async def open_transport(config: Config, name: str) -> Transport:
        server = config.servers[name]
        return StdioTransport(Command(server.command or "", server.args), TransportLimits(), os.environ)

    servers = {f"s{number}": echo("--ignore-eof", "--ignore-sigterm") for number in range(20)}
    running = RecordingHost(settings(**servers), open_transport=open_transport)
    async with running:
        await running.servers.ready()
        assert all(connection.ready for connection in running.servers.values())
        left = time.monotonic()
    assert time.monotonic() - left < 5
    assert not [pid for pid in pids(running).values() if alive(pid)]


async def close_at_once(running: RecordingHost, until: Until) -> None:
    return


async def close_while_starting(running: RecordingHost, until: Until) -> None:
    await asyncio.sleep(0)
    assert running.servers["a"].state is ServerState.STARTING


async def close_while_ending(running: RecordingHost, until: Until) -> None:
    await running.servers.ready()
    running.servers["a"].stop()
    await until(lambda: not running.servers["a"].ready)


async def close_during_a_call(running: RecordingHost, until: Until) -> None:
    call = running.tool_calls.call("a", "sleep", {"seconds": 60})
    await until(lambda: call.state is CallState.RUNNING)


async def close_by_a_fault(running: RecordingHost, until: Until) -> None:
    await running.servers.ready()
    raise ZeroDivisionError


@pytest.mark.parametrize(
    "moment", [close_at_once, close_while_starting, close_while_ending, close_during_a_call, close_by_a_fault]
)
@pytest.mark.requirement("LIFE-23", "LIFE-26")
async def test_leaving_at_any_moment_leaves_no_process(host: HostOf, until: Until, moment: Callable[..., Any]) -> None:
    running = host(a=echo("--ignore-eof", "--ignore-sigterm"), policy=ALLOW)
    try:
        async with running:
            await moment(running, until)
    except ZeroDivisionError:
        assert moment is close_by_a_fault
    assert all(call.state is CallState.CANCELLED for call in running.tool_calls.calls.values())
    assert running.servers["a"].state is STOPPED
    pid = running.servers["a"].process.pid
    assert pid is None or not alive(pid)


async def test_a_cancelled_host_still_ends_its_servers(host: HostOf) -> None:
    running = host(a=echo("--ignore-eof", "--ignore-sigterm"))
    inside = asyncio.Event()

    async def live() -> None:
        async with running:
            await running.servers.ready()
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(live())
    await inside.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.02)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(running.servers["a"].process.pid)


@pytest.mark.hostile("C07")
async def test_approvals_that_are_not_ours_stop_the_start_in_words(host: HostOf, tmp_path: Path) -> None:
    """A link in the place of a state file."""
    (tmp_path / "approvals.toml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=r"approvals\.toml"):
        async with host(a=echo(), dependencies={"store": FileStore(tmp_path)}):
            pytest.fail("it started")


# Another configuration.


async def test_applying_adds_removes_and_changes_and_leaves_the_rest_alone(host: HostOf, tmp_path: Path) -> None:
    async with host(stays=echo(), changes=echo(), goes=echo(), policy=ALLOW) as running:
        await running.servers.ready()
        before, gone = pids(running), running.servers["goes"]
        call = running.tool_calls.call("stays", "sleep", {"seconds": 0.2})
        cut_off = running.tool_calls.call("goes", "sleep", {"seconds": 60})
        changes = await running.apply(settings(policy=ALLOW, new=echo(), changes=echo("--name", "x"), stays=echo()))
        await running.servers.ready()
        assert (changes.added, changes.removed) == (("new",), ("goes",))
        assert list(running.servers) == ["new", "changes", "stays"]
        assert all(connection.ready for connection in running.servers.values())
        assert pids(running)["stays"] == before["stays"]
        assert pids(running)["changes"] != before["changes"]
        assert running.servers["changes"].session.server.server_info.name == "x"  # type: ignore[union-attr]
        assert not alive(before["goes"])
        assert gone.state is STOPPED
        await running.end_of(call)
        await running.end_of(cut_off)
        assert (call.state, cut_off.state) == (CallState.DONE, CallState.ERROR)
        assert {offered.server for offered in running.catalog.tools()} == {"new", "changes", "stays"}
        assert running.events.count(ServersChanged()) == 1


async def test_a_changed_timeout_holds_for_resources_and_prompts_at_once(host: HostOf) -> None:
    async with host(a=echo(), policy=ALLOW) as running:
        await running.servers.ready()
        await running.apply(settings(policy=ALLOW, a=echo(tool_timeout_sec=5, tool_timeout_max_sec=7)))
        assert running.servers["a"].client.timeouts == RequestTimeouts(5, 7)


@pytest.mark.parametrize(
    ("entry", "same_process"),
    [
        ({"tools": {"echo": {"approval": "deny"}}}, True),
        ({"tool_timeout_sec": 5}, True),
        ({"disabled_tools": ["echo"]}, True),
        ({"limits": {"log_lines": 7}}, True),
        ({"limits": {"log_lines": 7, "list_pages": 7}}, False),
        ({"env": {"X": "1"}}, False),
        ({"log_level": "error"}, False),
    ],
)
async def test_a_change_restarts_a_server_only_where_it_must(
    host: HostOf, until: Until, entry: dict[str, Any], same_process: bool
) -> None:
    async with host(a=echo(), policy=ALLOW) as running:
        await running.servers.ready()
        before = pids(running)["a"]
        await running.apply(settings(policy=ALLOW, a=echo(**entry)))
        await running.servers.ready()
        assert (pids(running)["a"] == before) is same_process
        if "disabled_tools" in entry:
            await until(lambda: len(running.servers["a"].tools) == 10)
        if "log_level" in entry:
            assert running.servers["a"].level is not None
        if "limits" in entry:
            await running.run("a", "log", {"count": 20})
            assert len(running.said("a")) == 7
        if "tools" in entry:
            assert (await running.run("a", "echo", SAY)).state is CallState.DECLINED


@pytest.mark.parametrize(
    ("before", "after", "states"),
    [
        ({"enabled": False}, {}, (DISABLED, READY)),
        ({}, {"enabled": False}, (READY, DISABLED)),
        ({"start": "manual"}, {"env": {"X": "1"}, "start": "manual"}, (STOPPED, STOPPED)),
        ({"required_capabilities": ["prompts"]}, {}, (ServerState.FAILED, READY)),
    ],
)
@pytest.mark.requirement("HOST-03")
async def test_applying_brings_a_server_to_the_state_its_entry_wants(
    host: HostOf, before: dict[str, Any], after: dict[str, Any], states: tuple[ServerState, ServerState]
) -> None:
    async with host(a=echo(**before)) as running:
        await running.servers.ready()
        assert running.servers["a"].state is states[0]
        await running.apply(settings(a=echo(**after)))
        await running.servers.ready()
        assert running.servers["a"].state is states[1]


async def test_configurations_applied_at_once_end_in_the_last(host: HostOf) -> None:
    async with host(a=echo(), b=echo()) as running:
        await running.servers.ready()
        wanted = [settings(), settings(a=echo()), settings(c=echo()), settings(a=echo(), c=echo())]
        await asyncio.gather(*map(running.apply, wanted))
        await running.servers.ready()
        assert {name: c.state for name, c in running.servers.items()} == {"a": READY, "c": READY}


@pytest.mark.hostile("C02")
@pytest.mark.parametrize(
    ("config", "words"),
    [
        (echo(), shlex.quote(echo()["args"][-1])),
        ({"url": "https://x.example/mcp"}, "https://x.example/mcp"),
        ({"command": "a b", "args": ["${X}", ""]}, "'a b' '${X}' ''"),
        (
            {"command": "a", "args": ["(in", "x)"], "cwd": "~/x y", "env": {"T": "s3cret"}, "env_vars": ["L"]},
            "a '(in' 'x)' (in '~/x y', given L T)",
        ),
        ({"url": "https://x/m", "http_headers": {"X-A": "v"}, "env_http_headers": {"K": "V"}}, "m (given K X-A)"),
    ],
)
def test_what_gets_the_arguments_is_shown_as_configured(config: dict[str, Any], words: str) -> None:
    """And it is what an approval is bound to, so it holds folder and names, but no values."""
    assert settings(a=config).servers["a"].identity.endswith(words)
