"""Starts a server as a child process and exchanges messages as lines on its stdin and stdout.

The child gets its own session and process group, so that it has no controlling terminal and can be stopped with all it
started; an environment of a few harmless variables, those the configuration names, and the mark of its descendants; and
no other file descriptor.

Specification: basic/transports, stdio; basic/lifecycle, shutdown.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final, cast

from mcphost.errors import ConnectionClosed, ConnectionLost, SpawnFailed, TransportError
from mcphost.lazy_dataclass import dataclass
from mcphost.places import DEPTH_VARIABLE
from mcphost.posix import KILL, signal_group
from mcphost.transports.base import Inbound, MessageObserver, ProcessReport, TransportLimits
from mcphost.transports.pipe import Pipe
from mcphost.transports.stdio.descendants import MARK_VARIABLE, PROC, new_mark
from mcphost.transports.stdio.process import ServerProcess, ServerProcesses, live_groups, set_within
from mcphost.transports.stdio.start_failures import not_found, not_started, unexpanded

INHERITED: Final = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""Variables that programs need to run, none of them secret. ``LC_*`` is inherited too."""

EXIT_NOTICE: Final = 0.5
"""Seconds to wait for the exit code after a pipe has closed."""


@dataclass(frozen=True, slots=True)
class Command:
    """The program to run. ``env`` is added to the inherited variables."""

    program: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None


def child_environment(command: Command, environ: Mapping[str, str], mark: str) -> dict[str, str]:
    """The child's environment: inherited variables, those of ``command``, and ``mark`` if /proc exists."""
    inherited = {k: v for k, v in environ.items() if k in (*INHERITED, DEPTH_VARIABLE) or k.startswith("LC_")}
    return {**inherited, **command.env, **({MARK_VARIABLE: mark} if (PROC / "self/environ").exists() else {})}


def find_program(command: Command, path: str) -> str:
    """The absolute path of the program, looked up once. Raises SpawnFailed.

    Ignores empty and relative entries of ``path``, which would let a working directory replace a program.
    """
    if command.cwd is not None and not command.cwd.is_dir():
        raise SpawnFailed(f"the folder {command.cwd} does not exist; correct cwd")
    if os.sep in command.program:
        found = shutil.which(os.path.join(command.cwd or os.curdir, os.path.expanduser(command.program)))
    else:
        absolute = os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.isabs(entry))
        found = shutil.which(command.program, path=absolute)
    if found is None:
        raise SpawnFailed(not_found(command.program, path))
    return os.path.abspath(found)


class StdioTransport(Pipe):
    """A `Transport` over a child's standard streams."""

    def __init__(
        self,
        command: Command,
        limits: TransportLimits,
        environ: Mapping[str, str],
        *,
        observer: MessageObserver | None = None,
    ) -> None:
        super().__init__(limits, observer)
        words = [_in_locale(word) for word in (command.program, *command.args)]
        cwd = command.cwd and Path(_in_locale(str(command.cwd)))
        self._command = Command(words[0], words[1:], command.env, cwd)
        self._environ = environ
        self._argv: tuple[str, ...] = ()
        self._child: ServerProcess | None = None
        self._process: asyncio.SubprocessTransport | None = None
        self._end_observer: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._gathered: list[bytes] | None = None
        self.started: Callable[[int, str], None] = _ignore
        """Called in a thread with the process id and mark once the program runs."""
        self.ended: Callable[[int], None] = _ignore
        """Called with the process id once nothing is left of what it started."""

    async def start(self) -> None:
        """Start the program; its output waits for `open`. Raises SpawnFailed with the system's reason."""
        mark = new_mark()
        env = child_environment(self._command, self._environ, mark)
        self._argv = (find_program(self._command, env.get("PATH", os.defpath)), *self._command.args)
        child = self._child = ServerProcess(self, self.limits)
        try:
            process, _ = await self.loop.subprocess_exec(
                lambda: child, *self._argv, env=env, cwd=self._command.cwd, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise SpawnFailed(not_started(self._argv[0], error)) from None
        self._process = process
        child.read_from(process)
        pid = process.get_pid()
        live_groups[pid] = ServerProcesses(pid, mark)
        await asyncio.to_thread(self.started, pid, mark)

    async def open(self, inbound: Inbound) -> None:
        """Start the program unless `start` did, and dispatch its output. Raises as `start`."""
        if self._process is None:
            await self.start()
        assert self._child is not None
        self._inbound = inbound
        self._child.dispatch_to(inbound)
        self._end_observer = asyncio.create_task(self._report_end(self._child, inbound), name="watch server process")

    async def write(self, line: bytes) -> None:
        """Write one line; waits while the pipe is full. Raises ConnectionLost."""
        if self._process is None or self._child is None:
            raise ConnectionLost("the server was not started")
        stdin = cast("asyncio.WriteTransport | None", self._process.get_pipe_transport(0))
        if stdin is None or stdin.is_closing():
            raise await self._end()
        if self.observer is not None:
            self.observer.sent(line)
        self._put(stdin, line + b"\n")
        if not self._child.writable.is_set():
            await self._wait_writable(self._child)

    def _put(self, stdin: asyncio.WriteTransport, line: bytes) -> None:
        """Write at once, and join what else is written in this turn of the loop: each write is a system call."""
        if self._gathered is None:
            self._gathered = []
            stdin.write(line)
            self.loop.call_soon(self._put_gathered, stdin)
        else:
            self._gathered.append(line)

    def _put_gathered(self, stdin: asyncio.WriteTransport) -> None:
        lines, self._gathered = self._gathered, None
        if lines and not stdin.is_closing():
            stdin.write(b"".join(lines))

    async def aclose(self) -> None:
        """Close stdin, wait, SIGTERM, wait, SIGKILL: the whole group, then what left the group."""
        if self._process is None:
            return
        if self._closing is None:
            self._closing = asyncio.create_task(self._stop(self._process), name="stop server process")
        await asyncio.shield(self._closing)

    def report(self) -> ProcessReport:
        """The process id, the exact command and, after its end, the exit code and last stderr lines."""
        tail = tuple(self._child.tail) if self._child else ()
        if self._process is None:
            return ProcessReport(command=self._argv, stderr_tail=tail)
        return ProcessReport(self._process.get_pid(), self._argv, self._process.get_returncode(), tail)

    async def _wait_writable(self, child: ServerProcess) -> None:
        try:
            async with asyncio.timeout(self.limits.write_seconds):
                await child.writable.wait()
        except TimeoutError:
            reason = f"the server took nothing from its stdin for {self.limits.write_seconds:g} s"
            child.stalled = reason
            child.gone.set()
            child.writable.set()  # other writers learn it from `Pipe.fail`
            raise ConnectionLost(reason, stderr_tail=child.tail) from None

    async def _report_end(self, child: ServerProcess, inbound: Inbound) -> None:
        await child.gone.wait()
        if not child.stalled:
            await set_within(child.exited, EXIT_NOTICE)
            await child.drain()
        reason = self._why_gone(child)
        self.fail(reason)
        inbound.closed(reason)

    async def _end(self) -> TransportError:
        """Wait until it is known why the connection ended, and return that."""
        if self._end_observer is not None:
            await asyncio.wait([self._end_observer])  # the exit code and the last output arrive a moment later
        return self._lost or ConnectionLost("the server closed its stdin")

    def _why_gone(self, child: ServerProcess) -> ConnectionLost:
        assert self._process is not None
        code = self._process.get_returncode()
        if child.stalled:
            message = child.stalled
        elif code is None:
            message = f"the server closed its {child.first_closed} but its process still runs"
        else:
            hint = unexpanded(self._command.args, child.tail)
            message = f"the server {exit_text(code)}{f'; {hint}' if hint else ''}"
        return ConnectionLost(message, exit_code=code, stderr_tail=child.tail)

    async def _stop(self, process: asyncio.SubprocessTransport) -> None:
        assert self._child is not None
        if self._end_observer is not None:
            self._end_observer.cancel()
        self.fail(ConnectionClosed())  # before the process is ended, whose exit code is not the reason
        group = process.get_pid()
        processes = live_groups[group]
        # Before anything is ended: afterwards its children have another parent.
        await asyncio.to_thread(processes.find_descendants, everywhere=False)
        stdin = process.get_pipe_transport(0)
        if stdin is not None:
            # What was gathered in this turn is still sent. A full pipe is aborted: closing would wait to empty it.
            self._put_gathered(cast("asyncio.WriteTransport", stdin))
            stalled = self._child.stalled or not self._child.writable.is_set()
            cast("asyncio.WriteTransport", stdin).abort() if stalled else stdin.close()
        for ending in (signal.SIGTERM, KILL):
            if await set_within(self._child.exited, self.limits.exit_grace):
                break
            signal_group(group, ending)
        await set_within(self._child.exited, self.limits.exit_grace)
        await processes.sweep()
        del live_groups[group]
        await asyncio.to_thread(self.ended, group)
        process.close()


def _in_locale(word: str) -> str:
    """A word as this locale spells it for the system: where Python takes the locale for ASCII, with surrogates."""
    return word if sys.platform == "win32" else os.fsdecode(word.encode("utf-8", "surrogateescape"))


def _ignore(pid: int, mark: str = "") -> None:
    """Ignore the event."""


def exit_text(code: int) -> str:
    """A clause on the end of a process, from its exit code (negative: the signal that ended it)."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
