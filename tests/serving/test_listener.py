"""The socket of a screen: who reaches it, how much they may send, and which screen listens."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from mcphost.errors import NotDone, UnknownName
from mcphost.posix import peer_of
from mcphost.serving import link
from mcphost.serving import listener as listening
from mcphost.serving.listener import AgentListener, LinkConnection
from tests.conftest import Until

PATH = Path("run/agents.sock")
"""Below the working folder: a path from the root may be too long for a socket."""


class Sessions:
    """A handler of the link that keeps what comes."""

    def __init__(self) -> None:
        self.opened: list[tuple[link.Hello, int]] = []
        self.received: list[link.FromGate] = []
        self.copies: list[bytes] = []
        self.connections: list[LinkConnection] = []
        self.ended = 0

    async def open(self, hello: link.Hello, pid: int, connection: LinkConnection) -> Session:
        if hello.name == "refused":
            raise NotDone("not this one")
        self.opened.append((hello, pid))
        self.connections.append(connection)
        return Session(self)

    async def serve(self, hello: link.Hello, pid: int) -> Echo:
        if hello.profile == "unknown":
            raise UnknownName("there is no profile unknown")
        self.opened.append((hello, pid))
        return Echo(self)

    def agents(self) -> list[dict[str, Any]]:
        return [{"server": "git"}]


class Session:
    def __init__(self, kept: Sessions) -> None:
        self._kept = kept

    def received(self, message: link.FromGate) -> None:
        self._kept.received.append(message)

    def copied(self, copy: link.MessageCopy, data: bytes) -> None:
        self._kept.copies.append(data)

    def closed(self) -> None:
        self._kept.ended += 1


class Echo:
    """Serves an agent by sending back what it sends."""

    address = "http://127.0.0.1:1/mcp"

    def __init__(self, kept: Sessions) -> None:
        self._kept = kept

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)

    async def aclose(self) -> None:
        self._kept.ended += 1


@pytest.fixture(autouse=True)
async def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    while Gate.open:
        Gate.open.pop().writer.close()
    await asyncio.sleep(0)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def exists(path: Path) -> bool:
    return os.path.lexists(path)


def killed_screen(path: Path) -> None:
    """Leave a socket without a listener."""
    with socket.socket(socket.AF_UNIX) as unheard:
        unheard.bind(str(path))


class Screen:
    """A listener and what it got."""

    def __init__(self, path: Path = PATH, **more: Any) -> None:
        self.sessions, self.reports = Sessions(), list[str]()
        self.listener = AgentListener(path, Path("agents.sock"), self.sessions, self.reports.append, **more)


@asynccontextmanager
async def running(*, listens: bool = True, **more: Any) -> AsyncIterator[Screen]:
    screen = Screen(**more)
    task = asyncio.create_task(screen.listener.run())
    try:
        if listens:
            await screen.listener.listening.wait()
        yield screen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Gate:
    open: ClassVar[list[Gate]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.open.append(self)

    @classmethod
    async def connect(cls) -> Gate:
        return cls(*await asyncio.open_unix_connection(PATH))

    def send(self, *messages: link.FromGate) -> None:
        self.writer.writelines(message.line() for message in messages)

    async def answer(self) -> link.FromScreen:
        return link.read_from_screen(await self.reader.readline())

    async def hello(self, **more: Any) -> link.FromScreen:
        self.send(link.Hello(role="gate", name="git", **more))
        return await self.answer()

    async def is_cut_off(self) -> bool:
        try:
            return await asyncio.wait_for(self.reader.read(), 30) == b""
        except ConnectionError:
            return True


async def test_only_the_user_can_enter_the_socket() -> None:
    async with running():
        assert mode(PATH.parent) == 0o700
        assert mode(PATH) == 0o600
    assert not exists(PATH)


async def test_a_folder_that_others_could_enter_is_closed_to_them() -> None:
    PATH.parent.mkdir(mode=0o755)
    async with running():
        assert mode(PATH.parent) == 0o700


async def test_a_folder_that_is_a_link_gets_no_socket(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    PATH.parent.symlink_to("elsewhere")
    screen = Screen()
    await screen.listener.run()
    assert "is not a folder of yours" in screen.reports[0]
    assert not any((folder / "elsewhere").iterdir())


async def test_anything_else_in_the_place_of_the_socket_stays() -> None:
    PATH.parent.mkdir(mode=0o700)
    os.mkdir(PATH)
    screen = Screen()
    await screen.listener.run()
    assert "is not a socket of mcphost; remove it" in screen.reports[0]
    assert exists(PATH)


async def test_the_kernel_says_who_connected() -> None:
    async with running() as screen:
        gate = await Gate.connect()
        assert await gate.hello(pid=1) == link.Welcome()  # pid 1 is its own word
        assert screen.sessions.opened[0][1] == os.getpid()
        gate.writer.close()


async def test_another_user_is_cut_off_without_a_word() -> None:
    async with running(peer=lambda connection: (peer_of(connection)[0] + 1, 1)) as screen:
        gate = await Gate.connect()
        gate.send(link.Hello(role="gate"))
        assert await gate.is_cut_off()
        assert screen.sessions.opened == []


async def test_messages_and_copies_come_in_order(until: Until) -> None:
    async with running() as screen:
        gate, data = await Gate.connect(), b'{"a":\n1}'
        assert await gate.hello() == link.Welcome()
        gate.send(link.MessageCopy(source="agent", time=1.0, size=len(data)))
        gate.writer.write(data + link.CallForwarded(call=1).line())
        big = link.InboxRequest(number=2, method="roots/list", params={"text": "x" * (1 << 17)})
        gate.send(big)
        await until(lambda: len(screen.sessions.received) == 2)
        assert screen.sessions.received == [link.CallForwarded(call=1), big]
        assert screen.sessions.copies == [data]
        screen.sessions.connections[0].send(link.CallDecided(call=1, allow=True))
        assert await gate.answer() == link.CallDecided(call=1, allow=True)
        gate.writer.close()
        await until(lambda: screen.sessions.ended)


async def test_a_refused_program_learns_the_reason() -> None:
    async with running():
        gate = await Gate.connect()
        gate.send(link.Hello(role="tap", name="refused"))
        assert await gate.answer() == link.HelloRefused(reason="not this one")
        assert await gate.is_cut_off()


async def test_the_list_of_agents_can_be_had() -> None:
    async with running():
        gate = await Gate.connect()
        gate.send(link.Hello(role="list"))
        assert await gate.answer() == link.AgentList(agents=[{"server": "git"}])
        assert await gate.is_cut_off()


@pytest.mark.parametrize("first", [link.CallForwarded(call=1), link.Hello(role="gate", mcphost=2)])
async def test_another_version_is_refused(first: link.FromGate) -> None:
    async with running() as screen:
        gate = await Gate.connect()
        gate.send(first)
        assert await gate.answer() == link.HelloRefused(reason="this mcphost is of another version")
        assert screen.sessions.opened == []


@pytest.mark.parametrize(
    "hostile",
    [b"\x00" * (3 << 20), b"x" * (3 << 20), b"{}\n", b"[" * 99_999 + b"\n", link.Hello(role="gate").line()],
    ids=["zeros", "endless", "empty", "deep", "twice"],
)
async def test_a_program_that_breaks_the_rules_is_disconnected(hostile: bytes, until: Until) -> None:
    async with running() as screen:
        gate = await Gate.connect()
        assert await gate.hello() == link.Welcome()
        gate.writer.write(hostile)
        assert await gate.is_cut_off()
        await until(lambda: screen.sessions.ended)
        assert len(screen.reports) == 1
        assert (await (await Gate.connect()).hello()) == link.Welcome()  # others go on


async def test_a_silent_program_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "HELLO_SECONDS", 0.01)
    async with running():
        assert await (await Gate.connect()).is_cut_off()


async def test_the_number_of_programs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST_CONNECTIONS", 2)
    async with running():
        gates = [await Gate.connect() for _ in range(3)]
        answers = [await gate.hello() for gate in gates]
        assert answers == [link.Welcome()] * 2 + [link.HelloRefused(reason="2 programs are connected already")]


async def test_a_program_that_does_not_read_is_disconnected(until: Until) -> None:
    async with running() as screen:
        gate = await Gate.connect()
        assert await gate.hello() == link.Welcome()
        gate.writer.transport.pause_reading()  # type: ignore[attr-defined]
        answer = link.CallDecided(call=1, allow=False, words="no" * 1000, arguments={"text": "x" * 500_000})
        for _ in range(20):
            screen.sessions.connections[0].send(answer)
        await until(lambda: screen.sessions.ended)


async def test_a_stale_socket_is_replaced() -> None:
    PATH.parent.mkdir(mode=0o700)
    killed_screen(PATH)
    async with running():
        assert await (await Gate.connect()).hello() == link.Welcome()


async def test_the_second_screen_takes_over_when_the_first_ends(until: Until) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(running())
        async with running(listens=False) as second:
            await until(lambda: first.listener._connections and second.reports)  # it waits
            assert not second.listener.listening.is_set()
            assert ["takes over" in each for each in second.reports] == [True]
            await stack.aclose()
            await second.listener.listening.wait()
            assert await (await Gate.connect()).hello() == link.Welcome()
            assert second.sessions.opened
    assert not exists(PATH)


async def test_a_socket_that_another_program_replaced_is_left() -> None:
    async with running():
        os.unlink(PATH)
        killed_screen(PATH)
    assert exists(PATH)


async def test_a_screen_that_is_refused_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "TRIES", 2)
    async with running(peer=lambda connection: (peer_of(connection)[0] + 1, 1)):
        second = Screen()
        await second.listener.run()
        assert second.reports[1:] == ["agents cannot reach this screen: another mcphost is in charge of their socket"]


async def test_a_served_agent_speaks_freely_after_the_welcome(until: Until) -> None:
    async with running() as screen:
        agent = await Gate.connect()
        agent.send(link.Hello(role="serve", servers=["git"], profile="work"))
        assert await agent.answer() == link.Welcome(address=Echo.address)
        agent.writer.write(b"not a message of the link\n")
        assert await agent.reader.readline() == b"not a message of the link\n"
        agent.writer.write_eof()
        assert await agent.is_cut_off()
        await until(lambda: screen.sessions.ended == 1)
        ((hello, pid),) = screen.sessions.opened
        assert (hello.servers, hello.profile, pid) == (["git"], "work", os.getpid())


async def test_an_agent_that_cannot_be_served_hears_why() -> None:
    async with running():
        agent = await Gate.connect()
        agent.send(link.Hello(role="serve", profile="unknown"))
        assert await agent.answer() == link.HelloRefused(reason="there is no profile unknown")
        assert await agent.is_cut_off()


async def test_another_users_agent_is_not_served() -> None:
    async with running(peer=lambda _: (os.geteuid() + 1, 1)) as screen:
        agent = await Gate.connect()
        agent.send(link.Hello(role="serve"))
        assert await agent.is_cut_off()
        assert screen.sessions.opened == []
