"""What the user wants of tasks, done by the host: list them, stop one, show what one brought.

Knows the host and the screens. Refuses to decide: asking is the user's, what a server lets be done is the host's.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.worker import Worker

from mcphost.errors import CapabilityMissing, McphostError
from mcphost.host.host import Host
from mcphost.host.tool_calls.tasks import KeptTask, keeps_tasks
from mcphost.protocol.display import show, show_line
from mcphost.tui.main.screen import MainScreen

if TYPE_CHECKING:
    from mcphost.tui.tasks.screen import TasksScreen

    _App = App[Any]
else:
    _App = object


class TaskWishes(_App):
    """The app's ear for these wishes."""

    host: Host
    main: MainScreen

    def on_main_screen_tasks_wanted(self, event: MainScreen.TasksWanted) -> None:
        """Open the list of tasks."""
        self.show_tasks(event.server)

    def show_tasks(self, server: str | None = None) -> None:
        """Open the list of the tasks that this server keeps, or all do."""
        from mcphost.tui.tasks.screen import TasksScreen

        if len(self.screen_stack) == 1:
            self.push_screen(TasksScreen(server))

    def on_tasks_screen_list_wanted(self, event: TasksScreen.ListWanted) -> None:
        """List them again."""
        self._list_tasks(event.screen)

    def on_tasks_screen_cancel_wanted(self, event: TasksScreen.CancelWanted) -> None:
        """Stop one, and look again."""
        self.run_worker(self._stop_task(event.screen, event.kept), group="stop-task")

    async def on_tasks_screen_result_wanted(self, event: TasksScreen.ResultWanted) -> None:
        """Show the call that waits for it or has its result already; else collect it."""
        call = event.kept.call
        if call is None or (call.state.ended and call.outcome is None):
            call = self.host.collect_task(*event.kept.key)
        event.screen.dismiss()
        self.main.action_go("tools")
        await self.main.tools.show_call(call)

    def _list_tasks(self, screen: TasksScreen) -> None:
        _: Worker[None] = self.run_worker(partial(self._tell_tasks, screen), group="list-tasks", exclusive=True)

    async def _tell_tasks(self, screen: TasksScreen) -> None:
        servers = self.host.servers
        all_of_them = [name for name, connection in servers.items() if keeps_tasks(connection)]
        names = all_of_them if screen.server is None else [screen.server]
        found = await asyncio.gather(*map(self._tasks_of, names))
        remarks = [remark for _, remark in found if remark]
        if not names:
            remarks = ["No server that is ready keeps tasks: they are a matter of revision 2025-11-25."]
        if screen.is_attached:
            screen.show_tasks([each for kept, _ in found for each in kept], remarks)

    async def _tasks_of(self, server: str) -> tuple[list[KeptTask], str]:
        """What a server tells of, else what this run knows; and why that may not be all."""
        try:
            listing = await self.host.list_tasks(server)
        except CapabilityMissing as error:
            why = f"{server} does not list its tasks: it declares no {error.capability}"
            return self.host.known_tasks(server), f"{why}. Those of this run are shown, as last told."
        except McphostError as error:
            return self.host.known_tasks(server), f"{server}: {error}"
        odd = [listing.notice] if listing.notice else []
        odd += [f"{len(listing.rejected)} were left out: {listing.rejected[0].reason}"] if listing.rejected else []
        return self.host.known_tasks(server, listing.items), f"{server}: {'; '.join(odd)}" if odd else ""

    async def _stop_task(self, screen: TasksScreen, kept: KeptTask) -> None:
        try:
            task = await self.host.cancel_task(*kept.key)
        except McphostError as error:
            self.notify(show(f"Not cancelled: {error}", limit=400), severity="warning", markup=False)
        else:
            self.notify(f"The task is {show_line(task.status, 40)}.", markup=False)
        self._list_tasks(screen)
