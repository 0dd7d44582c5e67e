"""What tasks are in each era: how they begin, when they are done, and where their result is.

`CoreTasks` are those of the core protocol, which the client asks for. `ExtensionTasks` are those of the extension of
later revisions: the server decides which calls become one, and each status holds what the task needs or brought.

Specification: basic/utilities/tasks (2025-11-25 only); extensions/tasks (from 2026-07-28 on).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from mcphost.client.deadlines import TimeBudget
from mcphost.client.requests import ProgressCallback, RequestTimeouts
from mcphost.client.rounds import RoundCallback
from mcphost.errors import ServerError
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.results import ServerInput, TaskStarted
from mcphost.protocol.lifecycle.revisions import TASK_CALLS, TASKS_EXTENSION, has_extension, offers
from mcphost.protocol.models.tasks import CreateTaskResult, ExtensionTask, Task
from mcphost.protocol.models.tools import CallToolResult, TaskSupport, Tool

if TYPE_CHECKING:
    from mcphost.client.client import Client


@dataclass(frozen=True, slots=True)
class TaskCall:
    """A tool call that may become a task."""

    name: str
    arguments: Mapping[str, Any] | None
    ttl: int
    """Milliseconds for which the server is asked to keep the task, if it is asked."""
    token: str
    """Identifies progress, where that outlives the request."""
    timeouts: RequestTimeouts
    budget: TimeBudget
    """What ``timeouts.hard`` leaves for the task, once a call has become one."""
    on_progress: ProgressCallback
    on_round: RoundCallback

    @property
    def params(self) -> dict[str, Any]:
        return {"name": self.name} | ({} if self.arguments is None else {"arguments": self.arguments})


class TaskRules(Protocol):
    """The tasks of one session. Methods that send raise as `mcphost.client.client.Client.request` does."""

    asked_for: bool
    """Does the client ask for a task? If not, a call is one like any other until the server answers with a task."""

    @property
    def offered(self) -> bool:
        """Can tool calls become tasks?"""

    def applies_to(self, tool: Tool, *, preferred: bool) -> bool:
        """Should this tool be called so that it can become a task?"""

    async def begin(self, call: TaskCall) -> Task | CallToolResult:
        """Call the tool."""

    def read(self, status: object) -> Task:
        """The status of a task. Raises InvalidResult."""

    def inputs(self, task: Task) -> Mapping[str, ServerInput]:
        """What the task needs to have sent with ``tasks/update``. Raises InvalidResult."""

    def is_due(self, task: Task) -> bool:
        """Is it time for the result?"""

    def seconds_left(self, task: Task, since: float | None) -> float:
        """For how long the server keeps the task, which was begun at ``since`` (None: as the server says)."""

    async def result(self, task: Task, timeouts: RequestTimeouts) -> CallToolResult:
        """The result of a task that is due and was not cancelled."""

    async def cancelled(self, task_id: str, answer: Mapping[str, Any]) -> Task:
        """The status after this answer to ``tasks/cancel``."""


class CoreTasks:
    """The tasks of 2025-11-25."""

    asked_for = True

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def offered(self) -> bool:
        session = self._client.open_session
        return offers(TASK_CALLS, session.server.capabilities, session.revision)

    def applies_to(self, tool: Tool, *, preferred: bool) -> bool:
        support = tool.task_support
        return support is TaskSupport.REQUIRED or (preferred and support is TaskSupport.OPTIONAL)

    async def begin(self, call: TaskCall) -> Task | CallToolResult:
        params = call.params | {"task": {"ttl": call.ttl}, "_meta": {"progressToken": call.token}}
        result = await self._client.request("tools/call", params, timeouts=call.timeouts)
        return CreateTaskResult.read(result).task if "task" in result else self._client.tool_result(result)

    def read(self, status: object) -> Task:
        return Task.read(status)

    def inputs(self, task: Task) -> Mapping[str, ServerInput]:
        return {}

    def is_due(self, task: Task) -> bool:
        return task.ended or task.wants_input

    def seconds_left(self, task: Task, since: float | None) -> float:
        return math.inf

    async def result(self, task: Task, timeouts: RequestTimeouts) -> CallToolResult:
        # A task that needs input sends its requests on the stream of this request.
        waiting = RequestTimeouts(timeouts.hard, timeouts.hard) if task.wants_input else timeouts
        result = await self._client.request("tasks/result", {"taskId": task.task_id}, timeouts=waiting)
        found = self._client.tool_result(result)
        if task.status == "failed" and not found.is_error:
            raise task.failed_without_error({name: each for name, each in result.items() if name != "_meta"})
        return found

    async def cancelled(self, task_id: str, answer: Mapping[str, Any]) -> Task:
        return Task.read(answer)


class ExtensionTasks:
    """The tasks of the extension."""

    asked_for = False

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def offered(self) -> bool:
        sides = self._client.open_session.server.capabilities, self._client.declared
        return all(has_extension(TASKS_EXTENSION, capabilities) for capabilities in sides)

    def applies_to(self, tool: Tool, *, preferred: bool) -> bool:
        return True

    async def begin(self, call: TaskCall) -> Task | CallToolResult:
        read = await self._client.exchange(
            "tools/call",
            call.params,
            timeouts=call.timeouts,
            on_progress=call.on_progress,
            on_round=call.on_round,
            budget=call.budget,
        )
        return self.read(read.task) if isinstance(read, TaskStarted) else self._client.tool_result(read.result)

    def read(self, status: object) -> ExtensionTask:
        return ExtensionTask.read(status)

    def inputs(self, task: Task) -> Mapping[str, ServerInput]:
        assert isinstance(task, ExtensionTask)
        return task.inputs

    def is_due(self, task: Task) -> bool:
        return task.ended

    def seconds_left(self, task: Task, since: float | None) -> float:
        if task.ttl is None:
            return math.inf
        now = time.time()
        if since is None:
            since = now if task.created is None else min(task.created.timestamp(), now)
        return since + task.ttl / 1000 - now

    async def result(self, task: Task, timeouts: RequestTimeouts) -> CallToolResult:
        assert isinstance(task, ExtensionTask)
        if task.status == "failed":
            code, message, data = task.failure
            raise ServerError(code, message, data, method="tools/call")
        return self._client.tool_result(task.outcome)

    async def cancelled(self, task_id: str, answer: Mapping[str, Any]) -> Task:
        # The answer only says that the server got the request, and it may forget the task at once.
        try:
            return await self._client.tasks.get(task_id)
        except ServerError:
            return self.read({"taskId": task_id, "status": "cancelled"})
