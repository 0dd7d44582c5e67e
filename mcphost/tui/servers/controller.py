"""What the user wants of servers, done by the host: start and stop one, set its log level, ping it, look at its usage.

Knows the host and the panes. Refuses to know how a server is kept running: that is its connection's.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.worker import Worker

from mcphost.errors import McphostError
from mcphost.host.connections.connection import Connection, ServerState
from mcphost.host.host import Host
from mcphost.protocol.display import duration_text, show
from mcphost.protocol.models.tools import LogLevel
from mcphost.tui.kit.requests import RestartWanted
from mcphost.tui.logs.pane import LogsPane
from mcphost.tui.main.refresh import Showing
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.servers.card import ServerCard
from mcphost.tui.servers.list import ServersPane

if TYPE_CHECKING:
    _App = App[Any]
else:
    _App = object


class ServerWishes(_App):
    """The app's ear for these wishes."""

    host: Host
    main: MainScreen
    showing: Showing

    def on_servers_pane_toggle_wanted(self, event: ServersPane.ToggleWanted) -> None:
        """Start a server that is at rest or failed, else stop it."""
        server = self.host.server(event.server)
        off = server.state in (ServerState.STOPPED, ServerState.DISABLED, ServerState.FAILED)
        server.start() if off else server.stop()

    def on_restart_wanted(self, event: RestartWanted) -> None:
        """Disconnect it, and connect anew."""
        self.host.server(event.server).restart()

    # Its card.

    def on_server_card_ping_wanted(self, event: ServerCard.PingWanted) -> None:
        """Ask for a sign of life."""
        self.run_worker(self._ping(self.host.server(event.server)))

    async def _ping(self, server: Connection) -> None:
        """Whether it answers now, and how fast: its card keeps what came of it."""
        try:
            answer = await server.ping()
        except McphostError as error:
            self.notify(show(f"{server.name}: {error}", limit=400), severity="error", markup=False)
        else:
            self.notify(f"{server.name} answered a ping in {duration_text(answer.seconds)}.", markup=False)

    def on_server_card_usage_wanted(self, event: ServerCard.UsageWanted) -> None:
        """Look at what its program takes of the machine."""
        # Not a coroutine yet: the next may take its place before it begins.
        _: Worker[None] = self.run_worker(partial(self._gauge, event.server), group="usage", exclusive=True)

    async def _gauge(self, server: str) -> None:
        if (connection := self.host.servers.get(server)) is not None:
            await self.host.gauges.read(connection)
            self.showing.card()

    # Its log level.

    def on_servers_pane_level_wanted(self, event: ServersPane.LevelWanted) -> None:
        """Choose what it should say."""
        self._choose_level(self.host.server(event.server))

    def on_logs_pane_level_wanted(self, event: LogsPane.LevelWanted) -> None:
        """Choose what the server of these lines, or else the one under the cursor, should say."""
        server = event.server or self.main.servers.chosen
        if server is None:
            self.notify("Choose one server on the left first: each server has a level of its own.")
        else:
            self._choose_level(self.host.server(server))

    def _choose_level(self, server: Connection) -> None:
        from mcphost.tui.logs.level import LevelScreen

        def take(level: LogLevel | None) -> None:
            if level is not None:
                self.run_worker(self._set_level(server, level))

        self.push_screen(LevelScreen(server.name, server.level), take)

    async def _set_level(self, server: Connection, level: LogLevel) -> None:
        try:
            await server.set_level(level)
        except McphostError as error:
            self.notify(show(f"The level stays: {error}"), severity="error", markup=False)
        else:
            self.notify(f"{server.name} now sends {level.wire} and above.", markup=False)
