"""A server and all it started: what still runs when mcphost ends is ended with it.

Knows signals and which servers live. Refuses to know what a process does.

Specification: basic/lifecycle, shutdown.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
from contextlib import suppress
from typing import Final

from mcphost.transports.descendants import ProcessId, descendants, identify, identify_outside, marked

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
