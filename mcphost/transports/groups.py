"""Process groups: a server and all it started. What still runs when mcphost ends is ended with it.

Knows signals and which groups live. Refuses to know what runs in one.

Specification: basic/lifecycle, shutdown.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
from typing import Final

SWEEP: Final = 0.5
"""Seconds that processes a server left behind get between SIGTERM and SIGKILL."""

live_groups: set[int] = set()
"""The groups that were started and not yet swept."""


@atexit.register
def _end_groups() -> None:
    for group in tuple(live_groups):
        signal_group(group, signal.SIGKILL)


def signal_group(group: int, which: int) -> bool:
    """Send a signal to a process group (0: none, a look); False when nothing of it is left."""
    try:
        os.killpg(group, which)
    except ProcessLookupError:
        return False
    except PermissionError:  # only zombies, or a process that changed its user: out of our reach either way
        return False
    return True


async def sweep(group: int) -> None:
    """End what a server left running in its group: the leader alone is not the server."""
    if not signal_group(group, signal.SIGTERM):
        return
    for _ in range(int(SWEEP / 0.02)):
        await asyncio.sleep(0.02)
        if not signal_group(group, 0):
            return
    signal_group(group, signal.SIGKILL)
