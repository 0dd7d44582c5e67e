"""The tasks that servers keep: lists, collects and cancels them, and finds the calls of this run that began them.

Specification: basic/utilities/tasks (2025-11-25 only); extensions/tasks (from 2026-07-28 on).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mcphost.client.client import Client
from mcphost.client.paging import ListedItems, Rejected
from mcphost.config import ServerConfig
from mcphost.errors import CapabilityMissing, CapabilityWithheld, InvalidResult, McphostError, ServerError
from mcphost.host.audited_requests import AuditedRequests
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.servers import Servers
from mcphost.host.tool_calls.call import CallRequest, ToolCall
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.host.tool_calls.started_tasks import StartedTask, StartedTasks
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.extensions import TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import has_extension, offers
from mcphost.protocol.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from mcphost.protocol.models.tasks import Task


@dataclass(frozen=True, slots=True)
class KeptTask:
    """A task as its server last reported it; ``call`` is None if another run or another client began it."""

    server: str
    task: Task
    call: ToolCall | None = None
    started: StartedTask | None = None
    """The record of its start; None if it was not recorded."""

    @property
    def key(self) -> tuple[str, str]:
        """Unique among all tasks."""
        return self.server, self.task.task_id

    @property
    def tool(self) -> str | None:
        """The tool, if mcphost began the task: servers do not say."""
        if self.call is not None:
            return self.call.request.tool
        return None if self.started is None else self.started.tool


def keeps_tasks(connection: Connection) -> bool:
    """True if this server declared tasks in its session."""
    session = connection.session
    if session is None or not connection.ready:
        return False
    if session.revision.modern:
        return connection.client.tasks.offered
    return offers("tasks", session.server.capabilities, session.revision)


def tasks_withheld(connection: Connection) -> bool:
    """True if this server has tasks, but the configuration does not let it use them."""
    session = connection.session
    if session is None or not connection.ready or not session.revision.modern:
        return False
    return has_extension(TASKS_EXTENSION, session.server.capabilities) and not connection.client.tasks.offered


class TaskService:
    def __init__(
        self, servers: Servers, tool_calls: ToolCallService, requests: AuditedRequests, started: StartedTasks
    ) -> None:
        self._servers, self._tool_calls, self._requests, self._started = servers, tool_calls, requests, started

    async def listed(self, server: str) -> ListedItems[Task]:
        """The tasks a server keeps, those of earlier runs included: all of them if it lists them, else those that were
        begun here.

        Raises UnknownName, CapabilityMissing where it lists none (CapabilityWithheld: because it may not have any), or
        as a request does.
        """
        connection = self._servers[server]
        await self._requests.reach(connection)
        return await self._requests.repeat(connection, "the list of tasks", lambda: self._list(connection))

    def known(self, server: str, tasks: Iterable[Task] | None = None) -> list[KeptTask]:
        """These tasks (None: those of this run, as last reported), each with the call that began it."""
        begun: dict[str, ToolCall] = {}
        for call in self._tool_calls.calls.values():
            # Who only collects a task is not the one who began it.
            if call.task is not None and call.request.server == server and call.request.task is None:
                begun[call.task.task_id] = call
        told = [call.task for call in begun.values() if call.task is not None] if tasks is None else tasks
        config = self._servers[server].config
        return [
            KeptTask(server, task, begun.get(task.task_id), self._started.find(config, task.task_id)) for task in told
        ]

    def outlives(self, call: ToolCall) -> bool:
        """True if the task of this call can be collected in another run."""
        connection = self._servers.get(call.request.server)
        if connection is None or call.task is None:
            return False
        return self._started.keeps(connection.config, call.task.task_id)

    def collect(self, server: str, task: str, *, origin: str = "you") -> ToolCall:
        """Begin to wait for the result of any task, which goes on even if the wait ends. Returns at once."""
        begun = next((each.call for each in self.known(server) if each.task.task_id == task and each.call), None)
        arguments: Mapping[str, Any] = begun.arguments if begun else {}
        started = self._started.find(self._servers[server].config, task)
        tool = begun.request.tool if begun else started.tool if started else f"task {task}"
        return self._tool_calls.begin(CallRequest(server, tool, arguments, origin, task=task))

    async def cancel(self, server: str, task: str, *, origin: str = "you") -> Task:
        """Stop any task by its id; return its new state. A call that waits for it ends as cancelled."""
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

    async def _list(self, connection: Connection) -> ListedItems[Task]:
        client, config = connection.client, connection.config
        if client.tasks.listable:
            return await client.tasks.list()
        if not client.tasks.offered:
            raise (CapabilityWithheld if tasks_withheld(connection) else CapabilityMissing)(
                "tasks/get", TASKS_EXTENSION
            )
        found = await asyncio.gather(*(self._look(client, config, each.id) for each in self._started.tasks_of(config)))
        rejected = [each for each in found if isinstance(each, Rejected)]
        return ListedItems([each for each in found if each is not None and not isinstance(each, Rejected)], rejected)

    async def _look(self, client: Client, config: ServerConfig, task: str) -> Task | Rejected | None:
        """The present state of a task that was begun here; None if its server does not know it any more."""
        try:
            return await client.tasks.get(task)
        except InvalidResult as error:
            return Rejected(task, str(error))
        except ServerError as error:
            if error.code != ErrorCode.INVALID_PARAMS:
                return Rejected(task, str(error))
        await self._started.forget(config, task)
        return None
