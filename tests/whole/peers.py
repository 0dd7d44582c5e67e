"""Servers of other projects, or built on their libraries: the command line of each, and a host that opened it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mcphost.composition import dependencies
from mcphost.config import Values
from mcphost.host.tool_calls.call import ToolCall
from mcphost.protocol.models.content import ResourceContents
from mcphost.protocol.models.progress import Progress
from tests.conftest import SERVERS
from tests.host.conftest import RecordingHost, ScriptedApprover, settings
from tests.npm import node_runs
from tests.pypi import environment, sources
from tests.warm_start import relayed

NPM_SERVERS = "@modelcontextprotocol/server-{}/dist/index.js"
PYTHON_SERVERS = (
    "fastmcp[tasks]==4.1.2",  # the newest FastMCP that installs
    "mcp==2.3.0",
    "djangorestframework-mcp-server==0.54.0",
    "uvicorn==0.54.0",
    "llmock==0.2.2",
)
"""One environment of all that can share one: making one takes longer than one more program in it."""
SDK_MODULES = ("mcp.server.mcpserver", "mcp_server_git.server", "mcp_server_time.server", "uvicorn")
"""The imports of servers on the Python SDK that is installed with mcphost."""
PEER_MODULES = ("fastmcp.cli", "fastmcp_tasks", "llmock.cli", "uvicorn")
"""The imports of programs in the environment of `PYTHON_SERVERS`."""
SDKS = {
    "2.3.0": ("python-servers", PYTHON_SERVERS, PEER_MODULES),
    "1.30.0": ("python-sdk-1", ("mcp==1.30.0",), ("mcp.server.fastmcp", "uvicorn")),
}

PATHS = {"http": "/mcp", "sse": "/sse"}
TRANSPORTS = ("stdio", *PATHS)
START_SECONDS = 40


def everything(transport: str, port: int) -> list[str]:
    word = "streamableHttp" if transport == "http" else transport
    return ["env", f"PORT={port}", *node_runs(NPM_SERVERS.format("everything"), word)]


def filesystem(folder: Path) -> list[str]:
    """Over stdio, for what is in this folder."""
    return node_runs(NPM_SERVERS.format("filesystem"), str(folder))


def fastmcp(transport: str, port: int) -> list[str]:
    return fastmcp_runs("fastmcp_offers.py", transport, port)


def fastmcp_runs(script: str, transport: str, port: int) -> list[str]:
    """FastMCP's program, which runs a script of tests/servers."""
    where = [] if transport == "stdio" else ["--port", str(port)]
    return peer_program("fastmcp", "run", str(SERVERS / script), "--no-banner", "--transport", transport, *where)


def peer_program(name: str, *words: str) -> list[str]:
    """A program of `PYTHON_SERVERS`."""
    programs = environment("python-servers", PYTHON_SERVERS)
    return relayed(str(programs / "python"), PEER_MODULES, str(programs / name), *words)


def sdk(transport: str, port: int) -> list[str]:
    return sdk_runs(SERVERS / "sdk.py", "streamable-http" if transport == "http" else transport, str(port))


def sdk_runs(script: Path, *words: str) -> list[str]:
    """A script on the Python SDK that is installed with mcphost."""
    return relayed(sys.executable, SDK_MODULES, str(script), *words)


Peer = Callable[[str, int], list[str]]
"""The command line that starts a server over a transport, at a port."""

PEERS: Mapping[str, Peer] = {"everything": everything, "fastmcp": fastmcp, "sdk": sdk}


def example(version: str, name: str, transport: str, port: int) -> list[str]:
    """An example server from the source package of the official SDK, which no wheel holds."""
    environment_name, packages, modules = SDKS[version]
    programs = environment(environment_name, packages)
    folder = sources("mcp", version) / "examples/servers" / name
    module = f"mcp_{name.replace('-', '_')}"
    word = "streamable-http" if transport == "http" else transport
    options = ["--transport", word] if name == "simple-pagination" else []
    where = [] if transport == "stdio" else ["--port", str(port)]
    command = relayed(str(programs / "python"), modules, "-m", module, *options, *where)
    return ["env", f"PYTHONPATH={folder}", *command]


_reserved: list[socket.socket] = []
"""Bound, and not listening: the system gives their ports to no other program, and lets a server bind them."""


def free_port() -> int:
    """Return a port that no other program gets before these tests end."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    _reserved.append(reserved)
    port: int = reserved.getsockname()[1]
    return port


@contextmanager
def running(
    peer: Peer, transport: str, port: int | None = None, *, protocol: str = "legacy"
) -> Iterator[dict[str, Any]]:
    """The configuration entry of a server; one that listens does so until the block ends.

    ``protocol``: many of them speak revisions with and without a handshake.
    """
    if transport == "stdio":
        command, *args = peer(transport, 0)
        yield {"command": command, "args": args, "startup_timeout_sec": START_SECONDS, "protocol": protocol}
        return
    port = port or free_port()
    with listening(peer(transport, port), port):
        yield {"url": f"http://127.0.0.1:{port}{PATHS[transport]}", "protocol": protocol}


@contextmanager
def listening(command: Sequence[str], port: int, **more: Any) -> Iterator[None]:
    """A server of this command line listens until the block ends; what it says on stderr, pytest shows on failure."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, **more) as server:
        try:
            until_listening(port, server)
            yield
        finally:
            server.kill()


def until_listening(port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
        except OSError:
            assert server.poll() is None, "the server ended before it listened"
            assert time.monotonic() < end, "the server does not listen"
            time.sleep(0.02)
        else:
            return


@asynccontextmanager
async def meeting(
    entry: Mapping[str, Any], approver: ScriptedApprover | None = None, **more: Any
) -> AsyncIterator[RecordingHost]:
    """A host whose server `e` is of this entry, all of its lists read; ``more`` are dependencies."""
    made = dependencies(approver or ScriptedApprover(), Values(os.environ))
    config = settings(policy={"default": "allow"}, e=entry)
    given = {"open_transport": made.open_transport, "traffic": made.traffic, **more}
    async with RecordingHost(config, approver, **given) as host:
        await host.servers.ready()
        await host.all_listed("e")
        yield host


async def read(host: RecordingHost, uri: str) -> ResourceContents:
    (contents,) = (await host.resources.read("e", uri)).contents
    assert isinstance(contents, ResourceContents)
    return contents


async def followed(host: RecordingHost, tool: str, arguments: Mapping[str, Any]) -> tuple[ToolCall, list[Progress]]:
    """Make a call to its end; with all progress that came."""
    call, seen = host.tool_calls.call("e", tool, arguments), list[Progress]()

    def look(_: object) -> None:
        if call.progress is not None and call.progress not in seen:
            seen.append(call.progress)

    stop = host.bus.observe(look)
    await host.end_of(call)
    stop()
    return call, seen
