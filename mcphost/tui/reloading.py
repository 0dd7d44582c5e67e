"""Going over to a changed configuration file: read, shown, and applied where the user says so.

Knows the order of these steps. Refuses to read files itself: it is given how.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.app import App

from mcphost.config import compare
from mcphost.errors import McphostError
from mcphost.host.host import Host
from mcphost.host.start import ReloadedConfig
from mcphost.protocol.display import show

Read = Callable[[], ReloadedConfig]
"""Reads the configuration; waits for the disk. Raises ConfigError."""


async def reload(app: App[None], host: Host, read: Read) -> None:
    """Read the file again, show what would change, and apply it if the user agrees."""
    try:
        fresh = await asyncio.to_thread(read)
    except McphostError as error:
        app.notify(show(str(error)), title="Nothing was changed", severity="error", timeout=20, markup=False)
        return
    for problem in fresh.problems:
        app.notify(show(problem), title="Configuration", severity="warning", timeout=20, markup=False)
    changes = compare(host.config, fresh.config)
    if not changes:
        app.notify("The configuration is as it was.")
        return
    from mcphost.tui.screens.reload import ReloadScreen

    if await app.push_screen_wait(ReloadScreen(changes, fresh.config)):
        await host.apply(fresh.config)
