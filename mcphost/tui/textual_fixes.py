"""Corrections of Textual: a driver for terminals that close, and one-shot timers that fire on a busy machine."""

from __future__ import annotations

import os

from textual.drivers.linux_driver import LinuxDriver
from textual.timer import Timer


class Driver(LinuxDriver):
    """Resumes after SIGCONT only if the terminal still exists.

    When a terminal closes, the kernel sends SIGHUP and SIGCONT together. Textual's driver takes SIGCONT for the end of
    a suspension and writes to the closed terminal; its writer thread dies, and the exit waits for that thread forever.
    """

    def _sigcont_application(self, *args: object) -> None:
        if os.isatty(self.fileno):
            super()._sigcont_application(*args)


def unskipped(timer: Timer) -> Timer:
    """Let a new one-shot timer fire even if its time has passed before Textual first checks it.

    Textual skips such a tick and waits for the next one, which a one-shot timer does not have.
    """
    timer._skip = False
    return timer
