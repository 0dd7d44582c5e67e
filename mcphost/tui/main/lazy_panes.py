"""The panes of the main screen that are not seen at once: each is imported and made on first use, in its tab."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import TabPane

from mcphost.host.host import Host

if TYPE_CHECKING:
    from mcphost.tui.chat.pane import ChatPane
    from mcphost.tui.offers.prompts import PromptsPane
    from mcphost.tui.offers.resources import ResourcesPane
    from mcphost.tui.traffic.pane import TrafficPane

Made = TypeVar("Made", bound=Widget)


class LatePanes(Screen[None]):
    """A screen with tabs `resources`, `prompts`, `chat` and `traffic`, whose panes are None until they are made."""

    class PaneMade(Message):
        """A pane was made, and nothing is shown in it yet."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._making = asyncio.Lock()
        self.resources: ResourcesPane | None = None
        self.prompts: PromptsPane | None = None
        self.chat: ChatPane | None = None
        self.traffic: TrafficPane | None = None
        self.single = False
        """Does one part of a pane have to do at a time?"""

    async def resources_pane(self) -> ResourcesPane:
        async with self._making:
            if self.resources is None:
                from mcphost.tui.offers.resources import ResourcesPane

                self.resources = await self._made("resources", ResourcesPane(self._host, single=self.single))
        return self.resources

    async def prompts_pane(self) -> PromptsPane:
        async with self._making:
            if self.prompts is None:
                from mcphost.tui.offers.prompts import PromptsPane

                self.prompts = await self._made("prompts", PromptsPane(self._host, single=self.single))
        return self.prompts

    async def chat_pane(self) -> ChatPane:
        """The conversation with a model."""
        async with self._making:
            if self.chat is None:
                from mcphost.tui.chat.pane import ChatPane

                self.chat = await self._made("chat", ChatPane(self._host))
        return self.chat

    async def traffic_pane(self) -> TrafficPane:
        """The traffic; it reads its book by itself, so nobody need hear of it."""
        async with self._making:
            if self.traffic is None:
                from mcphost.tui.traffic.pane import TrafficPane

                self.traffic = await self._put("traffic", TrafficPane(self._host.traffic))
        return self.traffic

    async def _made(self, tab: str, pane: Made) -> Made:
        await self._put(tab, pane)
        if pane.is_attached:
            self.post_message(self.PaneMade())
        return pane

    async def _put(self, tab: str, widget: Made) -> Made:
        """In its tab, unless the screen is being taken down: its tabs go before it does."""
        for pane in self.query(f"#{tab}").results(TabPane):
            if pane.is_attached and not widget.is_attached:
                await pane.mount(widget)
        return widget
