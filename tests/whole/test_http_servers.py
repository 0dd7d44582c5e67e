"""The everything server over its two HTTP transports: found out, called, lost and found again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcphost.config import Config, ServerConfig, Values
from mcphost.host.calls import CallState
from mcphost.host.consent import Answer, ToolCallQuestion
from mcphost.host.host import Host
from mcphost.wiring import fittings
from tests.conftest import Until

MODES = [("streamableHttp", "/mcp"), ("sse", "/sse")]


class Yes:
    async def ask(self, question: ToolCallQuestion) -> Answer:
        return Answer(allow=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def everything(node_modules: Path, mode: str, port: int) -> Iterator[None]:
    """The server, listening, until the block ends."""
    script = node_modules / "@modelcontextprotocol/server-everything/dist/index.js"
    command = ["node", str(script), mode]
    server = subprocess.Popen(
        command, env={**os.environ, "PORT": str(port)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until_listening(port)
        yield
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def until_listening(port: int) -> None:
    end = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
        except OSError:
            if time.monotonic() > end:
                raise
        else:
            return


@pytest.mark.parametrize(("mode", "path"), MODES)
def test_a_url_is_found_out_checked_and_called(node_modules: Path, mode: str, path: str) -> None:
    port = free_port()
    with everything(node_modules, mode, port):
        url = f"http://127.0.0.1:{port}{path}"
        for arguments, words in (
            (["check", url], "● ready"),
            (["call", url, "get-sum", "a=2", "b=3", "--yes"], "The sum of 2 and 3 is 5."),
            (["call", url, "trigger-long-running-operation", "duration=1", "steps=3", "--yes"], "Steps: 3"),
        ):
            command = [sys.executable, "-m", "mcphost", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            assert words in done.stdout


@pytest.mark.requirement("LIFE-27")
@pytest.mark.parametrize(("mode", "path"), MODES)
async def test_a_server_that_was_away_comes_back_by_itself(
    node_modules: Path, mode: str, path: str, until: Until
) -> None:
    port = free_port()
    config = Config(servers={"web": ServerConfig(url=f"http://127.0.0.1:{port}{path}")})
    async with Host(config, fittings(Yes(), Values(os.environ))) as host:
        web = host.servers["web"]
        with everything(node_modules, mode, port):
            await until(lambda: web.ready, 20)
            assert (await host.call_tool("web", "echo", {"message": "before"}).result()).is_error is False
        if mode == "streamableHttp":  # without a request nobody can know
            lost = host.call_tool("web", "echo", {"message": "lost"})
            await until(lambda: lost.state.ended)
            assert lost.state is CallState.ERROR
        await until(lambda: not web.ready)
        with everything(node_modules, mode, port):
            await until(lambda: web.ready, 30)
            result = await host.call_tool("web", "echo", {"message": "after"}).result()
            assert result.raw["content"] == [{"type": "text", "text": "Echo: after"}]


async def test_a_session_the_server_forgot_is_opened_anew(node_modules: Path, until: Until) -> None:
    port = free_port()
    config = Config(servers={"web": ServerConfig(url=f"http://127.0.0.1:{port}/mcp")})
    async with Host(config, fittings(Yes(), Values(os.environ))) as host:
        web = host.servers["web"]
        with everything(node_modules, "streamableHttp", port):
            await until(lambda: web.ready, 20)
        with everything(node_modules, "streamableHttp", port):
            forgotten = host.call_tool("web", "echo", {"message": "once"})
            await until(lambda: forgotten.state.ended)
            assert forgotten.state is CallState.ERROR  # and not sent again unasked
            await until(lambda: web.ready and web.restarts, 20)
            assert (await host.call_tool("web", "echo", {"message": "again"}).result()).is_error is False
