"""Sets the log levels of servers."""

from __future__ import annotations

from typing import Any

from textual.app import App

from mcphost.errors import McphostError
from mcphost.host.connections.connection import Connection
from mcphost.host.host import Host
from mcphost.protocol.display import show
from mcphost.protocol.models.logging import LogLevel
from mcphost.tui.main.screen import MainScreen


class ServersController:
    def __init__(self, app: App[Any], host: Host, main: MainScreen) -> None:
        self._app, self._host, self._main = app, host, main

    def choose_level(self, name: str | None) -> None:
        """Let the user choose the least log level that this server sends; None: the selected server."""
        from mcphost.tui.logs.dialogs import LevelScreen

        name = name or self._main.servers.chosen
        if name is None:
            self._app.notify("Choose a server first (s): the log level is set per server.")
            return
        server = self._host.servers[name]

        def chosen(level: LogLevel | None) -> None:
            if level is not None:
                self._app.run_worker(self._set_level(server, level))

        self._app.push_screen(LevelScreen(server.name, server.level), chosen)

    async def _set_level(self, server: Connection, level: LogLevel) -> None:
        try:
            await server.set_level(level)
        except McphostError as error:
            self._app.notify(show(f"The log level was not changed: {error}"), severity="error", markup=False)
        else:
            self._app.notify(f"{server.name} now sends {level.wire} and above.", markup=False)
