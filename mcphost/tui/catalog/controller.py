"""Follows links to resources, and goes back from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from textual.app import App
from textual.widgets import TabbedContent
from textual.worker import Worker

from mcphost.host.catalog import CatalogPrompt, CatalogSkill, CatalogTemplate
from mcphost.tui.kit.messages import ResourceLinkFollowed
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.textual_private.corrections import KeyOrder


class CatalogController:
    def __init__(self, app: App[Any], keys: KeyOrder, main: MainScreen) -> None:
        self._app, self._keys, self._main = app, keys, main

    def on_resource_link_followed(self, event: ResourceLinkFollowed) -> None:
        self.open(event.server, event.uri, event.size)

    def open(self, server: str, uri: str, size: int | None = None) -> None:
        """Go to a resource that something linked to; ``size`` in bytes, if the link said so."""
        back = self._way_back()
        self._main.query_one(TabbedContent).active = "resources"
        work = partial(self._open, server, uri, size, back)
        opening: Worker[None] = self._app.run_worker(work, group="open", exclusive=True)
        self._keys.wait_for(opening)

    async def choose_prompt(self, entry: CatalogPrompt, values: Mapping[str, str] | None = None) -> None:
        """Ask for a prompt's arguments, filled in with ``values``; without any, get it."""
        self._main.query_one(TabbedContent).active = "prompts"
        await (await self._main.prompts_pane()).choose_filled(entry, values)

    async def choose_template(self, entry: CatalogTemplate, values: Mapping[str, str] | None = None) -> None:
        self._main.query_one(TabbedContent).active = "resources"
        await (await self._main.resources_pane()).choose_filled(entry, values)

    async def choose_skill(self, entry: CatalogSkill) -> None:
        """Go to a skill, and read its SKILL.md."""
        self._main.query_one(TabbedContent).active = "skills"
        await (await self._main.skills_pane()).choose(entry)

    async def _open(self, server: str, uri: str, size: int | None, back: Callable[[], None] | None) -> None:
        pane = await self._main.resources_pane()
        pane.remember_way_back(back)
        pane.open_resource(server, uri, size)

    def _way_back(self) -> Callable[[], None] | None:
        """Return a function that goes back to the focused widget; None while resources are open."""
        tabs, focused = self._main.query_one(TabbedContent), self._main.focused
        tab = tabs.active

        def back() -> None:
            if focused is None or not focused.is_attached:
                self._main.action_go(tab)
                return
            tabs.active = tab
            focused.focus()

        return back if tab != "resources" else None
