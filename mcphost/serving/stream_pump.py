"""Serves one session over a pair of byte streams: a socket's, or those that the process was started with.

Specification: basic/transports, stdio.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from mcphost.protocol.display import size_text
from mcphost.protocol.limits import JSON_DEPTH, MESSAGE_BYTES, MESSAGE_ITEMS
from mcphost.protocol.wire.framing import LineFramer, Overlong
from mcphost.protocol.wire.jsonrpc import encode_value
from mcphost.protocol.wire.strict_json import IN_STEPS, Refused, parse_in_steps
from mcphost.serving.served_request import RequestKey
from mcphost.serving.session import ServerSession, Write
from mcphost.time_slices import TimeSlice, in_turns
from mcphost.transports.base import MessageObserver

CHUNK: Final = 1 << 16

UNREAD_BYTES: Final = 2 * MESSAGE_BYTES
"""Bytes that may wait for a client that does not read: two of the largest messages. It is ended then."""

FLUSH_SECONDS: Final = 1.0
"""For the client to read what was written when its session ends."""

DISCONNECTED: Final = "the user disconnected the agent"

OpenSession = Callable[[Write], ServerSession]


async def serve_stream(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    open_session: OpenSession,
    observer: MessageObserver | None = None,
) -> str:
    """Serve the client of one connection until it ends; the reason as words, empty if the client ended it.

    Cancelling the call ends the session, too. The writer is closed.
    """
    line_writer = _LineWriter(writer, observer)
    session = open_session(line_writer.write)
    session.on_disconnect = line_writer.end
    try:
        try:
            await _read(reader, session, observer)
        except OSError as error:
            line_writer.fault = line_writer.fault or f"the connection broke off: {error.strerror or error}"
        return line_writer.fault
    finally:
        session.close()
        writer.close()


async def _read(reader: asyncio.StreamReader, session: ServerSession, observer: MessageObserver | None) -> None:
    framer, time_slice = LineFramer(MESSAGE_BYTES), TimeSlice()
    while chunk := await reader.read(CHUNK):
        for line in framer.feed(chunk):
            await _take(line, session, observer)
            await time_slice.pause_if_over()
    if framer.pending and observer is not None:
        observer.noted("malformed", f"{size_text(framer.pending)} without the end of their line")


async def _take(line: bytes | Overlong, session: ServerSession, observer: MessageObserver | None) -> None:
    if isinstance(line, Overlong):
        words = f"over the limit of {size_text(MESSAGE_BYTES)}"
        if observer is not None:
            observer.noted("malformed", f"a message {words}: {line.start.decode('utf-8', 'replace')}…")
        session.refuse_unread(words)
        return
    if not line or line.isspace():
        return
    if observer is not None:
        observer.received(line)
    if len(line) < IN_STEPS:
        session.receive(line)
        return
    try:
        value = await in_turns(parse_in_steps(line, MESSAGE_ITEMS, JSON_DEPTH))
    except Refused as refused:
        session.refuse_unread(str(refused))
    else:
        session.take(value)


class _LineWriter:
    """Writes messages without waiting."""

    def __init__(self, writer: asyncio.StreamWriter, observer: MessageObserver | None) -> None:
        self._writer, self._observer = writer, observer
        self.fault = ""
        """The reason, once the client is not written to any more."""

    def write(self, message: Any, about: RequestKey | None) -> None:
        if self.fault or self._writer.is_closing():
            return
        line = encode_value(message)
        self._writer.write(line + b"\n")
        if self._observer is not None:
            self._observer.sent(line)
        waiting = self._writer.transport.get_write_buffer_size()
        if waiting > UNREAD_BYTES:
            self.fault = f"the client does not read: {size_text(waiting)} wait for it"
            self._writer.transport.abort()

    def end(self) -> None:
        """End the connection once the client has read what was written, or soon."""
        self.fault = self.fault or DISCONNECTED
        self._writer.close()
        asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._writer.transport.abort)


@asynccontextmanager
async def own_streams(
    source: int = 0, target: int = 1
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """The process's own input and output as streams, of whatever kind they are.

    From now on its descriptors lead to the null device and to stderr: nothing but messages may come out, and no child
    may read what the client sends.
    """
    ours, theirs = socket.socketpair()
    incoming, outgoing = _moved(source, os.open(os.devnull, os.O_RDONLY)), _moved(target, os.dup(2))
    # Threads, since a file cannot be waited for, and since a pipe set not to block is so for all who share it.
    reading = threading.Thread(target=_copy_in, args=(incoming, theirs.dup()), name="stdin", daemon=True)
    writing = threading.Thread(target=_copy_out, args=(theirs, outgoing), name="stdout", daemon=True)
    reader, writer = await asyncio.open_connection(sock=ours)
    reading.start()
    writing.start()
    try:
        yield reader, writer
    finally:
        writer.close()
        await asyncio.to_thread(writing.join, FLUSH_SECONDS)


def _moved(descriptor: int, instead: int) -> int:
    """A copy of the descriptor, which leads elsewhere from now on."""
    copy = os.dup(descriptor)
    os.dup2(instead, descriptor)
    os.close(instead)
    return copy


def _copy_in(source: int, target: socket.socket) -> None:
    with target, suppress(OSError):
        try:
            while chunk := os.read(source, CHUNK):
                target.sendall(chunk)
        finally:
            os.close(source)
            target.shutdown(socket.SHUT_WR)


def _copy_out(source: socket.socket, target: int) -> None:
    with source, suppress(OSError):
        try:
            while chunk := source.recv(CHUNK):
                view = memoryview(chunk)
                while view:
                    view = view[os.write(target, view) :]
        finally:
            os.close(target)
            source.shutdown(socket.SHUT_RDWR)  # the session ends when its output is closed
