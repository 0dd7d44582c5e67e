"""Tool calls that are answered later: begun, looked after, collected, stopped.

Knows a task's course. Refuses to know who waits for it; that it is polled, and never relied on to report by itself.

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
from mcphost.protocol.eras.revisions import TASK_CALLS, offers
from mcphost.protocol.models.tools import CallToolResult, CreateTaskResult, Progress, Task, TaskSupport, Tool

if TYPE_CHECKING:
    from mcphost.client.client import Client

POLL_SECONDS: Final = 1.0
"""Between two looks at a task whose server does not say how often it wants them."""

LEAST_POLL_SECONDS: Final = 0.1
"""Between two looks, whatever a server says: one that says 0 would keep us both busy."""

MOST_POLL_SECONDS: Final = 86_400.0

TaskCallback = Callable[[Task], None]


def new_token() -> str:
    """A progress token for a task: it stays valid to the task's end, in whatever session."""
    return f"task-{secrets.token_hex(8)}"


class Tasks:
    """The tasks of one server. Every verb raises as `mcphost.client.client.Client.request` does."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._watched: dict[str, _Watch] = {}

    @property
    def offered(self) -> bool:
        """May tools be called as tasks at all? Raises ServerNotReady."""
        session = self._client.opened
        return offers(TASK_CALLS, session.server.capabilities, session.revision)

    def suit(self, tool: Tool, *, wanted: bool = False) -> bool:
        """Is this tool to be called as a task: because it must, or because it may and that is ``wanted``?"""
        if not self.offered:
            return False
        support = tool.task_support
        return support is TaskSupport.REQUIRED or (wanted and support is TaskSupport.OPTIONAL)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: int | None = None,
        token: str | None = None,
        patience: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
        on_task: TaskCallback | None = None,
    ) -> CallToolResult:
        """Run a tool once, as a task that is kept ``ttl`` milliseconds (as long as ``patience.hard``), to its end.

        ``on_task`` hears of every state; progress is told under ``token`` (see `new_token`). Cancelling the await, and
        the end of ``patience.hard``, cancel the task. Raises TaskStopped where the server cancelled it.
        """
        patience, token = patience or RequestTimeouts(), token or new_token()
        params = {"name": name, "task": {"ttl": round(patience.hard * 1000) if ttl is None else ttl}}
        params |= {"_meta": {"progressToken": token}} | ({} if arguments is None else {"arguments": arguments})
        # Of its own: who gives up before the task has a name still has to tell the server which one to stop.
        begun = asyncio.ensure_future(self._begin(params, patience))
        with self._client.hearing(token, on_progress or _ignore), self._stopping(begun):
            return await self._to_the_end(begun, patience, on_task or _ignore)

    async def pick_up(
        self,
        task_id: str,
        *,
        stops: bool,
        token: str | None = None,
        patience: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
        on_task: TaskCallback | None = None,
    ) -> CallToolResult:
        """Wait for the end of a task that was begun before, in this session or another one.

        As `call_tool`; with ``stops`` False the task goes on when nobody waits any more. Where the server does not
        know the task, the ServerError is one of ``tasks/get``.
        """
        begun: asyncio.Future[Task | CallToolResult] = asyncio.ensure_future(self.get(task_id))
        with self._client.hearing(token or new_token(), on_progress or _ignore), self._stopping(begun, stops=stops):
            return await self._to_the_end(begun, patience or RequestTimeouts(), on_task or _ignore)

    async def get(self, task_id: str) -> Task:
        """How a task stands."""
        return Task.read(await self._client.request("tasks/get", {"taskId": task_id}))

    async def result(self, task_id: str, *, patience: RequestTimeouts | None = None) -> CallToolResult:
        """What a task brought, once it has ended: this waits for it."""
        return CallToolResult.read(await self._client.request("tasks/result", {"taskId": task_id}, patience=patience))

    async def cancel(self, task_id: str) -> Task:
        """Stop a task; how it stands now. Whoever waits for it hears of it at once."""
        task = Task.read(await self._client.request("tasks/cancel", {"taskId": task_id}))
        self._tell(task)
        return task

    async def list(self) -> ListedItems[Task]:
        """Every task the server keeps, page by page."""
        return await self._client.read_list("tasks/list", "tasks", Task.read)

    def heard(self, params: Mapping[str, Any]) -> Task | None:
        """Take the params of notifications/tasks/status; the task, or None where they tell of none."""
        try:
            task = Task.read(params)
        except InvalidResult:
            return None
        self._tell(task)
        return task

    def _tell(self, task: Task) -> None:
        watch = self._watched.get(task.task_id)
        if watch is not None:
            watch.tell(task)

    async def _begin(self, params: Mapping[str, Any], patience: RequestTimeouts) -> Task | CallToolResult:
        result = await self._client.request("tools/call", params, patience=patience)
        return CreateTaskResult.read(result).task if "task" in result else CallToolResult.read(result)

    @contextmanager
    def _stopping(self, begun: asyncio.Future[Task | CallToolResult], *, stops: bool = True) -> Iterator[None]:
        """Tell the server which task to stop when nobody waits for it any more."""
        try:
            yield
        except (asyncio.CancelledError, RequestTimeout):
            if stops:
                self._client.in_background(self._stop(begun))
            else:
                begun.cancel()
            raise

    async def _to_the_end(
        self, begun: asyncio.Future[Task | CallToolResult], patience: RequestTimeouts, report: TaskCallback
    ) -> CallToolResult:
        try:
            with self._client.within(patience.hard):
                first = await asyncio.shield(begun)
                return first if isinstance(first, CallToolResult) else await self._follow(first, patience, report)
        except TimeoutError:
            raise RequestTimeout("tools/call", patience.hard, hard=True) from None

    async def _follow(self, task: Task, patience: RequestTimeouts, report: TaskCallback) -> CallToolResult:
        watch = self._watched[task.task_id] = _Watch(report)
        try:
            watch.tell(task)
            while not watch.due.is_set():
                await self._look(watch, task.task_id)
            if watch.task.status == "cancelled":
                raise TaskStopped(task.task_id, watch.task.status_message or "")
            # A task that wants input says what it wants on the stream of this request, and answers it in the end.
            waiting = RequestTimeouts(patience.hard, patience.hard) if watch.task.wants_input else patience
            return await self.result(task.task_id, patience=waiting)
        finally:
            if self._watched.get(task.task_id) is watch:  # a server may give two calls the same id
                del self._watched[task.task_id]

    async def _look(self, watch: _Watch, task_id: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(watch.pause):
                await watch.due.wait()
        if not watch.due.is_set():
            watch.tell(await self.get(task_id))

    async def _stop(self, begun: asyncio.Future[Task | CallToolResult]) -> None:
        with suppress(McphostError):  # it may have ended by itself, or its server is gone
            first = await begun
            if isinstance(first, Task):
                await self.cancel(first.task_id)


class _Watch:
    """A task that somebody waits for; ``due`` is set once its result is to be asked for."""

    def __init__(self, report: TaskCallback) -> None:
        self.task: Task
        self.due = asyncio.Event()
        self._report = report

    @property
    def pause(self) -> float:
        """Seconds until the next look."""
        told = self.task.poll_interval
        seconds = POLL_SECONDS if told is None else told / 1000
        return min(max(seconds, LEAST_POLL_SECONDS), MOST_POLL_SECONDS)

    def tell(self, task: Task) -> None:
        """Take how it stands now."""
        self.task = task
        if task.ended or task.wants_input:
            self.due.set()
        self._report(task)


def _ignore(_: Progress | Task) -> None:
    return
