"""``mcphost serve`` as an agent starts it: through a screen that comes and goes, and without one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcphost.composition.agents import listen_for_agents
from tests.cli.conftest import entry
from tests.conftest import Until
from tests.host.endpoint.rig import EndpointRig, ServerContent, rig, says
from tests.whole.keychain_file import KeychainFile

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="it has no Unix sockets")]

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "twin", "version": "1"}}
HEAVY = {"argparse", "asyncio", "inspect", "logging", "pydantic", "subprocess", "mcphost.cli.parser", "mcphost.config"}


class Served:
    """A process of ``mcphost serve``, and the agent's end of its streams."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._last = 0

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        self.say(method, self._last, **params)
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._last:
                return message
        raise AssertionError(await self.words())

    def say(self, method: str, key: int | None = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if key is None else {"id": key})
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def open(self) -> dict[str, Any]:
        opened = await self.ask("initialize", **HELLO)
        self.say("notifications/initialized")
        return opened

    async def words(self) -> str:
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()

    async def end(self) -> int:
        """Close its input, and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.process.wait()


Serve = Callable[..., Coroutine[Any, Any, Served]]


@pytest.fixture
def folder() -> Iterator[Path]:
    made = tempfile.mkdtemp()  # a socket's path must be short
    yield Path(made)
    shutil.rmtree(made)


@pytest.fixture
async def serve(folder: Path) -> AsyncIterator[Serve]:
    """`await serve("git")`: start it."""
    started: list[Served] = []
    (folder / "config.toml").write_text(entry("echo"))
    own = {"MCPHOST_CONFIG": str(folder / "config.toml"), "MCPHOST_STATE_DIR": str(folder), "MCPHOST_KEYCHAIN": "off"}

    async def start(*words: str, program: str = "mcphost", **more: str) -> Served:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", program, "serve", *words,
            stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, **own, **more},
        )  # fmt: skip
        started.append(Served(process))
        return started[-1]

    yield start
    for each in started:
        if each.process.returncode is None:
            each.process.kill()
        await each.process.communicate()


@asynccontextmanager
async def screen(folder: Path, until: Until) -> AsyncIterator[EndpointRig]:
    async with rig({"rock": ServerContent(lamp=says("lit"))}) as running:
        listening = asyncio.create_task(listen_for_agents(running.host, folder / "agents.sock", folder))
        await until((folder / "agents.sock").exists)
        yield running
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


@pytest.mark.server_requirement("STRAN-01", "STRAN-05")
async def test_a_screen_serves_agents_whose_way_to_it_loads_little(folder: Path, serve: Serve, until: Until) -> None:
    async with screen(folder, until) as running:
        agent = await serve("rock", "--as", "codex", PYTHONPROFILEIMPORTTIME="1")
        assert "result" in await agent.open()
        assert [each["name"] for each in (await agent.ask("tools/list"))["result"]["tools"]] == ["lamp"]
        (session,) = running.host.endpoint.sessions
        assert (session.options.agent.given, session.options.servers) == ("codex", ("rock",))
        assert await agent.end() == 0
        await until(lambda: not running.host.endpoint.sessions)
        loaded = {line.rpartition("|")[2].strip() for line in (await agent.words()).splitlines()}
        assert "mcphost.shim" in loaded
        assert loaded & HEAVY == set()

        killed = await serve()
        await killed.open()
        killed.process.kill()
        await until(lambda: not running.host.endpoint.sessions)


async def test_the_end_of_the_screen_ends_the_session_in_words(folder: Path, serve: Serve, until: Until) -> None:
    async with screen(folder, until) as running:
        disconnected = await serve()
        await disconnected.open()
        running.host.agents.disconnect(running.host.agents.sessions[0].number)
        assert await disconnected.process.wait() == 3
        assert "or you disconnected the agent there" in await disconnected.words()
        agent = await serve()
        await agent.open()
        refused = await serve("nothing")
        assert await refused.process.wait() == 3
        assert "mcphost serve: no server is called 'nothing'; there are: rock\n" in await refused.words()
    assert await agent.process.wait() == 3
    assert "this session is over: mcphost's screen has ended" in await agent.words()


@pytest.mark.server_requirement("SSTDIO-02", "SSTDIO-07")
async def test_without_a_screen_the_process_serves_alone(folder: Path, serve: Serve) -> None:
    agent = await serve("echo", "--as", "codex")
    await agent.open()
    assert "echo" in [each["name"] for each in (await agent.ask("tools/list"))["result"]["tools"]]
    assert not (folder / "agents.sock").exists()
    assert await agent.end() == 0
    assert await agent.words() == ""


async def test_it_may_offer_nothing_without_a_screen(folder: Path, serve: Serve) -> None:
    with (folder / "config.toml").open("a") as config:
        config.write('[serve]\nwithout_screen = "refuse"\n')
    agent = await serve()
    assert "mcphost is not running" in (await agent.open())["result"]["instructions"]
    assert (await agent.ask("tools/list"))["result"]["tools"] == []
    assert await agent.end() == 0


async def test_an_address_is_the_screens_while_the_command_runs(folder: Path, serve: Serve, until: Until) -> None:
    shelf = KeychainFile(folder / "items.shelf")
    at_any_port = {"program": KeychainFile.PROGRAM, "MCPHOST_KEYCHAIN": "", **shelf.env}

    async def first_words(process: Served) -> str:
        assert process.process.stderr is not None
        words = b""
        while b"until ctrl+c" not in words:
            words = await process.process.stderr.readline()
            assert words, await process.words()
        return words.decode()

    async with screen(folder, until):
        through = await serve("--http", "127.0.0.1:0", **at_any_port)
        assert "mcphost's screen serves agents at http://127.0.0.1:" in await first_words(through)
    assert await through.process.wait() == 3
    assert "mcphost's screen has ended, and the address with it" in await through.words()

    alone = await serve("--http", "127.0.0.1:0", "echo", **at_any_port)
    assert "agents are served at http://127.0.0.1:" in await first_words(alone)
    alone.process.send_signal(signal.SIGINT)
    assert await alone.process.wait() == 0
