"""Opens comparisons: adds copies of a server for both eras, observes them, and removes them again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from textual.app import App, SystemCommand

from mcphost.errors import McphostError
from mcphost.host.comparison.observation import PlannedCalls, SideObservation
from mcphost.host.comparison.sides import Sides, between, in_eras, without
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import ToolCall
from mcphost.protocol.display import show, show_line
from mcphost.protocol.models.tools import Tool

Pair = tuple[SideObservation, SideObservation]


class OpenComparison:
    """Two sides that are open as long as their screen is."""

    def __init__(self, host: Host, title: str, sides: Sides, servers: tuple[str, ...]) -> None:
        self._host, self.title, self.sides = host, title, sides
        self._names = {*servers, *(side.server for side in sides)}
        self._called: tuple[str, Mapping[str, Any]] | None = None

    @property
    def repeatable(self) -> ToolCall | None:
        """The latest call of one of the servers that are compared, whose arguments both sides can be sent."""
        calls = reversed(list(self._host.tool_calls.calls.values()))
        found = (call for call in calls if call.request.server in self._names and call.request.task is None)
        return next(found, None)

    @property
    def tools(self) -> list[Tool]:
        """The tools of both sides, by name; a tool of both as the first side defines it."""
        first, second = ({tool.name: tool for tool in self._host.servers[side.server].tools} for side in self.sides)
        return sorted((second | first).values(), key=lambda tool: tool.name)

    def arguments_of(self, tool: str) -> Mapping[str, Any] | None:
        """Those of the latest call, if it was of this tool."""
        latest = self.repeatable
        return latest.request.arguments if latest is not None and latest.request.tool == tool else None

    async def observe(self, progress: Callable[[str], None]) -> Pair:
        """Connect both sides anew, and list what they offer."""
        for side in self.sides:
            connection = self._host.servers[side.server]
            if connection.ready:
                connection.restart()
        return await self._host.comparison.observe(self.sides, None, progress)

    async def call(self, seen: Pair, tool: str, arguments: Mapping[str, Any], progress: Callable[[str], None]) -> Pair:
        """Call this tool on both sides; each asks for consent. Raises Declined.

        The answers join those of the calls before, if the arguments are the same.
        """
        again, self._called = self._called == (tool, arguments), (tool, arguments)
        found = await self._host.comparison.observe(self.sides, PlannedCalls(tool, lambda _: arguments), progress)
        pairs = zip(seen, found, strict=True)
        first, second = (replace(old, calls=(*old.calls, *new.calls) if again else new.calls) for old, new in pairs)
        return first, second


class ComparisonController:
    """Acts for the comparison screen of ``app`` on ``host``."""

    def __init__(self, app: App[Any], host: Host) -> None:
        self._app, self._host = app, host

    def commands(self) -> Iterator[SystemCommand]:
        """Yield what the command palette offers."""
        names = list(self._host.servers)
        for name in names:
            called = show_line(name, 60)
            about = "With the initialize handshake and without: what it offers, answers, and how fast"
            yield SystemCommand(f"Compare eras of “{called}”", about, lambda name=name: self.compare_eras(name))
            if len(names) > 1:
                about = "What both offer, answer, and how fast"
                yield SystemCommand(f"Compare “{called}” with …", about, lambda name=name: self.choose_other(name))

    def compare_eras(self, server: str) -> None:
        """Compare this server with itself in the other era."""
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
        from mcphost.tui.comparison.screen import OtherServerScreen

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
