"""What the user wants of calls, done by the host: run a tool, look at a call, run it again, stop it.

Knows the host and the panes. Refuses to decide: each call is asked about before it is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.app import App

from mcphost.host.catalog import OfferedTool
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import ToolCall
from mcphost.tui.logs.pane import LogsPane
from mcphost.tui.main.refresh import Showing
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.tools.call_list import CallList
from mcphost.tui.tools.pane import ToolsPane

if TYPE_CHECKING:
    from mcphost.tui.results.view import ResultView
    from mcphost.tui.traffic.pane import TrafficPane

    _App = App[Any]
else:
    _App = object


class CallWishes(_App):
    """The app's ear for these wishes."""

    host: Host
    main: MainScreen
    showing: Showing

    async def on_tools_pane_run_wanted(self, event: ToolsPane.RunWanted) -> None:
        """Run a tool, and show how it goes."""
        call = self.host.call_tool(event.offered.server, event.offered.tool.name, event.arguments)
        await self.main.tools.show_call(call)

    # Look at one.

    async def on_call_list_chosen(self, event: CallList.Chosen) -> None:
        """Show a call of the list."""
        await self.open_call(event.number)

    async def on_logs_pane_call_wanted(self, event: LogsPane.CallWanted) -> None:
        """Show the call in which a line was said."""
        await self.open_call(event.number)

    async def on_traffic_pane_call_wanted(self, event: TrafficPane.CallWanted) -> None:
        """Show the call that a frame belongs to."""
        await self.open_call(event.number)

    async def open_call(self, number: int) -> None:
        """Show a call with its whole result."""
        call = self.host.calls.get(number)
        if call is None:
            self.notify(f"Call {number} is no longer kept.", severity="warning")
            return
        self.main.action_go("tools")
        await self.main.tools.show_call(call)

    # Run it again, stop it.

    async def on_call_list_again_wanted(self, event: CallList.AgainWanted) -> None:
        """Open its tool with the same arguments."""
        call = self.host.calls.get(event.number)
        offered = self._offered(call) if call is not None else None
        if call is None or offered is None:
            self.notify("No server offers this tool now.", severity="warning")
            return
        self.main.action_go("tools")
        await self.main.tools.open_tool(offered, call.arguments)

    def _offered(self, call: ToolCall) -> OfferedTool | None:
        tools = self.host.catalog.tools(call.request.server)
        return next((each for each in tools if each.tool.name == call.request.tool), None)

    def on_call_list_cancel_wanted(self, event: CallList.CancelWanted) -> None:
        """Stop a call from the list."""
        self._cancel(event.number)

    def on_result_view_cancel_wanted(self, event: ResultView.CancelWanted) -> None:
        """Stop the call that is shown."""
        self._cancel(event.number)

    def _cancel(self, number: int) -> None:
        call = self.host.calls.get(number)
        if call is not None:
            call.cancel()
            self.showing.top_line()
