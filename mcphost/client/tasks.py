"""Calls tools as tasks: starts, polls, collects and cancels them.

Tasks are polled; status notifications only speed that up.

Specification: basic/utilities/tasks (2025-11-25 only).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.paging import ListedItems
from mcphost.client.requests import ProgressCallback, RequestTimeouts
from mcphost.errors import InvalidResult, McphostError, RequestTimeout, TaskStopped
from mcphost.protocol.lifecycle.revisions import TASK_CALLS, offers
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tasks import CreateTaskResult, Task
from mcphost.protocol.models.tools import CallToolResult, TaskSupport, Tool

if TYPE_CHECKING:
    from mcphost.client.client import Client

POLL_SECONDS: Final = 1.0
"""Between two polls, if the server names no interval."""

LEAST_POLL_SECONDS: Final = 0.1
"""Between two polls at least, even if the server says 0."""

MOST_POLL_SECONDS: Final = 86_400.0

TaskCallback = Callable[[Task], None]


def new_token() -> str:
    """A progress token for a task. It stays valid until the task ends, across sessions."""
    return f"task-{secrets.token_hex(8)}"


class Tasks:
    """The tasks of one server. Every method raises as `mcphost.client.client.Client.request` does."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pending: dict[str, _PendingTask] = {}

    @property
    def offered(self) -> bool:
        """Does the server support tool calls as tasks? Raises ServerNotReady."""
        session = self._client.open_session
        return offers(TASK_CALLS, session.server.capabilities, session.revision)

    def applies_to(self, tool: Tool, *, preferred: bool = False) -> bool:
        """Should this tool be called as a task: because it must, or because it may and that is ``preferred``?"""
        if not self.offered:
            return False
        support = tool.task_support
        return support is TaskSupport.REQUIRED or (preferred and support is TaskSupport.OPTIONAL)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: int | None = None,
        token: str | None = None,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
        on_task: TaskCallback | None = None,
    ) -> CallToolResult:
        """Call a tool as a task with this ``ttl`` in milliseconds (default: ``timeouts.hard``), and wait for its end.

        ``on_task`` is called with every status; ``token`` identifies progress (see `new_token`). Cancelling the await,
        and ``timeouts.hard``, cancel the task. Raises TaskStopped if the server cancelled it.
        """
        timeouts, token = timeouts or RequestTimeouts(), token or new_token()
        params = {"name": name, "task": {"ttl": round(timeouts.hard * 1000) if ttl is None else ttl}}
        params |= {"_meta": {"progressToken": token}} | ({} if arguments is None else {"arguments": arguments})
        # A task of its own: after an early cancellation its result still tells which task to stop.
        begun = asyncio.ensure_future(self._begin(params, timeouts))
        with self._client.progress_observed(token, on_progress or _ignore), self._cancelling(begun):
            return await self._wait_for_end(begun, timeouts, on_task or _ignore)

    async def resume(
        self,
        task_id: str,
        *,
        cancel_on_exit: bool,
        token: str | None = None,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
        on_task: TaskCallback | None = None,
    ) -> CallToolResult:
        """Wait for the end of a task that was started earlier, in this session or another one.

        As `call_tool`. Unless ``cancel_on_exit``, the task continues when this wait ends early. If the server does not
        know the task, ``tasks/get`` raises ServerError.
        """
        begun: asyncio.Future[Task | CallToolResult] = asyncio.ensure_future(self.get(task_id))
        progress = self._client.progress_observed(token or new_token(), on_progress or _ignore)
        with progress, self._cancelling(begun, always=cancel_on_exit):
            return await self._wait_for_end(begun, timeouts or RequestTimeouts(), on_task or _ignore)

    async def get(self, task_id: str) -> Task:
        return Task.read(await self._client.request("tasks/get", {"taskId": task_id}))

    async def result(self, task_id: str, *, timeouts: RequestTimeouts | None = None) -> CallToolResult:
        """Wait for the end of a task and return its result."""
        return CallToolResult.read(await self._client.request("tasks/result", {"taskId": task_id}, timeouts=timeouts))

    async def cancel(self, task_id: str) -> Task:
        """Cancel a task and return its status."""
        task = Task.read(await self._client.request("tasks/cancel", {"taskId": task_id}))
        self._update(task)
        return task

    async def list(self) -> ListedItems[Task]:
        return await self._client.read_list("tasks/list", "tasks", Task.read)

    def status_received(self, params: Mapping[str, Any]) -> Task | None:
        """Handle ``notifications/tasks/status``; return the task, None if the params are invalid."""
        try:
            task = Task.read(params)
        except InvalidResult:
            return None
        self._update(task)
        return task

    def _update(self, task: Task) -> None:
        pending = self._pending.get(task.task_id)
        if pending is not None:
            pending.update(task)

    async def _begin(self, params: Mapping[str, Any], timeouts: RequestTimeouts) -> Task | CallToolResult:
        result = await self._client.request("tools/call", params, timeouts=timeouts)
        return CreateTaskResult.read(result).task if "task" in result else CallToolResult.read(result)

    @contextmanager
    def _cancelling(self, begun: asyncio.Future[Task | CallToolResult], *, always: bool = True) -> Iterator[None]:
        """Cancel the task at the server when the wait for it ends early."""
        try:
            yield
        except (asyncio.CancelledError, RequestTimeout):
            if always:
                self._client.in_background(self._stop(begun))
            else:
                begun.cancel()
            raise

    async def _wait_for_end(
        self, begun: asyncio.Future[Task | CallToolResult], timeouts: RequestTimeouts, report: TaskCallback
    ) -> CallToolResult:
        try:
            with self._client.within(timeouts.hard):
                first = await asyncio.shield(begun)
                return first if isinstance(first, CallToolResult) else await self._follow(first, timeouts, report)
        except TimeoutError:
            raise RequestTimeout("tools/call", timeouts.hard, hard=True) from None

    async def _follow(self, task: Task, timeouts: RequestTimeouts, report: TaskCallback) -> CallToolResult:
        pending = self._pending[task.task_id] = _PendingTask(report)
        try:
            pending.update(task)
            while not pending.due.is_set():
                await self._poll(pending, task.task_id)
            if pending.task.status == "cancelled":
                raise TaskStopped(task.task_id, pending.task.status_message or "")
            # A task that needs input sends its requests on the stream of this request.
            waiting = RequestTimeouts(timeouts.hard, timeouts.hard) if pending.task.wants_input else timeouts
            return await self.result(task.task_id, timeouts=waiting)
        finally:
            if self._pending.get(task.task_id) is pending:  # a server may give two calls the same id
                del self._pending[task.task_id]

    async def _poll(self, pending: _PendingTask, task_id: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(pending.pause):
                await pending.due.wait()
        if not pending.due.is_set():
            pending.update(await self.get(task_id))

    async def _stop(self, begun: asyncio.Future[Task | CallToolResult]) -> None:
        with suppress(McphostError):  # it may have ended, or the connection is gone
            first = await begun
            if isinstance(first, Task):
                await self.cancel(first.task_id)


class _PendingTask:
    """A task that is waited for; ``due`` is set once its result should be requested."""

    def __init__(self, report: TaskCallback) -> None:
        self.task: Task
        self.due = asyncio.Event()
        self._report = report

    @property
    def pause(self) -> float:
        """Seconds until the next poll."""
        interval = self.task.poll_interval
        seconds = POLL_SECONDS if interval is None else interval / 1000
        return min(max(seconds, LEAST_POLL_SECONDS), MOST_POLL_SECONDS)

    def update(self, task: Task) -> None:
        self.task = task
        if task.ended or task.wants_input:
            self.due.set()
        self._report(task)


def _ignore(_: Progress | Task) -> None:
    return
