"""The pump of one session over byte streams, with a socket pair between it and the client."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcphost.protocol.lifecycle.revisions import V2025_06_18
from mcphost.protocol.limits import MESSAGE_BYTES
from mcphost.serving import stream_pump
from mcphost.serving.session import ServerSession, Write
from mcphost.serving.stream_pump import own_streams, serve_stream
from tests.conftest import Until
from tests.serving.session_rig import Json, SessionRig

server = pytest.mark.server_requirement


class Seen:
    """A `MessageObserver` that keeps all."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, bytes]] = []
        self.notes: list[str] = []

    def sent(self, data: bytes) -> None:
        self.messages.append(("out", data))

    def received(self, data: bytes) -> None:
        self.messages.append(("in", data))

    def noted(self, kind: str, text: str) -> None:
        self.notes.append(text)


class Wire:
    """A client of the pump."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.seen = Seen()
        self.rig = SessionRig(V2025_06_18)

    def open_session(self, write: Write) -> ServerSession:
        self.rig.session = ServerSession(self.rig, write)
        return self.rig.session

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def ask(self, key: int, method: str, **params: Any) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "id": key, "method": method, "params": params}).encode() + b"\n")

    async def next(self) -> Json:
        line = await asyncio.wait_for(self.reader.readline(), 10)
        assert line.endswith(b"\n")
        value: Json = json.loads(line)
        return value

    async def open(self) -> None:
        self.ask(0, "initialize", protocolVersion="2025-06-18", capabilities={})
        self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\r\n\n')
        assert (await self.next())["id"] == 0


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Wire, asyncio.Task[str]]]:
    ours, theirs = socket.socketpair()
    wire = Wire(*await asyncio.open_connection(sock=ours))
    streams = await asyncio.open_connection(sock=theirs)
    task = asyncio.create_task(serve_stream(*streams, wire.open_session, wire.seen))
    try:
        yield wire, task
    finally:
        task.cancel()
        await asyncio.wait([task])
        wire.writer.close()


def socket_of(wire: Wire) -> Any:
    return wire.writer.transport


async def ended(task: asyncio.Task[str]) -> str:
    return await asyncio.wait_for(task, 10)


@server("SSTDIO-01", "STRAN-01", "STRAN-05")
async def test_each_line_is_a_message() -> None:
    async with serving() as (wire, _):
        await wire.open()
        wire.send(b'{"jsonrpc": "2.0", "id": 1, "me')
        await wire.writer.drain()
        wire.send(b'thod": "ping"}\n')
        assert await wire.next() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert [way for way, _ in wire.seen.messages] == ["in", "out", "in", "in", "out"]


@server("SSTDIO-07", "SSTDIO-08", "SCANC-02")
async def test_the_end_of_input_cancels_what_runs() -> None:
    async with serving() as (wire, task):
        await wire.open()
        wire.ask(1, "tools/call", name="t")
        wire.ask(2, "ping")
        await wire.next()
        wire.send(b'{"jsonrpc": "2.0", "id": 3, "method": "ping"}')  # never a whole line
        wire.writer.write_eof()
        assert await ended(task) == ""
        assert wire.rig.begun[0].over
        assert wire.rig.told == ["closed"]
        assert await wire.reader.read() == b""
        assert wire.seen.notes == ["45 B without the end of their line"]


async def test_a_large_line_is_parsed_in_slices() -> None:
    async with serving() as (wire, _):
        await wire.open()
        wire.ask(1, "tools/call", name="t", arguments={"numbers": [*range(40_000)]})
        wire.ask(2, "ping")
        assert (await wire.next())["id"] == 2
        assert len(wire.rig.begun[0].params["arguments"]["numbers"]) == 40_000


@server("SMSG-23")
@pytest.mark.parametrize("line", [b"{", b"\xff", b'{"a": "' + b" " * MESSAGE_BYTES + b'"}', b"[" * 70_000])
async def test_a_line_that_is_not_read_gets_an_error(line: bytes) -> None:
    async with serving() as (wire, _):
        wire.send(line + b"\n")
        answer = await wire.next()
        assert (answer["id"], answer["error"]["code"]) == (None, -32700)
        await wire.open()


async def test_a_client_that_does_not_read_is_ended(monkeypatch: pytest.MonkeyPatch, until: Until) -> None:
    monkeypatch.setattr(stream_pump, "UNREAD_BYTES", 100_000)
    async with serving() as (wire, task):
        await wire.open()
        socket_of(wire).pause_reading()
        for key in range(1, 40):
            wire.ask(key, "tools/call", name="t")
        await until(lambda: len(wire.rig.begun) == 39)
        for request in wire.rig.begun:
            request.finish({"content": [{"type": "text", "text": "x" * 50_000}]})
        assert (await ended(task)).startswith("the client does not read: ")
        assert wire.rig.told == ["closed"]


async def test_a_cancelled_pump_closes_the_session() -> None:
    async with serving() as (wire, task):
        await wire.open()
        task.cancel()
        await asyncio.wait([task])
        assert (task.cancelled(), wire.rig.told) == (True, ["closed"])


async def test_content_can_disconnect_the_client() -> None:
    async with serving() as (wire, task):
        await wire.open()
        wire.ask(1, "tools/call", name="t")
        wire.ask(2, "ping")
        await wire.next()
        wire.rig.session.disconnect()
        assert await ended(task) == stream_pump.DISCONNECTED
        assert (wire.rig.begun[0].over, wire.rig.told) == (True, ["closed"])
        assert await wire.reader.read() == b""


@server("SSTDIO-02")
@pytest.mark.parametrize("kind", ["pipe", "file"])
async def test_own_streams_leave_nothing_else_to_stdout(kind: str, tmp_path: Any) -> None:
    if kind == "pipe":
        source, feed = os.pipe()
        os.write(feed, b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        os.close(feed)
    else:
        (tmp_path / "in").write_bytes(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        source = os.open(tmp_path / "in", os.O_RDONLY)
    target = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    wire = SessionRig(V2025_06_18)
    try:
        async with own_streams(source, target) as streams:
            os.write(target, b"a stray print\n")
            assert os.read(source, 9) == b""
            assert (
                await ended(asyncio.create_task(serve_stream(*streams, lambda write: ServerSession(wire, write)))) == ""
            )
    finally:
        os.close(source)
        os.close(target)
    assert (tmp_path / "out").read_bytes() == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
