"""The app's side of the terminal: its modes, its size, its signals, and the threads that read and write it."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from typing import Any

from textual.constants import DISABLE_KITTY_KEY
from textual.drivers.linux_driver import LinuxDriver

from mcphost.tui.terminal_reader import ASK_ALTERNATE_KEYS, read_terminal


class Driver(LinuxDriver):
    """Ends the app when its terminal closes, and resumes after SIGCONT only if the terminal still exists.

    When a terminal closes, the kernel sends SIGHUP and SIGCONT together. Textual's driver takes SIGCONT for the end of
    a suspension and writes to the closed terminal; its writer thread dies, and the exit waits for that thread forever.
    Where the terminal is not the controlling one, the kernel sends no SIGHUP, and Textual's input thread spins on empty
    reads.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        threading.Thread(target=self._wait_for_hangup, name="hangup", daemon=True).start()

    def run_input_thread(self) -> None:
        if not DISABLE_KITTY_KEY:
            self.write(ASK_ALTERNATE_KEYS)
        read_terminal(self.fileno, self.exit_event, self.process_message)

    def _wait_for_hangup(self) -> None:
        if sys.platform != "win32":  # which has neither poll nor SIGHUP, nor this driver
            terminal = select.poll()
            terminal.register(self.fileno, 0)  # POLLHUP and errors are reported all the same
            if any(event & select.POLLHUP for _, event in terminal.poll()):
                os.kill(os.getpid(), signal.SIGHUP)

    def _sigcont_application(self, *args: object) -> None:
        if os.isatty(self.fileno):
            super()._sigcont_application(*args)
