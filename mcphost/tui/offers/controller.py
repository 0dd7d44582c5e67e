"""What the user wants of resources and prompts, done: each wish becomes a command to the host, its outcome is shown.

Knows the host and the panes. Refuses to decide: asking is the user's, the order of steps is the host's.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from textual.app import App
from textual.widgets import TabbedContent

from mcphost.errors import Declined, McphostError
from mcphost.host.host import Host
from mcphost.protocol.display import show, show_line, size_text
from mcphost.tui.main.screen import MainScreen

if TYPE_CHECKING:
    from mcphost.protocol.models.tools import ReadResourceResult
    from mcphost.tui.kit.messages import ResourceLinkFollowed
    from mcphost.tui.offers.pane import OfferPane
    from mcphost.tui.offers.prompts import PromptsPane
    from mcphost.tui.offers.resources import ResourcesPane
    from mcphost.tui.results.reading import PaneReading

Answer = TypeVar("Answer")


class Offering:
    """Acts for ``app`` on ``host``. A read that nobody waits for any more, since another was wanted, is cancelled."""

    def __init__(self, app: App[Any], host: Host, main: MainScreen) -> None:
        self._app, self._host, self._main = app, host, main

    def read(self, wish: ResourcesPane.ReadWanted) -> None:
        """Read a resource and show it; ask first where it is said to be large."""

        async def work(pane: ResourcesPane) -> None:
            asked = self._read(wish.server, wish.uri, wish.size)
            await self._show(pane, wish.server, wish.uri, asked, lambda it, *brought: it.with_resource(*brought))

        self._begin("read", self._in_resources(work))

    def get(self, wish: PromptsPane.GetWanted) -> None:
        """Get a prompt and show it."""

        async def work() -> None:
            pane = await self._main.prompts_pane()
            asked = self._host.resources.get_prompt(wish.server, wish.prompt, wish.arguments)
            await self._show(pane, wish.server, wish.prompt, asked, lambda it, *brought: it.with_prompt(*brought))

        self._begin("get", work())

    def open(self, server: str, uri: str, size: int | None = None) -> None:
        """Go to a resource that something linked to, ``size`` bytes as far as that said."""

        async def work(pane: ResourcesPane) -> None:
            pane.come_from(here)
            pane.open_resource(server, uri, size)

        here = self._way_back()
        self._main.query_one(TabbedContent).active = "resources"
        self._begin("open", self._in_resources(work))

    def _way_back(self) -> Callable[[], None] | None:
        """To what has the focus now; None: that is where resources are read."""
        tabs, focused = self._main.query_one(TabbedContent), self._main.focused
        tab = tabs.active

        def back() -> None:
            if focused is None or not focused.is_attached:
                self._main.action_go(tab)
                return
            tabs.active = tab
            focused.focus()

        return back if tab != "resources" else None

    def watch(self, wish: ResourcesPane.WatchWanted) -> None:
        """Watch a resource, or no more."""
        self._app.run_worker(self._watch(wish), group="watch")

    def suggest(self, wish: OfferPane.SuggestWanted) -> None:
        """Fetch suggestions for a field, where the server has any."""
        if self._host.completion.offered(wish.server):
            self._app.run_worker(self._suggest(wish), group="suggest")

    def _begin(self, group: str, work: Awaitable[None]) -> None:
        self._app.run_worker(work, group=group, exclusive=True)

    async def _in_resources(self, work: Callable[[ResourcesPane], Awaitable[None]]) -> None:
        await work(await self._main.resources_pane())

    async def _read(self, server: str, uri: str, size: int | None) -> ReadResourceResult:
        if not await self._may_read(server, uri, size, "Read it?"):
            raise Declined("not read: you said no", by="user")
        return await self._host.resources.read(server, uri)

    async def _may_read(self, server: str, uri: str, size: int | None, question: str) -> bool:
        """Ask about a resource that is said to be large, by a link to it or in the list."""
        listed = self._host.catalog.resource(server, uri)
        said = max(size or 0, (listed.size if listed else 0) or 0)
        limits = self._host.config.limits_for(server)
        if said <= limits.resource_bytes:
            return True
        from mcphost.tui.kit.facts_table import fact
        from mcphost.tui.kit.modal import AskScreen

        facts = [
            fact("resource", show_line(uri, 500)),
            fact("size", f"{size_text(said)}, as {server} says"),
        ]
        if said > limits.message_bytes:
            most = f"A message may have {size_text(limits.message_bytes)} ([limits] message_bytes)"
            facts.append(fact("", f"{most}: one that holds all this is refused when it comes.", "$text-warning"))
        title = f"{server} says that this resource is large. {question}"
        return await self._app.push_screen_wait(AskScreen(title, facts, "go on")) is True

    async def _show(
        self,
        pane: OfferPane[Any],
        server: str,
        name: str,
        asked: Awaitable[Answer],
        made: Callable[[PaneReading, Answer, float], PaneReading],
    ) -> None:
        from mcphost.tui.results.reading import PaneReading

        began, reading = time.monotonic(), PaneReading(server, name)
        try:
            answer = await asked
        except McphostError as error:
            pane.show_reading(reading.with_error(error, time.monotonic() - began))
        else:
            pane.show_reading(made(reading, answer, time.monotonic() - began))

    async def _watch(self, wish: ResourcesPane.WatchWanted) -> None:
        try:
            if wish.on and not await self._may_read(wish.server, wish.uri, None, "Read it whenever it changes?"):
                return
            if wish.on:
                await self._host.resources.subscribe(wish.server, wish.uri)
            else:
                await self._host.resources.unsubscribe(wish.server, wish.uri)
        except McphostError as error:
            self._app.notify(show(f"Not watched: {error}"), severity="warning", markup=False)

    async def _suggest(self, wish: OfferPane.SuggestWanted) -> None:
        found = await self._host.completion.suggest(
            wish.server, wish.ref, wish.field.field_name, wish.value, wish.context
        )
        if found is not None:
            wish.field.suggest(wish.value, found)


class OfferWishes:
    """The app's ear for these wishes."""

    offering: Offering

    def on_resources_pane_read_wanted(self, event: ResourcesPane.ReadWanted) -> None:
        """Read a resource."""
        self.offering.read(event)

    def on_resources_pane_watch_wanted(self, event: ResourcesPane.WatchWanted) -> None:
        """Watch a resource, or no more."""
        self.offering.watch(event)

    def on_prompts_pane_get_wanted(self, event: PromptsPane.GetWanted) -> None:
        """Get a prompt."""
        self.offering.get(event)

    def on_offer_pane_suggest_wanted(self, event: OfferPane.SuggestWanted) -> None:
        """Suggest what might be typed."""
        self.offering.suggest(event)

    def on_resource_link_followed(self, event: ResourceLinkFollowed) -> None:
        """Read what an answer links to."""
        self.offering.open(event.server, event.uri, event.size)
