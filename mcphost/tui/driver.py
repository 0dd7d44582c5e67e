"""Textual's driver, but for a terminal that is gone.

When a terminal closes, the kernel sends SIGHUP and SIGCONT together. Textual takes the second for the end of a
suspension and begins to write again, to nobody; the thread that writes dies of it, and leaving waits for it for ever.
"""

from __future__ import annotations

import os

from textual.drivers.linux_driver import LinuxDriver


class Driver(LinuxDriver):
    """Resumes only on a terminal that is there."""

    def _sigcont_application(self, *args: object) -> None:
        if os.isatty(self.fileno):
            super()._sigcont_application(*args)
