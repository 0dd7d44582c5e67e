"""Opens the dialog for roots, and updates it when they change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from textual.app import App, SystemCommand
from textual.worker import Worker

from mcphost.host.events import Event, RootsChanged
from mcphost.host.host import Host
from mcphost.host.server_requests.folders import suggestions
from mcphost.protocol.display import show_line
from mcphost.tui.consent.origin import QuestionOrigin
from mcphost.tui.kit.messages import RootsRequested
from mcphost.tui.textual_private.corrections import KeyOrder


class RootsController:
    """Acts for the roots screen of ``app`` on ``host``."""

    def __init__(self, app: App[Any], keys: KeyOrder, host: Host) -> None:
        self._app, self._keys, self._host = app, keys, host
        self._checking: Worker[None] | None = None

    def on_roots_requested(self, event: RootsRequested) -> None:
        self.show(event.server)

    def show(self, server: str | None) -> None:
        """Let the user choose the roots of this server; None: of every server."""
        opening: Worker[None] = self._app.run_worker(partial(self._show, server), group="roots", exclusive=True)
        self._keys.wait_for(opening)

    def check(self) -> None:
        """Check that the roots still exist: the user may have moved folders in another terminal."""
        if self._checking is None or self._checking.is_finished:
            self._checking = self._app.run_worker(self._host.roots.check(), group="check-roots")

    def changed(self, events: Iterable[Event]) -> None:
        """Update open screens."""
        if not any(isinstance(event, RootsChanged) for event in events):
            return
        from mcphost.tui.roots.screen import RootsScreen

        for screen in self._app.screen_stack:
            if isinstance(screen, RootsScreen) and screen.is_attached:
                screen.refresh_seen()

    def commands(self) -> Iterator[SystemCommand]:
        about = "Choose the folders it may use"
        yield SystemCommand("Roots of all servers", about, lambda: self.show(None))
        for name in self._host.servers:
            yield SystemCommand(f"Roots of “{show_line(name, 60)}”", about, lambda name=name: self.show(name))

    async def _show(self, server: str | None) -> None:
        from mcphost.tui.roots.screen import RootsScreen

        here = Path.cwd()
        suggested = await asyncio.to_thread(suggestions, here)
        await self._host.roots.check()
        if len(self._app.screen_stack) == 1:
            origin = QuestionOrigin("all servers" if server is None else show_line(server, 60), "", "")
            await self._app.push_screen(RootsScreen(self._host, server, origin, here, suggested))
