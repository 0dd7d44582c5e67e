"""Runs a server's program between an agent and the program's streams, and copies the bytes to an observer.

It loads the standard library alone, and little of that before the program runs. Threads pump the bytes, so that one
direction never waits for the other, and none of them ever waits for the observer.
"""

from __future__ import annotations

import errno
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, BinaryIO, Final

PIECE: Final = 64 << 10
"""Bytes read at once: the capacity of a pipe."""

FLOOD: Final = 1 << 20
"""Bytes moved at once where none are copied, and the capacity that a pipe then gets, where the system can."""

LINE: Final = 64 << 20
"""Bytes of the longest line that a filter receives whole."""

ROOM: Final = 1 << 20
"""Bytes that may wait for a reader before the pump that feeds it pauses."""

BACKLOG: Final = 8 << 20
"""Bytes of copies that may wait for the observer."""

RECORDED_BACKLOG: Final = 64 << 20
"""The same where a person asked for a record, which should miss nothing."""

COPY: Final = 1 << 20
"""Bytes of the longest line that a screen receives whole; of a longer one it receives the start."""

LINGER: Final = 0.02
"""Seconds for which the observer gathers copies, so that it does not compete with the pumps for each message."""

SHARE: Final = 10
"""The observer works for one part in this many of the time, so that the pumps keep the interpreter in a flood."""

RETRY: Final = 5.0
"""Seconds between two searches for a screen, while something passes."""

WELCOME: Final = 2.0
"""Seconds that a screen gets to answer."""

DRAIN: Final = 2.0
"""Seconds that the observer gets at the end."""

RECORDED_DRAIN: Final = 10.0
"""The same where a person asked for a record."""

GRACE: Final = 30.0
"""Seconds for which a program may be silent after its input ended, before it is terminated."""

TERMINATE: Final = 3.0
"""Seconds from SIGTERM to SIGKILL."""

REST: Final = 0.2
"""Seconds of silence after which the output of a program that ended is complete, if others hold it open."""

SWITCH: Final = 0.0005
"""Seconds for which a pump waits for a thread that holds the interpreter; Python's default is ten times as long."""

FORWARDED: Final = tuple(
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT", "SIGTSTP")
    if name in signal.Signals.__members__
)
"""Signals that the program's process group receives. Some are missing on Windows."""


class StartFailure(Exception):
    """The program could not be started; ``code`` is the exit code that a shell gives then."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.code = code


class LineCutter:
    """Cuts a stream into lines of at most ``longest`` bytes; longer ones come in pieces."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0
        self._whole = True

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """The lines that end in ``data``, and whether each is whole."""
        start = 0
        while (end := data.find(b"\n", start) + 1) or self._size + len(data) - start >= self._longest:
            end = min(end or len(data), start + max(self._longest - self._size, 1))
            yield self._line(data[start:end])
            start = end
        if start < len(data):
            self._parts.append(data[start:])
            self._size += len(data) - start

    def rest(self) -> Iterator[tuple[bytes, bool]]:
        """The end of the stream, if it does not end with a newline."""
        if self._parts:
            yield self._line(b"")

    def _line(self, end: bytes) -> tuple[bytes, bool]:
        line = b"".join((*self._parts, end)) if self._parts else end
        complete = line.endswith(b"\n") or not end
        whole, self._whole = self._whole and complete, complete
        self._parts, self._size = [], 0
        return line, whole


class Outlet:
    """The bytes for one reader, in order. A thread of its own writes those that the reader has no room for."""

    def __init__(self, target: int, close: Callable[[int], None]) -> None:
        import threading  # late: the program starts before

        self._target, self._close = target, close
        self._changed = threading.Condition()
        self._queue: list[tuple[bytes, bool]] = []
        self._waiting = [0, 0]
        """Bytes of the pump that feeds it, and bytes of others."""
        self._ended = False
        self._feeder = 0
        self._has_room: Callable[[bytes], bool] = lambda data: False
        self.broken = False
        """True if the reader is gone; what is put then is lost."""
        self._writer = threading.Thread(target=self._write, name=f"outlet {target}", daemon=True)

    def put(self, data: bytes) -> None:
        """Write bytes, or queue them; thread-safe, and never waits.

        The pump that feeds this outlet pauses while `ROOM` bytes wait; the other pump pauses while as many wait that
        were put by other threads.
        """
        from threading import get_ident  # late: the program starts before

        with self._changed:
            if self.broken:
                return
            # To wake the thread takes longer than all that a gate does with a message.
            if not (self._ended or any(self._waiting)) and self._has_room(data) and write_all(self._target, data):
                return
            foreign = get_ident() != self._feeder
            self._queue.append((data, foreign))
            self._waiting[foreign] += len(data)
            self._changed.notify_all()

    def open(self) -> None:
        self._has_room = _room_in(self._target)
        self._writer.start()

    def feed(self) -> None:
        """Make the current thread the pump that feeds this outlet."""
        from threading import get_ident  # late: the program starts before

        self._feeder = get_ident()

    def wait(self, *, foreign: bool = False) -> None:
        """Wait for room."""
        with self._changed:
            self._changed.wait_for(lambda: self.broken or self._waiting[foreign] < ROOM)

    def close(self) -> None:
        """Close the stream once all is written."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def join(self) -> None:
        """Wait until the stream is closed."""
        self._writer.join()

    def _write(self) -> None:
        while not self.broken and (batch := self._next()):
            written = write_all(self._target, b"".join(data for data, _ in batch))
            with self._changed:
                self.broken = not written
                for data, foreign in batch:
                    self._waiting[foreign] -= len(data)
                self._changed.notify_all()
        self._close(self._target)

    def _next(self) -> list[tuple[bytes, bool]]:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._ended)
            batch, self._queue = self._queue, []
            return batch


class LineFilter:
    """Decides what a shim passes on; this one passes on all.

    Each method runs in the pump of its direction, one call at a time. What it puts into an outlet is written in that
    order. A line has its newline, except for the rest before the end of a stream. ``whole`` is False for each piece of
    a line longer than `LINE`; the last piece has the newline.
    """

    def __init__(self, shim: Shim) -> None:
        self.shim = shim

    def from_agent(self, line: bytes, whole: bool) -> None:
        self.shim.to_server.put(line)

    def from_server(self, line: bytes, whole: bool) -> None:
        self.shim.to_agent.put(line)

    def agent_closed(self) -> None:
        """The agent's stream ended; the server's input is closed once all that waits for it is written."""

    def server_closed(self) -> None:
        """The server's stream ended; the agent's is closed once all that waits for it is written."""


class Shim:
    """One run of a server's program: `start` it, then `run` the pumps until it ends."""

    to_server: Outlet
    """The program's input, for a filter; from `start` on."""
    to_agent: Outlet

    def __init__(self, command: Sequence[str]) -> None:
        self.command = list(command)
        self.child = 0
        """The process id of the program, and the number of its process group; 0 before `start`."""
        self.observer: Observer | None = None
        """Takes ``agent``, ``server`` or ``stderr`` and each piece of bytes as it was read.

        A filter gives it ``gate>agent`` or ``gate>server`` and each line that it sends by itself.
        """
        self._early: list[int] = []
        self._ending = False
        self._passed = 0
        self._writing: set[str] = set()

    def start(self) -> None:
        """Start the program in a process group of its own. Raises StartFailure."""
        self._handle_signals()
        ours, theirs = zip(*(_pipe(reads) for reads in (True, False, False)), strict=True)
        self.child = self.spawn(theirs)
        self._input, self._output, self._errors = ours
        for descriptor in theirs:
            os.close(descriptor)
        for number in self._early:
            self.signal(number)
        self.to_server, self.to_agent = Outlet(self._input, os.close), Outlet(1, _point_at_null)

    def spawn(self, streams: Sequence[int]) -> int:
        """Start the program with these standard streams, and return its process id. Raises StartFailure."""
        try:
            return _spawn(self.command, streams)
        except OSError as error:
            raise _start_failure(self.command[0], error) from None

    def wait(self) -> int:
        """Wait for the program's end: its exit code, or the number of the signal that ended it, negative."""
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])

    def run(self, lines: LineFilter | None = None) -> int:
        """Pump until the program has ended, and return the exit code: its own, or 128 and its signal.

        Without a filter the bytes pass as they are read.
        """
        import threading  # late: the program starts before

        sys.setswitchinterval(SWITCH)
        self._exited = threading.Event()
        errors = ("stderr", self._errors, 2)
        outputs = {
            "server": threading.Thread(target=self._pump_server, args=(lines,), name="server", daemon=True),
            "stderr": threading.Thread(target=self.pass_on, args=errors, name="stderr", daemon=True),
        }
        if lines is not None:
            self.to_server.open()
            self.to_agent.open()
        threading.Thread(target=self._pump_agent, args=(lines,), name="agent", daemon=True).start()
        for pump in outputs.values():
            pump.start()
        code = self.wait()
        self._exited.set()
        for name, pump in outputs.items():
            self._finish(name, pump)
        if self._ending:  # what it started, and left behind
            self.signal(signal.SIGTERM)
        if lines is not None:
            self.to_agent.close()
            self.to_agent.join()
        _point_at_null(1)
        return code if code >= 0 else 128 - code

    def signal(self, number: int) -> None:
        """Signal the program's process group."""
        if sys.platform != "win32":
            try:
                os.killpg(self.child, number)
            except (ProcessLookupError, PermissionError):  # PermissionError: only zombies are left
                return

    def end(self) -> None:
        """Terminate the program, as when the agent has gone. Waits; call it in a thread of its own."""
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            self._ending = True
            self.signal(number)
            if self._exited.wait(TERMINATE):
                return

    # Signals.

    def _handle_signals(self) -> None:
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, and shells for background jobs, ignore some
                signal.signal(number, self._forward)
        if sys.platform != "win32":
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it were ignored, the exit code would be lost

    def _forward(self, number: int, _: object) -> None:
        if not self.child:
            self._early.append(number)
            return
        self.signal(number)
        if sys.platform != "win32":
            if number == signal.SIGTSTP:
                os.kill(os.getpid(), signal.SIGSTOP)
            self._ending |= number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

    # Pumps. Each runs in a thread of its own.

    def _pump_agent(self, lines: LineFilter | None) -> None:
        if lines is None:
            heard = self.pass_on("agent", 0, self._input)
            os.close(self._input)
        else:
            self.to_server.feed()
            heard = self._filter("agent", 0, lines.from_agent, self.to_server, self.to_agent)
            lines.agent_closed()
            self.to_server.close()
        if heard:
            self._end_silent()
        else:  # the program closed its input: the agent's next write fails, as it would without us
            _point_at_null(0)

    def _pump_server(self, lines: LineFilter | None) -> None:
        if lines is None:
            heard = self.pass_on("server", self._output, 1)
            _point_at_null(1)
        else:
            self.to_agent.feed()
            heard = self._filter("server", self._output, lines.from_server, self.to_agent, self.to_server)
            lines.server_closed()
            self.to_agent.close()
        if not heard:  # the agent closed its end: the program's next write fails, as it would without us
            os.close(self._output)

    def pass_on(self, name: str, source: int, target: int) -> bool:
        """Pass the bytes on until the source ends; return False if the reader was gone before."""
        observer = self.observer
        while self._move_unseen(name, source, target) and (data := read(source)):
            self._passed += 1
            self._writing.add(name)
            if observer is not None:
                observer.take(name, data)  # before the answer to it can be read
            if not write_all(target, data):
                return False
            self._writing.discard(name)
        return True

    def _move_unseen(self, name: str, source: int, target: int) -> bool:
        """Move bytes in the kernel while the observer has no room for a copy; return False at the end of the source.

        Any failure is left to the next reading and writing, which shows the end that it is about.
        """
        observer = self.observer
        if sys.platform == "linux" and (observer is None or observer.full):
            _widen(source)
            _widen(target)
            while True:
                wait_for(reading=source)
                if not (observer is None or observer.full):
                    return True
                self._writing.add(name)
                try:
                    moved = os.splice(source, target, FLOOD)
                except BlockingIOError:  # the agent made the stream so
                    wait_for(writing=target)
                    continue
                except OSError:
                    return True
                finally:
                    self._writing.discard(name)
                if not moved:
                    return False
                self._passed += 1
                if observer is not None:
                    observer.miss(name, moved)
        return True

    def _filter(
        self, name: str, source: int, decide: Callable[[bytes, bool], None], own: Outlet, other: Outlet
    ) -> bool:
        cutter = LineCutter(LINE)
        for data in self._pieces(source):
            self._writing.add(name)
            if self.observer is not None:
                self.observer.take(name, data)
            for line, whole in cutter.feed(data):
                decide(line, whole)
            own.wait()
            other.wait(foreign=True)
            self._writing.discard(name)
            if own.broken:
                return False
        for line, whole in cutter.rest():
            decide(line, whole)
        return True

    def _pieces(self, source: int) -> Iterator[bytes]:
        while data := read(source):
            self._passed += 1
            yield data

    # The end.

    def _end_silent(self) -> None:
        """Terminate a program that goes on although its input has ended, once it is silent."""
        passed = -1
        while passed != self._passed:
            passed = self._passed
            if self._exited.wait(GRACE):
                return
        self.end()

    def _finish(self, name: str, pump: Any) -> None:
        """Wait until the output is passed on; one that another process holds open ends with silence."""
        passed = -1
        while pump.is_alive() and (passed != self._passed or name in self._writing):
            passed = self._passed
            pump.join(REST)


class Observer:
    """Sends copies to the running screen, else to a record. Only its own threads wait.

    ``hello`` makes the first message to the screen, ``path`` the path of its socket ("" without one), and ``record``
    the function that takes a line, or None where no more wait: then what it took is written. All are called in the
    observer's thread, once something passes. With ``always`` the record gets all, and long lines whole.
    """

    def __init__(
        self,
        hello: Callable[[], bytes],
        path: Callable[[], str],
        record: Callable[[], Callable[[CopiedLine | None], None]],
        *,
        always: bool = False,
    ) -> None:
        import threading  # late: the program starts before
        from collections import deque

        self._longest, self._backlog = (LINE, RECORDED_BACKLOG) if always else (COPY, BACKLOG)
        self._drain = RECORDED_DRAIN if always else DRAIN

        self.received: Callable[[bytes], None] = lambda line: None
        """Called in the observer's reading thread with each line of the screen after its welcome."""
        self.lost: Callable[[], None] = lambda: None
        """Called there each time the screen is gone, before `say` refuses what is for it. Must not wait."""
        self.masked: Callable[[bytes], bytes] = lambda data: data
        """Returns a copied line without its secrets."""
        self._hello, self._path, self._make_record, self._always = hello, path, record, always
        self._record: Callable[[CopiedLine | None], None] | None = None
        self._changed = threading.Condition()
        self._queue: deque[tuple[str, float, bytes, int]] = deque()
        self._waiting, self._urgent, self._closing = 0, False, False
        self._dropped: dict[str, int] = {}
        self._streams: dict[str, _CopiedStream] = {}
        self._opening: dict[str, CopiedLine] = {}
        """The first line of each side, which a screen that starts later receives, too: there they say who they are."""
        self._connecting = threading.Lock()
        self._socket: socket.socket | None = None
        self._gone: list[socket.socket] = []
        """Connections that no thread but the observer's may close, since it may still write to them."""
        self._next_try = 0.0
        self._thread = threading.Thread(target=self._work, name="observer", daemon=True)

    def open(self) -> None:
        """Start to observe, and look for a screen."""
        self._thread.start()

    def take(self, source: str, data: bytes) -> None:
        """Queue a copy; if too many bytes wait, it is counted as dropped. Never waits."""
        from time import time  # late: the program starts before

        with self._changed:
            if self._waiting + len(data) > self._backlog:
                self._miss(source, len(data))
                return
            self._queue.append((source, time(), data, self._dropped.pop(source, 0)))
            self._waiting += len(data)
            if len(self._queue) == 1:
                self._changed.notify()

    @property
    def full(self) -> bool:
        """True if there may be no room for the next copy."""
        return self._waiting + PIECE > self._backlog

    def miss(self, source: str, size: int) -> None:
        """Count bytes of which no copy is made. Never waits."""
        with self._changed:
            self._miss(source, size)

    def _miss(self, source: str, size: int) -> None:
        # To count lines would slow the pump.
        self._dropped[source] = self._dropped.get(source, 0) + -(-size // PIECE)

    def say(self, line: bytes) -> bool:
        """Queue a message of the link, in order with the copies; False where no screen is connected."""
        with self._changed:
            if self._socket is None:
                return False
            self._queue.append(("", 0.0, line, 0))
            self._urgent = True
            self._changed.notify()
            return True

    @property
    def connected(self) -> bool:
        return self._socket is not None

    def connect(self) -> bool:
        """Look for a screen now, and wait shortly for its welcome; return True if one is connected."""
        with self._connecting:
            if self._socket is None and (connected := self._connected()) is not None:
                from threading import Thread  # late: only a screen needs it

                self._socket = connected[0]
                Thread(target=self._read, args=connected, name="screen", daemon=True).start()
            return self._socket is not None

    def close(self) -> None:
        """Deliver the queue, in a few seconds at most."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(self._drain)

    # The thread.

    def _work(self) -> None:
        from time import thread_time  # late: the program starts before

        self._search()
        began = thread_time()
        while (item := self._next()) is not None:
            self._deliver(*item)
            if self._record is not None and not self._queue:
                self._record(None)
            worked = thread_time() - began
            if worked > LINGER / SHARE:
                self._pause(worked * (SHARE - 1))
                began = thread_time()
        for source in {*self._streams, *self._dropped}:
            for line in self._stream(source).rest(source, self._dropped.get(source, 0)):
                self._copy(line)
        if self._record is not None:
            self._record(None)
        if (connection := self._socket) is not None:
            _hang_up(connection)
            with self._changed:
                self._changed.wait_for(lambda: self._socket is None, WELCOME)
        self._close_gone()

    def _next(self) -> tuple[str, float, bytes, int] | None:
        with self._changed:
            if not self._queue:
                self._changed.wait_for(lambda: self._queue or self._closing)
                self._changed.wait_for(lambda: self._urgent or self._closing, LINGER)
            if not self._queue:
                return None
            item = self._queue.popleft()
            self._waiting -= len(item[2]) if item[0] else 0
            self._urgent = self._urgent and bool(self._queue)
            return item

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._urgent or self._closing, seconds)

    def _deliver(self, source: str, when: float, data: bytes, dropped: int) -> None:
        if not source:
            self._send(data)
            return
        for line in self._stream(source).feed(source, when, data, dropped):
            self._copy(line)

    def _stream(self, source: str) -> _CopiedStream:
        stream = self._streams.get(source)
        if stream is None:
            stream = self._streams[source] = _CopiedStream(self._longest)
        return stream

    def _copy(self, line: CopiedLine) -> None:
        self._search()
        masked = self.masked(line.data)
        line.data, line.size = masked, line.size + len(masked) - len(line.data)
        sent = self._socket is not None and self._send(line.message())
        if self._always or not sent:
            if self._record is None:
                self._record = self._make_record()
            self._record(line)
        if line.source in ("agent", "server") and line.source not in self._opening and line.size <= PIECE:
            self._opening[line.source] = line

    # The screen.

    def _search(self) -> None:
        from time import monotonic  # late: the program starts before

        if self._socket is None and monotonic() >= self._next_try:
            self._close_gone()
            self._next_try = monotonic() + RETRY
            self.connect()

    def _close_gone(self) -> None:
        while self._gone:
            self._gone.pop().close()

    def _send(self, data: bytes) -> bool:
        connection = self._socket
        if connection is None:
            return False
        try:
            connection.sendall(data)
        except OSError:
            _hang_up(connection)  # the reading thread takes what came before, and lets go of it
            return False
        return True

    def _connected(self) -> tuple[socket.socket, BinaryIO] | None:
        connection = open_socket(self._path())
        if connection is None:
            return None
        if (greeted := say_hello(connection, self._hello(), WELCOME)) is not None:
            lines, answer = greeted
            try:
                if answer["type"] == "welcome":
                    connection.settimeout(WELCOME)
                    for line in list(self._opening.values()):
                        connection.sendall(line.message())
                    connection.settimeout(None)
                    return connection, lines
            except OSError:
                pass
            lines.close()
        connection.close()
        return None

    def _read(self, connection: socket.socket, lines: BinaryIO) -> None:
        try:
            with lines:
                while (line := lines.readline(COPY + 1)).endswith(b"\n"):
                    self.received(line)
        except OSError:
            pass
        _hang_up(connection)
        with self._changed:
            self._socket = None
            self._gone.append(connection)
            self._changed.notify_all()
            self.lost()


class CopiedLine:
    """One line of the traffic, without its newline; of a long one the start."""

    __slots__ = ("data", "dropped", "size", "source", "time")

    def __init__(self, source: str, time: float, data: bytes, size: int, dropped: int) -> None:
        self.source, self.time = source, time
        self.data, self.size = data, size
        self.dropped = dropped
        """Pieces of up to `PIECE` bytes lost just before it."""

    def message(self) -> bytes:
        """The message of the link that carries this line."""
        import json  # late: only a screen needs it

        source, _, target = self.source.partition(">")
        fields = {"type": "copy", "from": source, "to_server": target == "server", "time": self.time}
        data = self.data[:COPY]
        more = {"size": len(data), "whole": self.size, "dropped": self.dropped}
        return b"%s\n%s" % (json.dumps({**fields, **more}).encode(), data)


class _CopiedStream:
    """Makes lines of the pieces of one stream, in which pieces may be missing."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._cutter = LineCutter(longest)
        self._start: bytes | None = None
        self._size = self._dropped = 0
        self._gap = False

    def feed(self, source: str, when: float, data: bytes, dropped: int) -> Iterator[CopiedLine]:
        self._lose(dropped)
        if self._gap:
            end = data.find(b"\n") + 1
            self._gap, data = not end, data[end:] if end else b""
        for line, _ in self._cutter.feed(data):
            self._add(line)
            if line.endswith(b"\n"):
                yield self._take(source, when, 1)

    def rest(self, source: str, dropped: int) -> Iterator[CopiedLine]:
        """The last line, if it has no newline; an empty one, if pieces are missing at the end."""
        from time import time  # late: the program starts before

        self._lose(dropped)
        for line, _ in self._cutter.rest():
            self._add(line)
        if self._start is not None or self._dropped:
            yield self._take(source, time(), 0)

    def _lose(self, dropped: int) -> None:
        """Forget the line that a gap interrupts; the one in whose middle it ends is left out, too."""
        if dropped:
            self._cutter, self._gap = LineCutter(self._longest), True
            self._start, self._size = None, 0
            self._dropped += dropped

    def _add(self, line: bytes) -> None:
        if self._start is None:
            self._start, self._size = line, 0
        self._size += len(line)

    def _take(self, source: str, when: float, newline: int) -> CopiedLine:
        start, size, dropped = self._start or b"", self._size - newline, self._dropped
        self._start, self._size, self._dropped = None, 0, 0
        return CopiedLine(source, when, start[:size], size, dropped)


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(2)
    except OSError:
        return


def open_socket(path: str) -> socket.socket | None:
    """Connect to the socket of a screen; None where it does not run, or another user's does."""
    if sys.platform != "win32" and path:
        import socket  # late: only a screen needs it

        connection = socket.socket(socket.AF_UNIX)
        try:
            if os.stat(path).st_uid == os.geteuid():
                connection.connect(path)
                return connection
        except OSError:
            pass
        connection.close()
    return None


def say_hello(connection: socket.socket, hello: bytes, seconds: float) -> tuple[BinaryIO, dict[str, Any]] | None:
    """Say hello to a screen: what it says from then on, and its answer; None where that is not one."""
    import json  # late: only a screen needs it

    lines = connection.makefile("rb")
    try:
        connection.settimeout(seconds)
        connection.sendall(hello)
        answer = json.loads(lines.readline(COPY))
        connection.settimeout(None)
        if isinstance(answer, dict) and "type" in answer:
            return lines, answer
    except (OSError, ValueError, RecursionError):
        pass
    lines.close()
    return None


def read(source: int) -> bytes:
    """The next bytes; empty at the end."""
    while True:
        try:
            return os.read(source, PIECE)
        except BlockingIOError:  # the agent made the stream so
            wait_for(reading=source)
        except OSError:  # a terminal that is gone
            return b""


def write_all(target: int, data: bytes) -> bool:
    """Write all bytes; return False if the reader is gone."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(target, left) :]
        except BlockingIOError:
            wait_for(writing=target)
        except OSError:
            return False
    return True


def _room_in(target: int) -> Callable[[bytes], bool]:
    """Returns True for bytes that can be written without waiting; for some streams it cannot be known."""
    if sys.platform != "win32":
        import stat  # late: a tap does without
        from select import PIPE_BUF, POLLOUT, poll

        try:
            mode = os.fstat(target).st_mode
        except OSError:
            return lambda data: False
        if stat.S_ISFIFO(mode) or (stat.S_ISSOCK(mode) and sys.platform == "linux"):
            stream, ready = poll(), [(target, POLLOUT)]
            stream.register(target, POLLOUT)
            # POSIX: a pipe that is ready takes as many bytes at once.
            return lambda data: len(data) <= PIPE_BUF and stream.poll(0) == ready
    return lambda data: False


def wait_for(*, reading: int | None = None, writing: int | None = None) -> None:
    """Wait until a stream can be read or written, or is gone."""
    from select import select  # late: few streams need it

    select([reading] if reading is not None else [], [writing] if writing is not None else [], [])


def _widen(pipe: int) -> None:
    """Give a pipe room for a flood; idle ones keep theirs, since a user's pipes share a limit."""
    if sys.platform == "linux":
        from fcntl import F_SETPIPE_SZ, fcntl

        try:
            fcntl(pipe, F_SETPIPE_SZ, FLOOD)
        except OSError:  # the limit, or another kind of stream
            return


def _pipe(reads: bool) -> tuple[int, int]:
    """A pipe to or from a program: this end, and the end of the program."""
    reading, writing = os.pipe()
    return (writing, reading) if reads else (reading, writing)


def _point_at_null(descriptor: int) -> None:
    """Close a standard stream, but let no file that is opened later take its number."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _spawn(command: list[str], streams: Sequence[int]) -> int:
    # The module subprocess would take as long to load as the interpreter.
    if sys.platform != "win32":
        return os.posix_spawnp(
            command[0],
            command,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(streams)],
            setpgroup=0,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them
        )
    raise OSError(errno.ENOSYS, "this does not run on Windows yet")


def options_of(words: Sequence[str], known: Sequence[str]) -> tuple[dict[str, str], list[str]] | None:
    """The options before ``--``, each of which takes a value, and the words of the program behind it.

    None for anything else, which is left to the parser of all commands: it takes as long to load as the interpreter.
    """
    options: dict[str, str] = {}
    waiting = iter(words)
    for word in waiting:
        if word == "--":
            program = list(waiting)
            return (options, program) if program else None
        name, assigned, value = word.partition("=")
        value = value if assigned else next(waiting, "")
        if name not in known or not value or (not assigned and value.startswith("-")):
            return None
        options[name] = value
    return None


def _start_failure(program: str, error: OSError) -> StartFailure:
    if error.errno == errno.EACCES:
        return StartFailure(f"cannot start {program!a}: it is not a file that you may run; check its mode", 126)
    if error.errno != errno.ENOENT:
        return StartFailure(f"cannot start {program!a}: {error.strerror or error}", 126)
    from shutil import which  # late: only for this sentence

    if which(program):
        return StartFailure(f"cannot start {program!a}: the program that its first line names is missing", 127)
    advice = "write its arguments as words of their own" if " " in program.strip() else "check PATH"
    return StartFailure(f"cannot start {program!a}: no program of this name was found; {advice}", 127)
