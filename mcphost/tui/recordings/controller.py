"""Adds recordings as servers to the run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from textual.app import App, SystemCommand

from mcphost.config import RecordedServer
from mcphost.host.host import Host
from mcphost.protocol.display import show, show_line
from mcphost.tui.start_info import ReloadedConfig


class RecordingsController:
    def __init__(self, app: App[Any], host: Host) -> None:
        self._app, self._host = app, host

    def commands(self) -> Iterator[SystemCommand]:
        yield SystemCommand("Replay a recording", "A file of traffic becomes a server of this run", self.open)

    def open(self) -> None:
        """Ask for a recording."""
        from mcphost.tui.recordings.screen import RecordingScreen

        self._app.push_screen(RecordingScreen(self.mount))

    async def mount(self, file: str) -> None:
        """Add the server that replays this file, and start it. Raises NotDone."""
        from mcphost.host.recordings.mounting import mounted_server

        taken = {*self._host.config.servers, *self._host.servers}
        name, entry = await asyncio.to_thread(mounted_server, file, taken)
        config = self._host.config
        await self._host.apply(config.model_copy(update={"servers": {**config.servers, name: entry}}))
        self._app.notify(show(f"“{name}” replays {show_line(file, 200)}.", limit=400), markup=False)

    def kept_in(self, read: ReloadedConfig) -> ReloadedConfig:
        """A configuration that was read again, with the recordings of this run."""
        entries = self._host.config.servers.items()
        kept = {name: each for name, each in entries if isinstance(each, RecordedServer)}
        if not kept:
            return read
        servers = {**kept, **read.config.servers}
        return ReloadedConfig(read.config.model_copy(update={"servers": servers}), read.problems)
