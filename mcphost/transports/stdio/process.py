"""A child process: its output as lines, its exit, and the termination of all that it started.

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

from mcphost.posix import KILL, signal_group
from mcphost.protocol.wire.framing import LineFramer, Overlong
from mcphost.time_slices import SlicedQueue
from mcphost.transports.base import Inbound, TransportLimits
from mcphost.transports.pipe import Pipe
from mcphost.transports.stdio.descendants import ProcessId, descendants, identify, identify_outside, marked

STDERR_LINE: Final = 8 << 10
"""Bytes kept of one stderr line."""

STDERR_TAIL: Final = 50
"""Stderr lines kept for the report of a server that died."""

EXIT_DRAIN: Final = 0.15
"""Seconds to wait for unread output after exit: longer than any pipe takes, too short to notice."""

EXIT_DRAINS: Final = 10
"""Repetitions of that wait while output still arrives."""


class ServerProcess(asyncio.SubprocessProtocol):
    """Turns the output of the process into lines, and its exit into events. Lines wait until `dispatch_to`."""

    def __init__(self, pipe: Pipe, limits: TransportLimits) -> None:
        self._pipe = pipe
        self._inbound: Inbound | None = None
        self._stdout = LineFramer(limits.message_bytes)
        self._stderr = LineFramer(STDERR_LINE)
        self._turns = SlicedQueue(self._take), SlicedQueue(self._note)
        for turns in self._turns:
            turns.hold()
        self._cut_off: bytes | Overlong | None = None
        self._open_outputs, self._received = 2, False
        self.tail: deque[str] = deque(maxlen=STDERR_TAIL)
        self.first_closed = ""
        self.stalled = ""
        self.gone, self.exited, self.drained, self.writable = (asyncio.Event() for _ in range(4))
        self.writable.set()

    def read_from(self, process: asyncio.SubprocessTransport) -> None:
        """Connect the output pipes, so that reading can be paused while lines wait."""
        for fd, turns in enumerate(self._turns, 1):
            turns.read_from(cast("asyncio.ReadTransport | None", process.get_pipe_transport(fd)))

    def dispatch_to(self, inbound: Inbound) -> None:
        """Dispatch the lines read so far, and all later ones."""
        self._inbound = inbound
        for turns in self._turns:
            turns.release()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        framer = self._stdout if fd == 1 else self._stderr
        self._received = True
        self._turns[fd - 1].add(framer.feed(data))

    async def drain(self) -> None:
        """Wait until the remaining output was read and dispatched."""
        for _ in range(EXIT_DRAINS):
            # First the lines that wait: while they do, the pipes are not read, and nothing more would arrive.
            await self._dispatched()
            self._received = False
            if await set_within(self.drained, EXIT_DRAIN) or not self._received:
                break
        await self._dispatched()  # the end of a pipe may have added a line that was cut off

    async def _dispatched(self) -> None:
        for turns in self._turns:
            await turns.idle.wait()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        # A server without stdin or stdout is gone; many programs close stderr and go on.
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
        self.exited.set()
        self.gone.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def _take(self, line: bytes | Overlong) -> Iterator[None] | None:
        return self._pipe.received(line, cut_off=line is self._cut_off)

    def _note(self, line: bytes | Overlong) -> None:
        raw = line.start + b" ..." if isinstance(line, Overlong) else line
        text = raw.decode("utf-8", "replace")
        self.tail.append(text)
        if self._pipe.observer is not None:
            self._pipe.observer.noted("stderr", text)
        assert self._inbound is not None
        self._inbound.stderr(text)


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait at most ``seconds`` for ``event``; return whether it was set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


SWEEP: Final = 0.5
"""Seconds between SIGTERM and SIGKILL for processes that a server left behind."""

CHECK_SECONDS: Final = 0.02
"""Seconds between two checks of whether they have ended."""

SWEEPS: Final = 3
"""Searches for processes that were started meanwhile."""


class ServerProcesses:
    """The processes of one server: its process group, and descendants that left it."""

    def __init__(self, group: int, mark: str) -> None:
        self.group = group
        self._first = identify(group)
        self._mark = mark
        self._apart: set[ProcessId] = set()

    def find_descendants(self, *, everywhere: bool = True) -> None:
        """Find descendants that left the group; with ``everywhere``, also orphans, by the server's mark.

        The latter reads a file per process: do not call it on the event loop.
        """
        found = set(marked(self._mark)) if everywhere else set()
        children = descendants(self.group)
        if self._first is not None and identify(self.group) == self._first:
            found |= children  # the number is not reused yet
        self._apart |= {process for pid in found if (process := identify_outside(self.group, pid))}

    def signal(self, which: int) -> bool:
        """Signal all known processes (0: only check); return False if none is left."""
        left = signal_group(self.group, which)
        for process in tuple(self._apart):
            if identify(process.pid) != process:  # it ended, and its number may be reused
                self._apart.discard(process)
                continue
            with suppress(ProcessLookupError, PermissionError):  # PermissionError: it changed its user
                os.kill(process.pid, which)
                left = True
        return left

    async def sweep(self) -> None:
        """Terminate whatever the server left running."""
        for _ in range(SWEEPS):
            # In a thread, since it reads a file per process; again each time, since a dying process may start others.
            await asyncio.to_thread(self.find_descendants)
            if not self.signal(signal.SIGTERM):
                return
            for _ in range(int(SWEEP / CHECK_SECONDS)):
                await asyncio.sleep(CHECK_SECONDS)  # the system reports no end of processes that are not our children
                if not self.signal(0):
                    break
            else:
                self.signal(KILL)


live_groups: dict[int, ServerProcesses] = {}
"""Running servers by process group, for the exit handler."""


@atexit.register
def _end_groups() -> None:
    for processes in tuple(live_groups.values()):
        processes.find_descendants()
        processes.signal(KILL)
