"""The tasks that servers keep: lists, collects and cancels them, and finds the calls of this run that began them.

Specification: basic/utilities/tasks (2025-11-25 only).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcphost.client.paging import ListedItems
from mcphost.errors import McphostError
from mcphost.host.audited_requests import AuditedRequests
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.servers import Servers
from mcphost.host.tool_calls.call import CallRequest, ToolCall
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.protocol.lifecycle.revisions import offers

if TYPE_CHECKING:
    from mcphost.protocol.models.tasks import Task


@dataclass(frozen=True, slots=True)
class KeptTask:
    """A task as its server told of it last; ``call`` is None if it was begun in another run or by another client."""

    server: str
    task: Task
    call: ToolCall | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What tells it apart from every other."""
        return self.server, self.task.task_id

    @property
    def tool(self) -> str | None:
        """The tool, if this run began the task: servers do not say."""
        return None if self.call is None else self.call.request.tool


def keeps_tasks(connection: Connection) -> bool:
    """Did this server say, in its session, that it has tasks?"""
    session = connection.session
    return connection.ready and session is not None and offers("tasks", session.server.capabilities, session.revision)


def kept_tasks(server: str, told: Iterable[Task] | None, calls: Iterable[ToolCall]) -> list[KeptTask]:
    """The tasks a server told of, in its order, with their calls; None: those of these calls, as last told."""
    begun: dict[str, ToolCall] = {}
    for call in calls:
        # Who only collects a task is not the one who began it.
        if call.task is not None and call.request.server == server and call.request.task is None:
            begun[call.task.task_id] = call
    if told is None:
        return [KeptTask(server, call.task, call) for call in begun.values() if call.task is not None]
    return [KeptTask(server, task, begun.get(task.task_id)) for task in told]


class TaskService:
    """The tasks of all servers."""

    def __init__(self, servers: Servers, tool_calls: ToolCallService, requests: AuditedRequests) -> None:
        self._servers, self._tool_calls, self._requests = servers, tool_calls, requests

    async def listed(self, server: str) -> ListedItems[Task]:
        """List the tasks a server keeps, those of earlier runs included.

        Raises UnknownName, CapabilityMissing where it lists none, or as a request does.
        """
        connection = self._servers[server]
        await self._requests.reach(connection)
        return await self._requests.repeat(connection, "the list of tasks", lambda: connection.client.tasks.list())

    def known(self, server: str, tasks: Iterable[Task] | None = None) -> list[KeptTask]:
        """These tasks (None: those of this run, as last told), each with the call that began it."""
        return kept_tasks(server, tasks, self._tool_calls.calls.values())

    def collect(self, server: str, task: str, *, origin: str = "you") -> ToolCall:
        """Begin to wait for the result of a task, begun by whomever; it goes on where nobody waits. Returns at once."""
        begun = next((each.call for each in self.known(server) if each.task.task_id == task and each.call), None)
        arguments: Mapping[str, Any] = begun.arguments if begun else {}
        tool = begun.request.tool if begun else f"task {task}"
        return self._tool_calls.begin(CallRequest(server, tool, arguments, origin, task=task))

    async def cancel(self, server: str, task: str, *, origin: str = "you") -> Task:
        """Stop a task by its id, begun by whomever; how it stands now. A call that waits for it ends as cancelled."""
        waiting = [call for call in self._tool_calls.calls.values() if call.waits_for(server, task)]
        for call in waiting:
            call.stopping = True
        record = {"event": "task", "task": task, "status": "cancel"}
        try:
            return await self._requests.send(server, record, task, origin, lambda client: client.tasks.cancel(task))
        except McphostError:
            for call in waiting:
                call.stopping = False
            raise
