"""A child process as the event loop tells of it: lines of its outputs, its last words, its end.

Knows pipes and their order. Refuses to know how a process is started and stopped.

Specification: basic/transports, stdio.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, cast

from mcphost.protocol.wire.framing import LineFramer, Overlong
from mcphost.transports.base import Inbound, TransportLimits
from mcphost.transports.pipe import Pipe
from mcphost.transports.stdio.descendants import ProcessId, descendants, identify, identify_outside, marked
from mcphost.transports.time_slices import TimeSlices

STDERR_LINE: Final = 8 << 10
"""Bytes of one stderr line that are kept; a line is for reading."""

STDERR_TAIL: Final = 50
"""Lines kept for the card of a server that died."""

EXIT_DRAIN: Final = 0.15
"""Seconds in which a dead server's last words may still be read. Longer than any pipe takes, too short to notice."""

EXIT_DRAINS: Final = 10
"""How often that time is given as long as more was read in it."""


class ServerProcess(asyncio.SubprocessProtocol):
    """What the event loop says of the process, turned into lines and a few events."""

    def __init__(self, pipe: Pipe, inbound: Inbound, limits: TransportLimits) -> None:
        self._pipe = pipe
        self._inbound = inbound
        self._stdout = LineFramer(limits.message_bytes)
        self._stderr = LineFramer(STDERR_LINE)
        self._turns = TimeSlices(self._take), TimeSlices(self._note)
        self._cut_off: bytes | Overlong | None = None
        self._open_outputs, self._heard = 2, False
        self.tail: deque[str] = deque(maxlen=STDERR_TAIL)
        self.first_closed = ""
        self.stalled = ""
        self.gone, self.exited, self.drained, self.writable = (asyncio.Event() for _ in range(4))
        self.writable.set()

    def read_from(self, process: asyncio.SubprocessTransport) -> None:
        """Which pipes the lines come from, so that one can be left unread for a while."""
        for fd, turns in enumerate(self._turns, 1):
            turns.read_from(cast("asyncio.ReadTransport | None", process.get_pipe_transport(fd)))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Lines go on in turns."""
        framer = self._stdout if fd == 1 else self._stderr
        self._heard = True
        self._turns[fd - 1].add(framer.feed(data))

    async def last_words(self) -> None:
        """Wait until what is left in the pipes was read and handed on, or nothing more comes."""
        for _ in range(EXIT_DRAINS):
            for turns in self._turns:
                await turns.idle.wait()
            self._heard = False
            if await set_within(self.drained, EXIT_DRAIN) or not self._heard:
                break

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Without stdin or stdout the server is gone."""
        if fd in (1, 2):
            self._end_output(fd)
        if fd == 2:
            return
        self.first_closed = self.first_closed or ("stdin", "stdout")[fd]
        self.writable.set()
        self.gone.set()

    def _end_output(self, fd: int) -> None:
        if fd == 1 and self._stdout.pending:
            (self._cut_off,) = self._stdout.feed(b"\n")
            self._turns[0].add([self._cut_off])
        if fd == 2 and self._stderr.pending:
            self.pipe_data_received(fd, b"\n")
        self._open_outputs -= 1
        if not self._open_outputs:
            self.drained.set()

    def process_exited(self) -> None:
        """Its outputs may still hold something."""
        self.exited.set()
        self.gone.set()

    def pause_writing(self) -> None:
        """Its stdin is full."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """Its stdin takes more."""
        self.writable.set()

    def _take(self, line: bytes | Overlong) -> Iterator[None] | None:
        return self._pipe.received(line, cut_off=line is self._cut_off)

    def _note(self, line: bytes | Overlong) -> None:
        raw = line.start + b" ..." if isinstance(line, Overlong) else line
        text = raw.decode("utf-8", "replace")
        self.tail.append(text)
        if self._pipe.tap is not None:
            self._pipe.tap.noted("stderr", text)
        self._inbound.stderr(text)


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for ``event``, so long; was it set?"""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


SWEEP: Final = 0.5
"""Seconds that processes a server left behind get between SIGTERM and SIGKILL."""

SWEEPS: Final = 3
"""How often what was started meanwhile is looked for."""


class ServerProcesses:
    """The processes of one server: its process group, and those that left it."""

    def __init__(self, group: int, mark: str) -> None:
        self.group = group
        self._first = identify(group)
        self._mark = mark
        self._apart: set[ProcessId] = set()

    def look(self, *, everywhere: bool = True) -> None:
        """Find those that left the group: the server's descendants, and ``everywhere`` what inherited its mark.

        Only the second takes a moment, and finds those whose parent has ended. Not for the event loop.
        """
        found = set(marked(self._mark)) if everywhere else set()
        children = descendants(self.group)
        if self._first is not None and identify(self.group) == self._first:
            found |= children  # and not those of another process that has its number by now
        self._apart |= {process for pid in found if (process := identify_outside(self.group, pid))}

    def signal(self, which: int) -> bool:
        """Send a signal to all of them that are known (0: none, a look); False when none is left."""
        left = signal_group(self.group, which)
        for process in tuple(self._apart):
            if identify(process.pid) != process:  # it ended, and its number may be anybody's
                self._apart.discard(process)
                continue
            with suppress(ProcessLookupError, PermissionError):  # the second: it changed its user
                os.kill(process.pid, which)
                left = True
        return left

    async def sweep(self) -> None:
        """End what the server left running: its first process alone is not the server."""
        for _ in range(SWEEPS):
            await asyncio.to_thread(self.look)
            if not self.signal(signal.SIGTERM):
                return
            for _ in range(int(SWEEP / 0.02)):
                await asyncio.sleep(0.02)
                if not self.signal(0):
                    break
            else:
                self.signal(signal.SIGKILL)


live_groups: dict[int, ServerProcesses] = {}
"""The servers that were started and not yet swept, by their process groups."""


@atexit.register
def _end_groups() -> None:
    for processes in tuple(live_groups.values()):
        processes.look()
        processes.signal(signal.SIGKILL)


def signal_group(group: int, which: int) -> bool:
    """Send a signal to a process group (0: none, a look); False when nothing of it is left."""
    try:
        os.killpg(group, which)
    except ProcessLookupError:
        return False
    except PermissionError:  # only zombies, or a process that changed its user: out of our reach either way
        return False
    return True
