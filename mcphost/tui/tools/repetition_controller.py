"""Repeats calls, stops that, and shows how their answers changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

from textual.app import App, SystemCommand

from mcphost.host.host import Host
from mcphost.host.tool_calls.call import CallRequest
from mcphost.host.tool_calls.repeated_calls import MOST_AT_ONCE, RepeatedCall
from mcphost.protocol.display import show_line
from mcphost.tui.kit.bindings import hint_key
from mcphost.tui.kit.messages import RepetitionRequested
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.tools.pane import ToolsPane

FIRST_SECONDS = 5.0
"""Seconds that are proposed before the user chose others."""


class RepetitionController:
    """Acts for ``app`` on ``host``."""

    def __init__(self, app: App[Any], host: Host, main: MainScreen) -> None:
        self._app, self._host, self._main = app, host, main
        self._seconds = FIRST_SECONDS

    def on_repetition_requested(self, event: RepetitionRequested) -> None:
        """Ask how often."""
        from mcphost.tui.tools.repetition_seconds import RepetitionScreen

        if self._host.repeated_calls.possible:
            self._app.push_screen(RepetitionScreen(event, self._seconds), partial(self._begin, event))
        else:
            key = hint_key(self._main, "app.palette", "ctrl+p")
            words = f"{MOST_AT_ONCE} calls are repeated already. Stop one of them first; {key} lists them."
            self._app.notify(words, severity="warning")

    def _begin(self, event: RepetitionRequested, seconds: float | None) -> None:
        if seconds is not None:
            self._seconds = seconds
            self._app.call_later(self._repeat, event, seconds)

    async def _repeat(self, event: RepetitionRequested, seconds: float) -> None:
        request = CallRequest(
            event.server, event.tool, event.arguments, references=event.references, recalled=event.recalled
        )
        await self._show(self._host.repeated_calls.begin(request, seconds))

    async def _show(self, repeated: RepeatedCall) -> None:
        call = repeated.ended_call or repeated.call
        if call is not None:
            self._main.action_go("tools")
            await self._main.tools.show_call(call)

    def on_tools_pane_stop_requested(self, event: ToolsPane.StopRequested) -> None:
        self._host.repeated_calls.stop(event.repeated)

    async def on_tools_pane_difference_requested(self, event: ToolsPane.DifferenceRequested) -> None:
        """Show the last two answers that follow each other and differ."""
        from mcphost.tui.kit.reader import ReaderScreen
        from mcphost.tui.tools.result_difference import difference_spans, difference_text

        difference = event.repeated.difference
        if difference is None:
            return
        before, after = difference
        names = f"run {before.run}", f"run {after.run}"
        text = await asyncio.to_thread(difference_text, before.result, after.result, names)
        request = event.repeated.request
        title = f"{request.server} › {show_line(request.tool, 60)} · {names[0]} and {names[1]}"
        self._app.push_screen(ReaderScreen(title, text, spans=difference_spans))

    def commands(self) -> Iterator[SystemCommand]:
        """Commands that show and stop what is repeated, for the palette."""
        for repeated in self._host.repeated_calls.going_on:
            name = f"{repeated.request.server} › {show_line(repeated.request.tool, 60)}"
            yield SystemCommand(f"Show the runs of {name}", f"It runs {repeated.words}", partial(self._show, repeated))
            stop = partial(self._host.repeated_calls.stop, repeated)
            yield SystemCommand(f"Stop repeating {name}", f"It runs {repeated.words}", stop)
