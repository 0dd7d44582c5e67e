"""The modes of a terminal: who may read from it, and whether it shows and gathers what is typed.

Windows has none of this. The replacements let the types be checked there; mcphost does not run there yet.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mcphost.posix import STOP, set_terminal_modes

if sys.platform == "win32":

    def discard_input(descriptor: int) -> None: ...

    def is_in_foreground(descriptor: int) -> bool:
        return True

    @contextmanager
    def without_echo(descriptor: int) -> Iterator[None]:
        yield

    @contextmanager
    def answering(descriptor: int) -> Iterator[bool]:
        yield False

    def open_terminal_file(path: str) -> int:
        raise OSError(f"there is no {path}")

    def terminal_path(descriptor: int) -> str:
        raise OSError("it has no path")

else:
    import termios  # at the top: every command that asks needs it, and it is built in
    import tty

    def discard_input(descriptor: int) -> None:
        """Discard keys that were typed and not yet read."""
        with suppress(OSError, termios.error):
            termios.tcflush(descriptor, termios.TCIFLUSH)

    def is_in_foreground(descriptor: int) -> bool:
        """True if this process may read from the terminal. A background job that tries is stopped."""
        try:
            return os.tcgetpgrp(descriptor) == os.getpgrp()
        except OSError:
            return False

    @contextmanager
    def without_echo(descriptor: int) -> Iterator[None]:
        """Turn off echo and line mode; in line mode a terminal drops everything after 4,095 bytes.

        While ctrl+z has stopped the process, they are as before.
        """
        own = os.dup(descriptor)  # a signal may point the descriptor elsewhere meanwhile
        before = termios.tcgetattr(own)
        silent = [*before[:6], [*before[6]]]
        silent[3] &= ~(termios.ECHO | termios.ICANON)
        silent[6][termios.VMIN], silent[6][termios.VTIME] = 1, 0
        termios.tcsetattr(own, termios.TCSADRAIN, silent)
        try:
            with _suspended_with(lambda: set_terminal_modes(own, before), lambda: set_terminal_modes(own, silent)):
                yield
        finally:
            with suppress(termios.error):  # the terminal hung up
                termios.tcsetattr(own, termios.TCSADRAIN, before)
            os.close(own)

    @contextmanager
    def _suspended_with(leave: Callable[[], None], come_back: Callable[[], None]) -> Iterator[None]:
        """Call ``leave`` before ctrl+z stops the process, and ``come_back`` when it goes on."""
        is_main = threading.current_thread() is threading.main_thread()  # only that one may set handlers
        if not is_main or signal.getsignal(signal.SIGTSTP) is not signal.SIG_DFL:  # an outer one does it, or it cannot
            yield
            return

        def suspend(*_: object) -> None:
            leave()
            os.kill(os.getpid(), STOP)

        before = signal.signal(signal.SIGCONT, lambda *_: come_back())
        signal.signal(signal.SIGTSTP, suspend)
        try:
            yield
        finally:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            signal.signal(signal.SIGCONT, before)

    @contextmanager
    def answering(descriptor: int) -> Iterator[bool]:
        """Let the terminal's own answers be read as they come, and drop what is left of them. Yields whether it can."""
        before = termios.tcgetattr(descriptor)
        try:
            tty.setcbreak(descriptor, termios.TCSANOW)
            yield True
        finally:
            with suppress(termios.error):
                termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)  # the rest of an answer was not typed

    def open_terminal_file(path: str) -> int:
        """Open a terminal by its path, without making it the controlling one. Raises OSError."""
        return os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)

    def terminal_path(descriptor: int) -> str:
        """The path of a terminal. Raises OSError."""
        return os.ttyname(descriptor)
