"""Opens comparisons: adds copies of a server for both eras, and removes them again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand

from mcphost.config import Config
from mcphost.errors import McphostError
from mcphost.host.comparison.sides import Sides, between, in_eras, without
from mcphost.host.consent.locked_tools import lock_name, locked_entry
from mcphost.host.host import Host
from mcphost.json_values import as_dict
from mcphost.protocol.display import show, show_line
from mcphost.tui.servers.card import ServerCard

if TYPE_CHECKING:
    from mcphost.host.comparison.surface import Surface
    from mcphost.tui.comparison.screen import OpenComparison


class ComparisonController:
    """Acts for the comparison screen of ``app`` on ``host``."""

    def __init__(self, app: App[Any], host: Host) -> None:
        self._app, self._host = app, host

    def commands(self) -> Iterator[SystemCommand]:
        names = list(self._host.servers)
        for name in names:
            called = show_line(name, 60)
            about = "With the initialize handshake and without: what it offers, answers, and how fast"
            yield SystemCommand(f"Compare eras of “{called}”", about, lambda name=name: self.compare_eras(name))
            if len(names) > 1:
                about = "What both offer, answer, and how fast"
                yield SystemCommand(f"Compare “{called}” with …", about, lambda name=name: self.choose_other(name))

    def on_server_card_eras_requested(self, event: ServerCard.ErasRequested) -> None:
        self.compare_eras(event.server)

    async def on_server_card_lock_requested(self, event: ServerCard.LockRequested) -> None:
        """Show the changes of this server since the lock was written."""
        from mcphost.host.comparison.surface import surface_of
        from mcphost.tui.kit.reader import ReaderScreen

        connection, config = self._host.servers.get(event.server), self._host.config
        found = None if connection is None else surface_of(connection, entry=event.server)
        if found is None or config.policy.lock is None:
            return
        try:
            text = await asyncio.to_thread(_changes_since, config, event.server, found)
        except McphostError as error:
            self._app.notify(show(f"Not compared: {error}", limit=400), severity="warning", markup=False)
            return
        if len(self._app.screen_stack) == 1:
            title = f"{show_line(event.server, 60)} since {show_line(lock_name(config), 60)}"
            self._app.push_screen(ReaderScreen(title, self._host.comparison.mask(text)))

    def compare_eras(self, server: str) -> None:
        """Compare this server with itself in the other era."""
        from mcphost.tui.comparison.screen import OpenComparison

        try:
            config, sides = in_eras(self._host.config, server)
        except McphostError as error:
            self._app.notify(show(f"Not compared: {error}", limit=400), severity="warning", markup=False)
            return

        async def begin() -> None:
            await self._host.apply(config)
            self._show(OpenComparison(self._host, f"{server} in both eras", sides, (server,)))

        if len(self._app.screen_stack) == 1:
            self._app.run_worker(begin(), group="comparison")

    def choose_other(self, server: str) -> None:
        """Let the user choose the server to compare this one with."""
        from mcphost.tui.comparison.screen import OpenComparison, OtherServerScreen

        others = [name for name in self._host.servers if name != server]

        def chosen(other: str | None) -> None:
            if other is not None:
                title = f"{server} with {other}"
                self._show(OpenComparison(self._host, title, between(server, other), (server, other)))

        if len(self._app.screen_stack) == 1:
            self._app.push_screen(OtherServerScreen(server, others), chosen)

    def _show(self, comparison: OpenComparison) -> None:
        from mcphost.tui.comparison.screen import ComparisonScreen

        def closed(_: None) -> None:
            # the app's worker, since the screen is gone, and a program may take seconds to end
            self._app.run_worker(self._remove(comparison.sides), group="comparison")

        self._app.push_screen(ComparisonScreen(comparison), closed)

    async def _remove(self, sides: Sides) -> None:
        """Remove the copies, if there are any."""
        config = without(self._host.config, sides)
        if config != self._host.config:
            await asyncio.shield(self._host.apply(config))


def _changes_since(config: Config, server: str, found: Surface) -> str:
    """The changes of a server since the lock of the policy was written, in words. Blocks; raises ConfigError."""
    from mcphost.host.comparison.findings import compare_surfaces, findings_text
    from mcphost.host.comparison.lock_file import full_path, read_full, surface_of_lock

    locked = locked_entry(config, server)
    if locked is None:
        return f"{lock_name(config)} has no server {server}. To add it: mcphost lock {server}"
    full = read_full(full_path(Path(config.policy.lock or "")))
    changes = findings_text(compare_surfaces(surface_of_lock(server, locked, as_dict(full.get(server))), found))
    return changes or f"{server} is as {lock_name(config)} says."
