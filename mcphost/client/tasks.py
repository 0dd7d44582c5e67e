"""Calls tools as tasks: starts, polls, collects and cancels them.

Tasks are polled; status notifications only speed that up. What differs between the eras is in
`mcphost.client.task_rules`.

Specification: basic/utilities/tasks (2025-11-25 only); extensions/tasks (from 2026-07-28 on).
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.deadlines import Deadline, TimeBudget
from mcphost.client.paging import ListedItems
from mcphost.client.requests import ProgressCallback, RequestTimeouts
from mcphost.client.rounds import InputRound, RoundCallback
from mcphost.client.task_inputs import GivenInputs, TaskInputs
from mcphost.client.task_rules import CoreTasks, ExtensionTasks, TaskCall, TaskRules
from mcphost.errors import (
    InputNotGiven,
    InvalidResult,
    McphostError,
    RequestTimeout,
    ServerNotReady,
    TaskExpired,
    TaskStopped,
)
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tasks import Task
from mcphost.protocol.models.tools import CallToolResult, Tool

if TYPE_CHECKING:
    from mcphost.client.client import Client

POLL_SECONDS: Final = 1.0
"""Between two polls, if the server names no interval."""

LEAST_POLL_SECONDS: Final = 0.1
"""Between two polls at least, even if the server says 0."""

MOST_POLL_SECONDS: Final = 60.0
"""Between two polls at most: a longer interval that a server asks for would leave the end of a task unnoticed."""

TaskCallback = Callable[[Task], None]


def new_token() -> str:
    """A progress token for a task. It stays valid until the task ends, across sessions."""
    return f"task-{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True)
class _Wait:
    """How to wait for the end of a task."""

    name: str
    timeouts: RequestTimeouts
    budget: TimeBudget
    """How long the task may take."""
    since: float | None
    given: GivenInputs
    report: TaskCallback
    on_round: RoundCallback


class Tasks:
    """The tasks of one server. Every method raises as `mcphost.client.client.Client.request` does."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pending: dict[str, _PendingTask] = {}

    @property
    def _rules(self) -> TaskRules:
        modern = self._client.open_session.revision.modern
        return ExtensionTasks(self._client) if modern else CoreTasks(self._client)

    @property
    def offered(self) -> bool:
        """Can tool calls become tasks in this session? Raises ServerNotReady."""
        return self._rules.offered

    @property
    def listable(self) -> bool:
        """Does the protocol let servers list their tasks? Raises ServerNotReady."""
        return self._rules.asked_for

    def applies_to(self, tool: Tool, *, preferred: bool = False) -> bool:
        """Should this tool be called here: because it must be a task, because it may and that is ``preferred``, or
        because the server decides?
        """
        rules = self._rules
        return rules.offered and rules.applies_to(tool, preferred=preferred)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: int | None = None,
        token: str | None = None,
        given: GivenInputs | None = None,
        cancels: Callable[[], bool] | None = None,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
        on_task: TaskCallback | None = None,
        on_round: RoundCallback | None = None,
    ) -> CallToolResult:
        """Call a tool as a task with this ``ttl`` in milliseconds (default: ``timeouts.hard``), and wait for its end.

        ``on_task`` is called with every status; ``token`` identifies progress (see `new_token`); ``given`` gathers what
        the call needed. ``timeouts.hard`` bounds the call and its task together. When it is over, and when the await is
        cancelled, the task is cancelled, unless ``cancels`` says no. Raises TaskStopped if the server cancelled it,
        TaskExpired if it kept it to no end.
        """
        timeouts, token, rules = timeouts or RequestTimeouts(), token or new_token(), self._rules
        kept = round(timeouts.hard * 1000) if ttl is None else ttl
        on_progress, on_round = on_progress or _ignore, on_round or _ignore_round
        given, budget = given or GivenInputs(), TimeBudget("tools/call", timeouts.hard)

        async def count(current: InputRound) -> None:
            given.rounds = current.number
            await on_round(current)

        call = TaskCall(name, arguments, kept, token, timeouts, budget, on_progress, count)
        # A task of its own: after an early cancellation its result still tells which task to stop.
        begun = asyncio.ensure_future(rules.begin(call))
        if not rules.asked_for:
            await begun
        wait = _Wait(name, timeouts, budget, time.time(), given, on_task or _ignore, on_round)
        with self._client.progress_observed(token, on_progress), self._cancelling(begun, cancels or _always):
            return await self._wait_for_end(begun, wait)

    async def resume(
        self,
        task_id: str,
        *,
        cancels: Callable[[], bool],
        name: str = "",
        since: float | None = None,
        token: str | None = None,
        given: GivenInputs | None = None,
        timeouts: RequestTimeouts | None = None,
        on_progress: ProgressCallback | None = None,
        on_task: TaskCallback | None = None,
        on_round: RoundCallback | None = None,
    ) -> CallToolResult:
        """Wait for the end of a task that was started earlier, in this session or another one.

        As `call_tool`. ``name`` is its tool's, ``since`` when it was started, in seconds since 1970, if that is known.
        If the server does not know the task, ``tasks/get`` raises ServerError.
        """
        begun: asyncio.Future[Task | CallToolResult] = asyncio.ensure_future(self.get(task_id))
        timeouts, given = timeouts or RequestTimeouts(), given or GivenInputs()
        budget = TimeBudget("tools/call", timeouts.hard)
        wait = _Wait(name, timeouts, budget, since, given, on_task or _ignore, on_round or _ignore_round)
        progress = self._client.progress_observed(token or new_token(), on_progress or _ignore)
        with progress, self._cancelling(begun, cancels):
            return await self._wait_for_end(begun, wait)

    async def get(self, task_id: str) -> Task:
        """The status of a task."""
        task = self._rules.read(await self._client.request("tasks/get", {"taskId": task_id}))
        if task.task_id != task_id:
            raise InvalidResult("the server answered tasks/get with another task")
        return task

    async def cancel(self, task_id: str) -> Task:
        """Cancel a task and return its status."""
        answer = await self._client.request("tasks/cancel", {"taskId": task_id})
        task = await self._rules.cancelled(task_id, answer)
        self._update(task)
        return task

    async def list(self) -> ListedItems[Task]:
        """The tasks that the server lists. Raises MethodRemoved if the session's revision has no such list."""
        return await self._client.read_list("tasks/list", "tasks", self._rules.read)

    def status_received(self, params: Mapping[str, Any]) -> Task | None:
        """Handle a notification of a task's status; return the task, None if the params are invalid."""
        try:
            task = self._rules.read(params)
        except (InvalidResult, ServerNotReady):
            return None
        self._update(task)
        return task

    def may_have_changed(self, task_id: str) -> None:
        """Look at a task that is waited for, whenever the next poll is due."""
        pending = self._pending.get(task_id)
        if pending is not None:
            pending.outdated = True
            pending.news.set()

    def _update(self, task: Task) -> None:
        pending = self._pending.get(task.task_id)
        if pending is not None:
            pending.update(task)
            pending.news.set()

    @contextmanager
    def _cancelling(self, begun: asyncio.Future[Task | CallToolResult], cancels: Callable[[], bool]) -> Iterator[None]:
        """Cancel the task at the server when the wait for it ends early."""
        try:
            yield
        except (asyncio.CancelledError, RequestTimeout, InputNotGiven):
            if cancels():
                self._client.in_background(self._stop(begun))
            else:
                begun.cancel()
            raise

    async def _wait_for_end(self, begun: asyncio.Future[Task | CallToolResult], wait: _Wait) -> CallToolResult:
        try:
            with self._client.within(wait.budget.left) as limit:
                first = await asyncio.shield(begun)
                return first if isinstance(first, CallToolResult) else await self._follow(first, wait, limit)
        except TimeoutError:
            raise RequestTimeout("tools/call", wait.timeouts.hard, hard=True) from None

    async def _follow(self, task: Task, wait: _Wait, limit: Deadline) -> CallToolResult:
        rules, task_id = self._rules, task.task_id
        pending = self._pending[task_id] = _PendingTask(wait.report)
        inputs = TaskInputs(
            self._client, task_id, wait.name, wait.given, limit, wait.budget, wait.on_round, pending.news.set
        )
        self._listen_for(task_id)
        try:
            pending.update(task)
            while not rules.is_due(pending.task):
                if pending.task.oddity:
                    self._client.remark(f"tasks/get: {pending.task.oddity}; mcphost goes on asking")
                inputs.answer(rules.inputs(pending.task))
                await self._poll(pending, rules.seconds_left(pending.task, wait.since))
            if pending.task.status == "cancelled":
                raise TaskStopped(task_id, pending.task.status_message or "")
            return await rules.result(pending.task, wait.timeouts)
        finally:
            await inputs.aclose()
            if self._pending.get(task_id) is pending:  # a server may give two calls the same id
                del self._pending[task_id]
                self._stop_listening_for(task_id)

    async def _poll(self, pending: _PendingTask, seconds_left: float) -> None:
        """Wait for news of the task, and ask for them if none come in time. Raises TaskExpired."""
        task = pending.task
        if seconds_left <= 0:
            raise TaskExpired(task.task_id, (task.ttl or 0) / 1000)
        pending.news.clear()
        try:
            async with asyncio.timeout(min(pending.pause, max(seconds_left, LEAST_POLL_SECONDS))):
                await pending.news.wait()
        except TimeoutError:
            pending.outdated = True
        if pending.outdated:
            pending.outdated = False
            pending.update(await self.get(task.task_id))

    def _listen_for(self, task_id: str) -> None:
        if self._client.listener is not None:
            self._client.listener.follow(task_id)

    def _stop_listening_for(self, task_id: str) -> None:
        if self._client.listener is not None:
            self._client.listener.unfollow(task_id)

    async def _stop(self, begun: asyncio.Future[Task | CallToolResult]) -> None:
        with suppress(McphostError):  # it may have ended, or the connection is gone
            first = await begun
            if isinstance(first, Task):
                await self._client.request("tasks/cancel", {"taskId": first.task_id})


class _PendingTask:
    """A task that is waited for; ``news`` is set when there is reason to look at it."""

    def __init__(self, report: TaskCallback) -> None:
        self.task: Task
        self.news = asyncio.Event()
        self.outdated = False
        """May the server know more than was received?"""
        self._report = report

    @property
    def pause(self) -> float:
        """Seconds until the next poll."""
        interval = self.task.poll_interval
        seconds = POLL_SECONDS if interval is None else interval / 1000
        return min(max(seconds, LEAST_POLL_SECONDS), MOST_POLL_SECONDS)

    def update(self, task: Task) -> None:
        self.task = task
        self._report(task)


def _always() -> bool:
    return True


def _ignore(_: Progress | Task) -> None:
    return


async def _ignore_round(_: InputRound) -> None:
    return
