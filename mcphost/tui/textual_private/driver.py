"""Draws on the terminal and reads it, in threads; handles its modes, its size and its signals."""

from __future__ import annotations

import atexit
import errno
import math
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from queue import SimpleQueue
from typing import Any, Final

from textual.constants import DISABLE_KITTY_KEY
from textual.drivers.linux_driver import LinuxDriver

from mcphost.posix import HANG_UP, STOP, has_foreground, open_terminal_of, set_terminal_modes, terminal_modes
from mcphost.tui.textual_private.terminal_reader import ASK_ALTERNATE_KEYS, WakingEvent, read_terminal

SIZE: Final = (80, 25)
"""Columns and rows that are assumed where a terminal reports none."""

QUEUED_WRITES: Final = 30
"""Writes that may wait for the terminal before frames are skipped; a frame is up to three of them."""

CLOSE_SECONDS: Final = 0.5
"""Seconds to wait on exit for the terminal to take the last writes, and again for `RESTORE`."""

ROOM_SECONDS: Final = 0.005
"""Pause after a write that the terminal did not take: it may report room and still not take a line end."""

RETRY_SECONDS: Final = 0.1
"""Pause after a thread fails, so that a permanent failure does not keep a processor busy."""

TOGETHER_SECONDS: Final = 0.001
"""Seconds after SIGCONT in which SIGTSTP came with it: Python handles signals that came together by their numbers."""

RESTORE: Final = (
    "\x1b\\"  # ends a string that a frame may have begun
    "\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?2048l"  # synchronized output, bracketed paste, line wrap, in-band resizes
    "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # the mouse
    "\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"  # kitty's keys, the alternate screen, the cursor, focus reports
)
"""Undoes every mode that the screen sets, whatever was written last."""

PUSH_TITLE: Final = "\x1b[22;0t"
"""Makes the terminal remember its title."""

RESTORE_TITLE: Final = "\x1b]0;\x1b\\\x1b[23;0t"
"""Brings the kept title back. A terminal that kept none has no title then, until the shell sets it."""


class TerminalWriter(threading.Thread):
    """Writes to the terminal, so that no other thread waits for it.

    ``drained`` is called, in this thread, when all is written after `skip` was called. ``failed`` gets exceptions; a
    closed terminal does not count, since the driver notices it itself.
    """

    def __init__(self, descriptor: int, drained: Callable[[], None], failed: Callable[[Exception], None]) -> None:
        super().__init__(name="terminal-output", daemon=True)
        self._descriptor, self._drained, self._failed = descriptor, drained, failed
        self._texts: SimpleQueue[str | None] = SimpleQueue()
        self._skipped = self._abandoned = False
        self.lost = False
        """True if something was not written."""

    @property
    def is_behind(self) -> bool:
        return self._texts.qsize() > QUEUED_WRITES

    def write(self, text: str) -> None:
        self._texts.put(text)

    def skip(self) -> None:
        """Call ``drained`` once another frame can be drawn, since one was left out."""
        if not self._skipped:
            self._skipped = True
            self._texts.put("")  # the thread may have written everything in the meantime

    def close(self) -> None:
        """Write the rest, for `CLOSE_SECONDS` at most."""
        self._texts.put(None)
        self.join(CLOSE_SECONDS)
        if self.is_alive():
            self._abandoned = self.lost = True

    def run(self) -> None:
        while (text := self._texts.get()) is not None and not self._abandoned:
            try:
                self._write(text.encode("utf-8", "replace"))
            except Exception as error:
                self.lost = True
                if getattr(error, "errno", None) != errno.EIO:
                    self._failed(error)
            if self._skipped and self._texts.empty():
                self._skipped = False
                self._drained()

    def _write(self, data: bytes) -> None:
        while data and not self._abandoned:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [], RETRY_SECONDS)
                time.sleep(ROOM_SECONDS)


class Driver(LinuxDriver):
    """Draws on the terminal of stdout, whatever stderr is, and reads the one of stdin.

    Nothing here waits for the terminal: a separate thread writes what is drawn, and the app skips frames while that
    one is behind. An exception in a thread goes through the app's error boundary. The terminal is given back however
    the process ends, and after SIGTSTP until SIGCONT.

    When a terminal closes, the kernel sends SIGHUP and SIGCONT together. Textual's driver takes every SIGCONT for the
    end of a suspension, and starts its threads and modes again. Where the terminal is not the controlling one, the
    kernel sends no SIGHUP, and Textual's input thread spins on empty reads.
    """

    def __init__(self, *arguments: Any, size: tuple[int, int] | None = None, **options: Any) -> None:
        self._output = open_terminal_of((sys.__stdout__ or sys.stdout).fileno())
        super().__init__(*arguments, size=size or self._get_terminal_size(), **options)
        self.exit_event: WakingEvent = WakingEvent()
        self._file: Any = StringIO()  # for Textual's own writer thread, which gets nothing
        self._writer = self._new_writer()
        self._raw: list[Any] = []
        """The terminal's attributes in application mode."""
        self._active = self._suspended = self._stop_due = False
        self._continued_at = -math.inf
        self._title = ""
        threading.Thread(target=self._wait_for_hangup, name="hangup", daemon=True).start()

    # The app's frames.

    def write(self, data: str) -> None:
        self._writer.write(data)

    def takes_frame(self) -> bool:
        """True if the terminal keeps up; if not, the whole screen is drawn once it does."""
        if self._writer.is_behind:
            self._writer.skip()
            return False
        return True

    def set_title(self, title: str) -> None:
        """Set the terminal's title, in words of mcphost alone; empty: bring back the title from before."""
        if self._active and title != self._title:
            kept = PUSH_TITLE if title and not self._title else ""
            self.write(f"{kept}{_title(title)}" if title else RESTORE_TITLE)
        self._title = title

    def _new_writer(self) -> TerminalWriter:
        return TerminalWriter(self._output, lambda: self._from_thread(self._app.refresh), self._failed)

    def _get_terminal_size(self) -> tuple[int, int]:
        """The terminal's own size: COLUMNS and LINES may be those of another terminal, or of an earlier moment."""
        columns, rows = SIZE
        with suppress(OSError):
            columns, rows = os.get_terminal_size(self._output)
        return columns or SIZE[0], rows or SIZE[1]

    # Starting and stopping.

    def start_application_mode(self) -> None:
        if not self._writer.is_alive():
            self._writer = self._new_writer()
            self._writer.start()
        self._writer_thread = None
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._active = self._writer_thread is not None  # Textual starts nothing in the background
        self._suspended = not self._active
        if self._active:
            self._raw = terminal_modes(self.fileno)
            atexit.register(self._restore)
            if self._title:  # as after a suspension
                self.write(f"{PUSH_TITLE}{_title(self._title)}")

    def stop_application_mode(self) -> None:
        if not self._active:
            return
        self._active = False
        atexit.unregister(self._restore)
        self._writer.lost = False  # the sequences that restore the terminal must not be lost
        if not has_foreground(self.fileno):
            self.attrs_before = None  # the terminal's attributes are another program's now
        if self._title:
            self.write(RESTORE_TITLE)
        super().stop_application_mode()

    def close(self) -> None:
        super().close()
        if self._writer.is_alive():
            self._writer.close()
            if self._writer.lost:
                self._restore(CLOSE_SECONDS)

    def _disable_mouse_support(self) -> None:
        super()._disable_mouse_support()
        if self._mouse_pixels:
            self._mouse_pixels = False
            self.write("\x1b[?1016l")

    def _restore(self, seconds: float = 0) -> None:
        """Restore the terminal, from any thread, even while the app is blocked. Wait up to ``seconds`` for it."""
        if has_foreground(self.fileno):
            set_terminal_modes(self.fileno, self.attrs_before or [])
        with suppress(OSError):
            if select.select([], [self._output], [], seconds)[1]:
                os.write(self._output, (RESTORE + (RESTORE_TITLE if self._title else "")).encode())

    # Signals. Their handlers interrupt whatever runs, so the work is done by the event loop.

    def _sigtstp_application(self, *_: object) -> None:
        if time.monotonic() - self._continued_at < TOGETHER_SECONDS:
            return
        self._stop_due = True
        self._loop.call_soon_threadsafe(self._suspend)

    def _sigcont_application(self, *_: object) -> None:
        self._stop_due, self._continued_at = False, time.monotonic()
        self._loop.call_soon_threadsafe(self._resume)

    def _suspend(self) -> None:
        if self._stop_due and self._active:
            self.suspend_application_mode()
            self._suspended = True
        if self._stop_due:  # no SIGCONT came since
            self._stop()

    def _resume(self) -> None:
        if not os.isatty(self.fileno):
            return
        if not has_foreground(self.fileno):  # as after bg; fg sends SIGCONT again
            self._stop()
        elif self._suspended:
            self.resume_application_mode()
            self._app.refresh()
        elif self._active:  # a shell may have used the terminal after SIGSTOP
            set_terminal_modes(self.fileno, self._raw)
            self._app.refresh()

    def _stop(self) -> None:
        self._stop_due = False
        os.kill(os.getpid(), STOP)

    # Threads.

    def run_input_thread(self) -> None:
        if not DISABLE_KITTY_KEY:
            self.write(ASK_ALTERNATE_KEYS)
        read_terminal(self.fileno, self.exit_event, self.process_message)

    def _run_input_thread(self) -> None:
        while not self.exit_event.is_set():
            try:
                self.run_input_thread()
            except Exception as error:
                if getattr(error, "errno", None) == errno.EIO:
                    os.kill(os.getpid(), HANG_UP)  # the terminal closed, or its session ended
                    return
                self._failed(error)
                self.exit_event.wait(RETRY_SECONDS)
            else:
                return

    def _failed(self, error: Exception) -> None:
        """Pass a thread's exception to the app's error boundary."""
        self._from_thread(_raise, error)

    def _from_thread(self, callback: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._app.call_later(callback, *arguments)

    def _wait_for_hangup(self) -> None:
        if sys.platform != "win32":  # where neither poll nor this driver exists
            terminal = select.poll()
            terminal.register(self.fileno, 0)  # POLLHUP and errors are reported all the same
            if any(event & select.POLLHUP for _, event in terminal.poll()):
                os.kill(os.getpid(), HANG_UP)


def _title(title: str) -> str:
    """The sequence that sets the titles of the window and of its icon."""
    return f"\x1b]0;{title}\x1b\\"


def _raise(error: Exception) -> None:
    raise error
