"""Sets the log levels of servers, and lists again what they offer."""

from __future__ import annotations

from typing import Any

from textual.app import App

from mcphost.errors import McphostError
from mcphost.host.connections.connection import Connection
from mcphost.host.host import Host
from mcphost.protocol.display import show
from mcphost.protocol.models.logging import LogLevel
from mcphost.tui.kit.messages import LogLevelRequested, RelistRequested
from mcphost.tui.main.screen import MainScreen


class ServersController:
    def __init__(self, app: App[Any], host: Host, main: MainScreen) -> None:
        self._app, self._host, self._main = app, host, main

    def on_log_level_requested(self, event: LogLevelRequested) -> None:
        """Let the user choose the least log level that a server sends."""
        from mcphost.tui.logs.dialogs import LevelScreen

        name = event.server or self._main.servers.chosen
        if name is None:
            self._app.notify("Choose a server first (s): the log level is set per server.")
            return
        server = self._host.servers[name]

        def chosen(level: LogLevel | None) -> None:
            if level is not None:
                self._app.run_worker(self._set_level(server, level))

        self._app.push_screen(LevelScreen(server.name, server.level), chosen)

    def on_relist_requested(self, event: RelistRequested) -> None:
        self.relist(event.server)

    def relist(self, name: str) -> None:
        self._app.run_worker(self._relist(self._host.servers[name]), group=f"relist {name}", exclusive=True)

    async def _relist(self, server: Connection) -> None:
        try:
            await server.relist_all()
        except McphostError as error:
            self._app.notify(show(f"Not listed again: {error}", limit=400), severity="warning", markup=False)
            return
        lists = [listing for kind, listing in server.listings if server.listings.declared(kind)]
        counts = [f"{len(listing.items)} {kind.value}" for kind, listing in server.listings if listing in lists]
        failed = next((str(listing.failure) for listing in lists if listing.failure is not None), "")
        words = f"Listed “{server.name}” again: {failed or ', '.join(counts) or 'it offers no lists'}."
        self._app.notify(show(words, limit=400), severity="warning" if failed else "information", markup=False)

    async def _set_level(self, server: Connection, level: LogLevel) -> None:
        try:
            await server.set_level(level)
        except McphostError as error:
            self._app.notify(show(f"The log level was not changed: {error}"), severity="error", markup=False)
        else:
            self._app.notify(f"“{server.name}” now sends {level.wire} and above.", markup=False)
