"""Servers of other projects over both HTTP transports: detected, called, lost and reconnected."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest

from mcphost.composition import dependencies
from mcphost.config import Config, ServerConfig, Values
from mcphost.host.consent.questions import Answer, Question
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import CallState, ToolCall
from tests.conftest import Until
from tests.warm_start import run
from tests.whole.peers import PATHS, PEERS, free_port, running

pytestmark = pytest.mark.timeout(400)  # a first run installs

CALLS = {"everything": ("echo", {"message": "hi"}), "fastmcp": ("ended", {}), "sdk": ("ended", {})}
"""A tool of each that does no harm."""

OVER_HTTP = [(name, transport) for name in PEERS for transport in PATHS]


class Yes:
    async def ask(self, question: Question) -> Answer:
        return Answer(allow=True)


@pytest.mark.parametrize("transport", PATHS)
def test_a_url_is_detected_checked_and_called(transport: str) -> None:
    with running(PEERS["everything"], transport) as entry:
        url = entry["url"]
        for arguments, words in (
            (["check", url], "● ready"),
            (["call", url, "get-sum", "a=2", "b=3", "--yes"], "The sum of 2 and 3 is 5."),
            (["call", url, "trigger-long-running-operation", "duration=1", "steps=3", "--yes"], "Steps: 3"),
        ):
            done = run(*arguments)
            assert done.returncode == 0, done.stderr
            assert words in done.stdout


@pytest.mark.requirement("LIFE-27")
@pytest.mark.parametrize(("name", "transport"), OVER_HTTP)
async def test_an_absent_server_is_reconnected(name: str, transport: str, until: Until) -> None:
    port, (tool, arguments) = free_port(), CALLS[name]
    config = Config(servers={"web": ServerConfig(url=f"http://127.0.0.1:{port}{PATHS[transport]}")})
    async with Host(config, dependencies(Yes(), Values(os.environ))) as host:
        web = host.servers["web"]
        with running(PEERS[name], transport, port):
            await until(lambda: web.ready, 60)
            assert (await host.tool_calls.call("web", tool, arguments).result()).is_error is False
        if transport == "http":  # only a request shows that the server is gone
            lost = host.tool_calls.call("web", tool, arguments)
            await until(lambda: lost.state.ended)
            assert lost.state is CallState.ERROR
        await until(lambda: not web.ready)
        with running(PEERS[name], transport, port):
            await until(lambda: web.ready, 30)
            assert (await host.tool_calls.call("web", tool, arguments).result()).is_error is False


@asynccontextmanager
async def called_after_a_restart(
    name: str, protocol: Literal["legacy", "modern"], until: Until
) -> AsyncIterator[tuple[Host, ToolCall]]:
    """A host, and its call of a server that was restarted after it was ready; the call has ended."""
    port, (tool, arguments) = free_port(), CALLS[name]
    config = Config(servers={"web": ServerConfig(url=f"http://127.0.0.1:{port}/mcp", protocol=protocol)})
    async with Host(config, dependencies(Yes(), Values(os.environ))) as host:
        with running(PEERS[name], "http", port):
            await until(lambda: host.servers["web"].ready, 60)
        with running(PEERS[name], "http", port):
            call = host.tool_calls.call("web", tool, arguments)
            await until(lambda: call.state.ended)
            yield host, call


def calls_sent(host: Host) -> int:
    return sum(each.sent and each.method == "tools/call" for each in host.traffic.since(0))


@pytest.mark.parametrize("name", PEERS)
async def test_a_forgotten_session_is_opened_again(name: str, until: Until) -> None:
    async with called_after_a_restart(name, "legacy", until) as (host, first):  # newer revisions have no sessions
        # It meets the forgotten session, or waits for the new one where the listening stream met it before. In neither
        # case is it sent twice.
        assert first.state in (CallState.ERROR, CallState.DONE)
        assert calls_sent(host) <= 1
        web, (tool, arguments) = host.servers["web"], CALLS[name]
        await until(lambda: web.ready and web.restarts, 60)
        assert (await host.tool_calls.call("web", tool, arguments).result()).is_error is False


@pytest.mark.parametrize("name", ["fastmcp", "sdk"])
async def test_a_restarted_server_without_sessions_gets_no_call_twice(name: str, until: Until) -> None:
    async with called_after_a_restart(name, "modern", until) as (host, first):
        assert first.state in (CallState.ERROR, CallState.DONE)  # as the connection to the first was in use or not
        assert calls_sent(host) <= 1
        await until(lambda: host.servers["web"].ready, 60)
        tool, arguments = CALLS[name]
        assert (await host.tool_calls.call("web", tool, arguments).result()).is_error is False
