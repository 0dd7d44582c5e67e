"""A server at an address as a gate starts it: in a thread, with the streams of a program."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from mcphost.errors import ConnectionLost
from mcphost.protocol.display import show_line
from mcphost.serving.remote import LINE_BYTES, RemoteServer
from mcphost.transports.base import TransportLimits
from mcphost.transports.http.detection import DetectedTransport

UNREAD_BYTES: Final = 64 << 20
"""Bytes of messages that may wait for the agent: four of the longest."""

FLUSH_SECONDS: Final = 2.0
"""At the end, for what the agent has not read."""

NOTE_CHARACTERS: Final = 2000
"""Characters of a sentence for the agent's log, which may quote the server."""

LOST: Final = 3
"""Exit code where the session was lost, as that of other commands."""


class AddressProgram:
    """Speaks to the server at ``url`` from `start` on, with these headers, until `stop` or the end of its input.

    ``advice`` says what to do where the server wants a sign-in; ``mask`` removes secrets from the words of a failure.
    """

    def __init__(
        self, url: str, headers: Mapping[str, str], advice: Callable[[], str], mask: Callable[[str], str]
    ) -> None:
        self._url, self._headers, self._advice, self._mask = url, headers, advice, mask
        self._thread = threading.Thread(target=self._run, name="address", daemon=True)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[int] | None = None
        self._stopped = False
        self._code = 0

    def start(self, streams: Sequence[int]) -> None:
        """Begin, with descriptors to read messages from, and to write messages and notes to.

        They are closed at the end.
        """
        self._streams = streams
        self._thread.start()

    def stop(self) -> None:
        """End soon; thread-safe."""
        with self._lock:
            self._stopped = True
            if self._loop is not None and self._task is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._task.cancel)

    def wait(self) -> int:
        """Wait for the end, and return an exit code."""
        self._thread.join()
        return self._code

    def _run(self) -> None:
        try:
            with suppress(asyncio.CancelledError):
                self._code = asyncio.run(self._serve())
        finally:
            for each in self._streams:
                with suppress(OSError):
                    os.close(each)

    async def _serve(self) -> int:
        loop, (reads, writes, notes) = asyncio.get_running_loop(), self._streams
        with self._lock:
            if self._stopped:
                return 0
            self._loop, self._task = loop, asyncio.current_task()
        if sys.platform != "win32":
            os.set_blocking(notes, False)
        lines = asyncio.StreamReader(limit=LINE_BYTES)
        # The transports own these descriptors, and are closed at the end: without it, they last until collected.
        source, target = (os.fdopen(os.dup(each), mode, 0) for each, mode in ((reads, "rb"), (writes, "wb")))
        incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), source)
        pipe, ending = await loop.connect_write_pipe(_Ending, target)

        def write(line: bytes) -> None:
            if pipe.get_write_buffer_size() > UNREAD_BYTES:
                server.closed(ConnectionLost("the agent does not read what the server says"))
            else:
                pipe.write(line)

        def note(text: str) -> None:
            with suppress(OSError):
                os.write(notes, f"mcphost gate: {show_line(text, NOTE_CHARACTERS)}\n".encode("utf-8", "replace"))

        server = RemoteServer(self._transport, write, note, advice=self._advice, mask=self._mask)
        try:
            await server.run(lines)
        finally:
            incoming.close()
            pipe.close()
            _, unwritten = await asyncio.wait((ending.ended,), timeout=FLUSH_SECONDS)
            if unwritten:
                pipe.abort()
        return 0 if server.lost is None else LOST

    def _transport(self) -> DetectedTransport:
        from mcphost.transports.http.sse_2024 import SseTransport  # late: the HTTP library takes long to import
        from mcphost.transports.http.streamable import HttpTransport

        url, headers, limits = self._url, self._headers, TransportLimits()
        return DetectedTransport(
            lambda: HttpTransport(url, limits, headers=headers), lambda: SseTransport(url, limits, headers=headers)
        )


class _Ending(asyncio.BaseProtocol):
    """Tells when all was written, or the reader is gone."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)
