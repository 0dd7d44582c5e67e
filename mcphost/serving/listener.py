"""The socket of the running screen, to which taps, gates and ``mcphost serve`` connect.

Only programs of the same user reach it: they are checked by the kernel's word, and bounded in what they send. One
screen listens; another waits until the first has gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from mcphost.config.state import locked
from mcphost.errors import ConfigError, InvalidLink, McphostError, NotDone
from mcphost.posix import is_our_user, owned_by_us, peer_of, unix_socket
from mcphost.protocol.wire.strict_json import IN_STEPS
from mcphost.serving.link import (
    LINE_BYTES,
    PROTOCOL,
    WORDS_CHARACTERS,
    AgentList,
    FromGate,
    FromScreen,
    Hello,
    HelloRefused,
    MessageCopy,
    Welcome,
    read_from_gate,
    read_from_gate_in_steps,
)
from mcphost.time_slices import TimeSlice, in_turns

MOST_CONNECTIONS: Final = 100
"""Programs that are connected at once: each takes up to 2 MiB of what it sends before that is read."""

HELLO_SECONDS: Final = 10.0
"""Seconds in which a program that connects must say who it is."""

UNREAD_BYTES: Final = 4 << 20
"""Bytes that may wait for a program that does not read; it is disconnected then."""

CONNECT_SECONDS: Final = 2.0
"""Seconds to wait for another screen to take a connection."""

SHORT_SECONDS: Final = 1.0
"""A stand-by that ends sooner was refused."""

TRIES: Final = 5
"""Refused stand-bys in a row after which this screen gives up."""

_log = logging.getLogger(__name__)


class LinkSession(Protocol):
    """Receives what one tap or gate sends. Called synchronously: may neither block nor raise."""

    def received(self, message: FromGate) -> None:
        """A message other than ``hello`` and ``copy``."""

    def copied(self, copy: MessageCopy, data: bytes) -> None:
        """A copy of a message between agent and server."""

    def closed(self) -> None:
        """The connection is gone; nothing follows."""


class ServedConnection(Protocol):
    """An agent that is served, or an address at which agents are."""

    address: str
    """The URL of the address; empty for an agent."""

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> object:
        """Serve until the stream ends."""

    async def aclose(self) -> None:
        """The connection is gone."""


class LinkHandler(Protocol):
    """The side of the host."""

    async def open(self, hello: Hello, pid: int, connection: LinkConnection) -> LinkSession:
        """A tap or gate with this process id has connected. Raises NotDone to refuse it."""

    async def serve(self, hello: Hello, pid: int) -> ServedConnection:
        """``mcphost serve`` with this process id has connected. Raises McphostError to refuse it."""

    def agents(self) -> Sequence[dict[str, Any]]:
        """The list of agents, as JSON."""


class LinkConnection:
    """One tap or gate that is connected."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    def send(self, message: FromScreen) -> None:
        """Send a message without waiting. A program that does not read is disconnected."""
        if self.writer.is_closing():
            return
        self.writer.write(message.line())
        if self.writer.transport.get_write_buffer_size() > UNREAD_BYTES:
            self.abort()

    def close(self) -> None:
        """Disconnect the program once it was sent all that waits for it."""
        self.writer.close()

    def abort(self) -> None:
        """Disconnect the program at once."""
        self.writer.transport.abort()


class _Claim(NamedTuple):
    """A listening socket at the path, or else a connection to the screen that listens there."""

    listening: socket.socket | None = None
    first: socket.socket | None = None
    file: tuple[int, int] = 0, 0
    """Device and number of the socket's file."""


class AgentListener:
    """Listens at ``path`` for taps, gates and ``mcphost serve`` while `run` runs.

    ``lock`` is a path in the state folder, whose lock is held while a stale socket is replaced. ``report`` takes a
    sentence for the user.
    """

    def __init__(
        self,
        path: Path,
        lock: Path,
        handler: LinkHandler,
        report: Callable[[str], None],
        *,
        peer: Callable[[socket.socket], tuple[int, int]] = peer_of,
    ) -> None:
        self.path = path
        self._lock, self._handler, self._report, self._peer = lock, handler, report, peer
        self._connections: set[asyncio.Task[None]] = set()
        self.listening = asyncio.Event()
        """Set while this screen is in charge."""

    async def run(self) -> None:
        """Listen until cancelled, at once or after the screen that does now. Returns if that is not possible."""
        refused, first = 0, True
        while refused < TRIES:
            try:
                claim = await self._claimed()
            except (ConfigError, OSError) as error:
                why = f"{self.path}: {error.strerror}" if isinstance(error, OSError) else error
                self._report(f"agents cannot reach this screen: {why}")
                return
            if claim.listening is not None:
                await self._serve(claim.listening, claim.file)
            elif claim.first is not None:
                if first:
                    self._report("another mcphost is asked by the agents; this one takes over when it ends")
                first = False
                began = asyncio.get_running_loop().time()
                await _stand_by(claim.first)
                short = asyncio.get_running_loop().time() - began < SHORT_SECONDS
                refused = refused + 1 if short else 0
        self._report("agents cannot reach this screen: another mcphost is in charge of their socket")

    # The path.

    async def _claimed(self) -> _Claim:
        claiming = asyncio.ensure_future(asyncio.to_thread(self._claim))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            claim = await claiming
            if claim.listening is not None:
                self._remove(claim.file)
                claim.listening.close()
            if claim.first is not None:
                claim.first.close()
            raise

    def _claim(self) -> _Claim:
        """Listen at the path, or connect to the screen that does. Blocks. Raises ConfigError or OSError."""
        _make_private(self.path.parent)
        with locked(self._lock):
            first = _connected(self.path)
            if first is not None:
                return _Claim(first=first)
            listening = unix_socket()
            try:
                listening.bind(str(self.path))
                os.chmod(self.path, 0o600)
                listening.listen(MOST_CONNECTIONS)
                listening.setblocking(False)
                status = self.path.lstat()
            except BaseException:
                listening.close()
                raise
        return _Claim(listening, file=(status.st_dev, status.st_ino))

    def _remove(self, file: tuple[int, int]) -> None:
        """Remove the socket's file if it is still this screen's."""
        with suppress(OSError):
            status = self.path.lstat()
            if (status.st_dev, status.st_ino) == file:
                self.path.unlink()

    # The connections.

    async def _serve(self, listening: socket.socket, file: tuple[int, int]) -> None:
        server = await asyncio.start_server(self._connected, sock=listening, limit=LINE_BYTES)
        self.listening.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.listening.clear()
            self._remove(file)  # first, so that the screen that waits finds no file and takes over
            server.close()
            for task in tuple(self._connections):
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._speak(reader, LinkConnection(writer), writer.get_extra_info("socket"))
        except (OSError, EOFError, TimeoutError):
            pass
        except InvalidLink as error:
            self._report(f"a program at the socket for agents was disconnected: {error}")
        except asyncio.CancelledError:
            pass  # asyncio's server would report it as a failure
        except Exception:
            _log.exception("a connection of an agent failed")
        finally:
            self._connections.discard(task)
            writer.close()

    async def _speak(self, reader: asyncio.StreamReader, connection: LinkConnection, peer: socket.socket) -> None:
        user, pid = self._peer(peer)
        if not is_our_user(user):
            return
        if len(self._connections) > MOST_CONNECTIONS:
            connection.send(HelloRefused(reason=f"{MOST_CONNECTIONS} programs are connected already"))
            return
        async with asyncio.timeout(HELLO_SECONDS):
            hello = await _next_message(reader)
        if not isinstance(hello, Hello) or hello.mcphost != PROTOCOL:
            connection.send(HelloRefused(reason="this mcphost is of another version"))
        elif hello.role == "list":
            connection.send(AgentList(agents=[*self._handler.agents()]))
        elif hello.role == "standby":
            await reader.read(1)
        elif hello.role in ("serve", "http"):
            await self._serve_agent(hello, pid, reader, connection)
        else:
            await self._follow(hello, pid, reader, connection)

    async def _serve_agent(
        self, hello: Hello, pid: int, reader: asyncio.StreamReader, connection: LinkConnection
    ) -> None:
        try:
            served = await self._handler.serve(hello, pid)
        except McphostError as refused:
            connection.send(HelloRefused(reason=str(refused)[:WORDS_CHARACTERS]))
            return
        try:
            connection.send(Welcome(address=served.address))
            await served.run(reader, connection.writer)
        finally:
            await served.aclose()

    async def _follow(self, hello: Hello, pid: int, reader: asyncio.StreamReader, connection: LinkConnection) -> None:
        try:
            session = await self._handler.open(hello, pid, connection)
        except NotDone as refused:
            connection.send(HelloRefused(reason=str(refused)))
            return
        try:
            connection.send(Welcome())
            time_slice = TimeSlice()
            while True:
                await time_slice.pause_if_over()
                message = await _next_message(reader)
                if isinstance(message, MessageCopy):
                    session.copied(message, await reader.readexactly(message.size))
                elif isinstance(message, Hello):
                    raise InvalidLink("it said hello twice")
                else:
                    session.received(message)
        finally:
            session.closed()


async def _next_message(reader: asyncio.StreamReader) -> FromGate:
    """Raises InvalidLink, and EOFError at the end."""
    try:
        line = await reader.readuntil()
    except asyncio.LimitOverrunError:
        raise InvalidLink(f"a line is longer than {LINE_BYTES} bytes") from None
    return read_from_gate(line) if len(line) < IN_STEPS else await in_turns(read_from_gate_in_steps(line))


def _make_private(folder: Path) -> None:
    """Create the folder, or close it to others. Raises ConfigError or OSError."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or not owned_by_us(status):
        raise ConfigError("is not a folder of yours, so that no socket for agents is made there", path=folder)
    if status.st_mode & 0o077:
        folder.chmod(0o700)


def _connected(path: Path) -> socket.socket | None:
    """A connection to the screen that listens at the path; None once the path is free.

    A socket without a listener is removed. Raises ConfigError where anything else is at the path, or OSError.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISSOCK(status.st_mode) or not owned_by_us(status):
        raise ConfigError("is not a socket of mcphost; remove it, so that agents can reach this screen", path=path)
    first = unix_socket()
    first.settimeout(CONNECT_SECONDS)
    try:
        first.connect(str(path))
        with suppress(BrokenPipeError):  # refused, which the end of the connection shows
            first.sendall(Hello(role="standby", pid=os.getpid()).line())
    except (ConnectionRefusedError, FileNotFoundError):
        first.close()
        path.unlink(missing_ok=True)
        return None
    except (BlockingIOError, TimeoutError):
        first.close()
        raise ConfigError("another mcphost is in charge of the socket for agents, and does not answer") from None
    except OSError:
        first.close()
        raise
    first.setblocking(False)
    return first


async def _stand_by(first: socket.socket) -> None:
    """Return when the connection has ended."""
    reader, writer = await asyncio.open_connection(sock=first)
    try:
        with suppress(OSError):
            while await reader.read(1 << 16):
                pass
    finally:
        writer.close()
