"""Shows and cancels calls, and opens their tools again."""

from __future__ import annotations

from typing import Any

from textual.app import App

from mcphost.host.catalog import CatalogTool
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import ToolCall
from mcphost.tui.kit.messages import CallChosen, CancelRequested
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.main.updater import MainScreenUpdater
from mcphost.tui.tools.call_list import CallList


class ToolsController:
    """Acts for all panes of ``app`` that name calls, on ``host``."""

    def __init__(self, app: App[Any], host: Host, main: MainScreen, updater: MainScreenUpdater) -> None:
        self._app, self._host, self._main, self._updater = app, host, main, updater

    async def open_tool(self, entry: CatalogTool) -> None:
        self._main.action_go("tools")
        await self._main.tools.open_tool(entry)

    async def on_call_chosen(self, event: CallChosen) -> None:
        await self.open_call(event.number)

    async def open_call(self, number: int) -> None:
        call = self._host.tool_calls.calls.get(number)
        if call is None:
            self._app.notify(f"Call {number} is no longer kept.", severity="warning")
            return
        self._main.action_go("tools")
        await self._main.tools.show_call(call)

    async def on_call_list_repeat_requested(self, event: CallList.RepeatRequested) -> None:
        """Open the tool of a call with the same arguments."""
        call = self._host.tool_calls.calls.get(event.number)
        entry = self._entry_of(call) if call is not None else None
        if call is None or entry is None:
            self._app.notify("No server offers this tool now.", severity="warning")
            return
        self._main.action_go("tools")
        await self._main.tools.open_tool(entry, call.arguments)

    def on_cancel_requested(self, event: CancelRequested) -> None:
        call = self._host.tool_calls.calls.get(event.number)
        if call is not None:
            call.cancel()
            self._updater.top_line()

    def _entry_of(self, call: ToolCall) -> CatalogTool | None:
        tools = self._host.catalog.tools(call.request.server)
        return next((each for each in tools if each.tool.name == call.request.tool), None)
