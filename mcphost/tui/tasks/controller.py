"""Lists the tasks of servers, cancels them, and shows their results."""

from __future__ import annotations

import asyncio
from typing import Any

from textual.app import App

from mcphost.errors import CapabilityMissing, CapabilityWithheld, McphostError
from mcphost.host.failure_advice import next_step
from mcphost.host.host import Host
from mcphost.host.tool_calls.tasks import KeptTask, keeps_tasks
from mcphost.protocol.display import show
from mcphost.tui.main.screen import MainScreen


class TasksController:
    """Acts for the tasks screen of ``app`` on ``host``."""

    def __init__(self, app: App[Any], host: Host, main: MainScreen) -> None:
        self._app, self._host, self._main = app, host, main

    def on_main_screen_tasks_requested(self, event: MainScreen.TasksRequested) -> None:
        """List the tasks of a server; None: of all servers."""
        from mcphost.tui.tasks.screen import TasksScreen

        if len(self._app.screen_stack) == 1:
            self._app.push_screen(TasksScreen(self, event.server))

    async def fetch(self, server: str | None) -> tuple[list[KeptTask], list[str]]:
        """Return the tasks of this server (None: of all), and why there may be more."""
        servers = self._host.servers
        all_of_them = [name for name, connection in servers.items() if keeps_tasks(connection)]
        names = all_of_them if server is None else [server]
        found = await asyncio.gather(*map(self._tasks_of, names))
        remarks = [remark for _, remark in found if remark]
        if not names:
            remarks = ["No ready server keeps tasks; they need protocol revision 2025-11-25 or the tasks extension."]
        return [each for kept, _ in found for each in kept], remarks

    async def cancel(self, kept: KeptTask) -> None:
        """Cancel a task; the list shows its new state."""
        try:
            await self._host.tasks.cancel(*kept.key)
        except McphostError as error:
            self._app.notify(show(f"Not cancelled: {error}", limit=400), severity="warning", markup=False)

    async def show_result(self, kept: KeptTask) -> None:
        """Show the call that waits for the task's result or has it; else fetch the result."""
        call = kept.call
        if call is None or (call.state.ended and call.outcome is None):
            call = self._host.tasks.collect(*kept.key)
        self._main.action_go("tools")
        await self._main.tools.show_call(call)

    async def _tasks_of(self, server: str) -> tuple[list[KeptTask], str]:
        """Return the tasks that a server lists, else those known from this run, and why there may be more."""
        try:
            listing = await self._host.tasks.listed(server)
        except CapabilityWithheld as error:
            return self._host.tasks.known(server), f"{server}: {error}. {next_step(error, server)}"
        except CapabilityMissing as error:
            why = f"{server} does not list its tasks: it declares no {error.capability}"
            return self._host.tasks.known(server), f"{why}. Those of this run are shown, in their last known state."
        except McphostError as error:
            return self._host.tasks.known(server), f"{server}: {error}"
        notices = [listing.notice] if listing.notice else []
        notices += [f"{len(listing.rejected)} were left out: {listing.rejected[0].reason}"] if listing.rejected else []
        return self._host.tasks.known(server, listing.items), f"{server}: {'; '.join(notices)}" if notices else ""
