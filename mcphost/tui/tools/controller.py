"""Shows, repeats, compares and cancels calls, and opens their tools again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from textual.app import App

from mcphost.errors import ConfigError
from mcphost.host.catalog import CatalogTool
from mcphost.host.history.past_call import PastCall, masked_paths, recalled, without_masked
from mcphost.host.host import Host
from mcphost.host.pinned_tools import PinnedTools
from mcphost.host.tool_calls.call import ArgumentReferences, ToolCall
from mcphost.protocol.display import show_line
from mcphost.tui.kit.clock import clock_text, date_text
from mcphost.tui.kit.messages import CallChosen, CancelRequested
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.main.updater import MainScreenUpdater
from mcphost.tui.tools.call_list import Call, CallList, server_of, tool_of
from mcphost.tui.tools.pane import ToolList

NOT_OFFERED = "No server offers this tool now."


class ToolsController:
    """Acts for all panes of ``app`` that name calls, on ``host``."""

    def __init__(
        self, app: App[Any], host: Host, main: MainScreen, updater: MainScreenUpdater, pinned: PinnedTools
    ) -> None:
        self._app, self._host, self._main, self._updater, self._pinned = app, host, main, updater, pinned

    async def on_main_screen_complete(self, _: MainScreen.Complete) -> None:
        """List the pinned tools first, and those that were used last, also in earlier runs."""
        self._main.tools.list.show_favorites(pinned=await self._pinned.load())
        self._main.tools.show_used(await self._host.history.last_used())

    async def on_tool_list_pin_toggled(self, event: ToolList.PinToggled) -> None:
        await self._pinned.set(event.key, pinned=event.pinned)

    async def open_tool(
        self,
        entry: CatalogTool,
        arguments: Mapping[str, Any] | None = None,
        references: ArgumentReferences | None = None,
    ) -> None:
        self._main.action_go("tools")
        await self._main.tools.open_tool(entry, arguments, references)

    async def on_call_chosen(self, event: CallChosen) -> None:
        await self.open_call(event.number)

    async def open_call(self, number: int) -> None:
        call = self._host.tool_calls.calls.get(number)
        if call is None:
            self._warn(f"Call {number} is no longer kept.")
        else:
            await self._show(call)

    async def on_call_list_past_chosen(self, event: CallList.PastChosen) -> None:
        await self._show(recalled(event.call, await self._result_of(event.call)))

    async def on_call_list_run_requested(self, event: CallList.RunRequested) -> None:
        """Run the tool of a call with the same arguments; if some are masked, open its form."""
        call = event.call
        if isinstance(call, PastCall):
            if call.argument_text is None or masked_paths(call.arguments):
                await self._open_form(call)
                return
            call = recalled(call, None)
        await self._show(self._host.tool_calls.repeat(call))

    async def on_call_list_repeat_requested(self, event: CallList.RepeatRequested) -> None:
        await self._open_form(event.call)

    async def on_call_list_comparison_requested(self, event: CallList.ComparisonRequested) -> None:
        """Show what differs between two results, the earlier one first."""
        from mcphost.tui.kit.reader import ReaderScreen
        from mcphost.tui.tools.result_difference import difference_spans, difference_text

        first, second = sorted(event.calls, key=lambda call: call.time)
        results = [await self._result_of(call) for call in (first, second)]
        before, after = results
        if before is None or after is None:
            self._warn("One of the results can no longer be read.")
            return
        names = _name(first), _name(second)
        text = await asyncio.to_thread(difference_text, before, after, names)
        title = f"{server_of(first)} › {show_line(tool_of(first), 60)} · {names[0]} and {names[1]}"
        self._app.push_screen(ReaderScreen(title, text, spans=difference_spans))

    def on_cancel_requested(self, event: CancelRequested) -> None:
        call = self._host.tool_calls.calls.get(event.number)
        if call is not None:
            call.cancel()
            self._updater.top_line()

    async def _show(self, call: ToolCall) -> None:
        self._main.action_go("tools")
        await self._main.tools.show_call(call)

    async def _open_form(self, call: Call) -> None:
        """Open the tool of a call with the same arguments, without those that are masked."""
        entry = self._entry_of(call)
        if entry is None:
            self._warn(NOT_OFFERED)
            return
        if isinstance(call, ToolCall):
            await self.open_tool(entry, call.arguments, call.request.references)
            return
        arguments, masked = without_masked(call.arguments)
        if call.argument_text is None:
            self._warn("The arguments of this call were too large to keep.")
        elif masked:
            names = ", ".join(show_line(path, 60) for path in masked[:5])
            self._warn(f"Write again what the history masks: {names}{' …' if len(masked) > 5 else ''}")
        await self.open_tool(entry, arguments)

    async def _result_of(self, call: Call) -> Mapping[str, Any] | None:
        if isinstance(call, ToolCall):
            return None if call.outcome is None else call.outcome.raw
        try:
            return await self._host.history.result(call)
        except ConfigError as error:
            self._warn(f"The result cannot be read: {error}")
            return None

    def _entry_of(self, call: Call) -> CatalogTool | None:
        tools = self._host.catalog.tools(server_of(call))
        return next((each for each in tools if each.tool.name == tool_of(call)), None)

    def _warn(self, text: str) -> None:
        self._app.notify(text, severity="warning", markup=False)


def _name(call: Call) -> str:
    return f"call {call.number}" if isinstance(call, ToolCall) else f"{date_text(call.time)} {clock_text(call.time)}"
