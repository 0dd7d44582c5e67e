"""Calls tools as tasks: starts, polls, collects and cancels them, and answers what they need.

Tasks are polled; status notifications only speed that up. In 2025-11-25 the client asks for a task (`_CoreTasks`).
Later the server decides which calls become one, and each status holds what the task needs or brought
(`_ExtensionTasks`).

Specification: basic/utilities/tasks (2025-11-25 only); extensions/tasks (from 2026-07-28 on).
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Any, Final, Protocol

from mcphost.client.deadlines import Deadline, TimeBudget
from mcphost.client.paging import ListedItems
from mcphost.client.requester import Requester
from mcphost.client.requests import ProgressCallback, RequestTimeouts
from mcphost.client.rounds import InputRound, RoundCallback
from mcphost.client.server_requests import InputPurpose
from mcphost.errors import (
    InputNotGiven,
    InvalidResult,
    McphostError,
    RequestTimeout,
    ServerError,
    ServerNotReady,
    TaskExpired,
    TaskStopped,
)
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.extensions import TASKS_EXTENSION
from mcphost.protocol.lifecycle.results import InputRequired, ServerInput, TaskStarted
from mcphost.protocol.lifecycle.revisions import TASK_CALLS, has_extension, offers
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tasks import CreateTaskResult, ExtensionTask, Task
from mcphost.protocol.models.tools import CallToolResult, TaskSupport, Tool

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


@dataclass(slots=True)
class GivenInputs:
    """Inputs that a call was given so far, in this session and in earlier ones."""

    keys: set[str] = field(default_factory=set)
    """Of the inputs that its task was given."""
    rounds: int = 0
    """Those before it became a task, and those of the task."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """Everything that the wait for the end of a task needs."""

    name: str
    timeouts: RequestTimeouts
    budget: TimeBudget
    """Time for the task."""
    since: float | None
    given: GivenInputs
    report: TaskCallback
    on_round: RoundCallback


class Tasks:
    """The tasks of one server. Every method raises as `mcphost.client.requester.Requester.request` does."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester
        self._pending: dict[str, _PendingTask] = {}

    @property
    def _rules(self) -> _TaskRules:
        modern = self._requester.open_session.revision.modern
        return _ExtensionTasks(self._requester) if modern else _CoreTasks(self._requester)

    @property
    def offered(self) -> bool:
        """True if tool calls can become tasks in this session. Raises ServerNotReady."""
        return self._rules.offered

    @property
    def listable(self) -> bool:
        """True if the protocol lets servers list their tasks. Raises ServerNotReady."""
        return self._rules.asked_for

    def applies_to(self, tool: Tool, *, preferred: bool = False) -> bool:
        """True if this tool should be called here: because it must be a task, because it may be one and that is
        ``preferred``, or because the server decides.
        """
        rules = self._rules
        return rules.offered and rules.applies_to(tool, preferred=preferred)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
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

        call = _TaskCall(name, arguments, meta, kept, token, timeouts, budget, on_progress, count)
        # A task of its own: after an early cancellation its result still names the task to stop.
        begun = asyncio.ensure_future(rules.begin(call))
        if not rules.asked_for:
            await begun
        wait = _Wait(name, timeouts, budget, time.time(), given, on_task or _ignore, on_round)
        with (
            self._requester.requests.progress_observed(token, on_progress),
            self._cancelling(begun, cancels or _always),
        ):
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
        progress = self._requester.requests.progress_observed(token or new_token(), on_progress or _ignore)
        with progress, self._cancelling(begun, cancels):
            return await self._wait_for_end(begun, wait)

    async def get(self, task_id: str) -> Task:
        task = self._rules.read(await self._requester.request("tasks/get", {"taskId": task_id}))
        if task.task_id != task_id:
            raise InvalidResult("the server answered tasks/get with another task")
        return task

    async def cancel(self, task_id: str) -> Task:
        answer = await self._requester.request("tasks/cancel", {"taskId": task_id})
        task = await self._rules.cancelled(answer, task_id, self.get)
        self._update(task)
        return task

    async def list(self) -> ListedItems[Task]:
        """The tasks that the server lists. Raises MethodRemoved if the session's revision has no such list."""
        return await self._requester.read_list("tasks/list", "tasks", self._rules.read)

    def status_received(self, params: Mapping[str, Any]) -> Task | None:
        """Handle a notification of a task's status; return the task, None if the params are invalid."""
        try:
            task = self._rules.read(params)
        except (InvalidResult, ServerNotReady):
            return None
        self._update(task)
        return task

    def may_have_changed(self, task_id: str) -> None:
        """Poll a task that is waited for at once."""
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
                self._requester.requests.in_background(self._stop(begun))
            else:
                begun.cancel()
            raise

    async def _wait_for_end(self, begun: asyncio.Future[Task | CallToolResult], wait: _Wait) -> CallToolResult:
        try:
            with self._requester.within(wait.budget.left) as limit:
                first = await asyncio.shield(begun)
                return first if isinstance(first, CallToolResult) else await self._follow(first, wait, limit)
        except TimeoutError:
            raise RequestTimeout("tools/call", wait.timeouts.hard, hard=True) from None

    async def _follow(self, task: Task, wait: _Wait, limit: Deadline) -> CallToolResult:
        rules, task_id = self._rules, task.task_id
        pending = self._pending[task_id] = _PendingTask(wait.report)
        inputs = _TaskInputs(self._requester, task_id, wait, limit, pending.news.set)
        self._listen_for(task_id)  # before the first poll: nothing is replayed
        try:
            pending.update(task)
            while not rules.is_due(pending.task):
                if pending.task.oddity:
                    self._requester.remark(f"tasks/get: {pending.task.oddity}; mcphost goes on asking")
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
        if self._requester.listener is not None:
            self._requester.listener.follow(task_id)

    def _stop_listening_for(self, task_id: str) -> None:
        if self._requester.listener is not None:
            self._requester.listener.unfollow(task_id)

    async def _stop(self, begun: asyncio.Future[Task | CallToolResult]) -> None:
        with suppress(McphostError):  # it may have ended, or the connection is gone
            first = await begun
            if isinstance(first, Task):
                await self._requester.request("tasks/cancel", {"taskId": first.task_id})


class _PendingTask:
    """A task that is waited for; ``news`` is set when there is reason to look at it."""

    def __init__(self, report: TaskCallback) -> None:
        self.task: Task
        self.news = asyncio.Event()
        self.outdated = False
        """True if the server may know more than was received."""
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


class _TaskInputs:
    """Answers what one task needs, each input once, while the task is polled.

    The clock of ``limit`` stops while a person or a model is asked. ``wake`` is called when answering has ended; if it
    failed, the next `answer` raises why.
    """

    def __init__(
        self, requester: Requester, task_id: str, wait: _Wait, limit: Deadline, wake: Callable[[], None]
    ) -> None:
        self._requester, self._task_id, self._wait = requester, task_id, wait
        self._limit, self._wake = limit, wake
        self._asked = set(wait.given.keys)
        self._due: list[InputRound] = []
        self._declined: list[object] = []
        self._work: asyncio.Task[None] | None = None

    def answer(self, inputs: Mapping[str, ServerInput]) -> None:
        """Begin to answer those that are new.

        Raises InvalidResult if they are too many, and why an earlier one was not given.
        """
        if self._work is not None and self._work.done():
            self._work.result()
        new = {key: needed for key, needed in inputs.items() if key not in self._asked}
        if not new:
            return
        self._asked.update(new)
        self._wait.given.rounds += 1
        current = InputRound(self._wait.given.rounds, InputRequired(new, None))
        self._requester.check_round(current)
        self._due.append(current)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer_due(), name="answer a task")
            self._work.add_done_callback(lambda _: self._wake())

    async def aclose(self) -> None:
        """Withdraw what is still asked for."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)

    async def _answer_due(self) -> None:
        before = self._wait.budget.left = self._limit.left
        try:
            with self._limit.paused():
                while self._due:
                    await self._answer_round(self._due.pop(0))
        finally:
            self._limit.shift(self._wait.budget.left - before)  # what mcphost itself waited for counts

    async def _answer_round(self, current: InputRound) -> None:
        await self._wait.on_round(current)
        inputs = current.needed.inputs
        purpose = InputPurpose("tools/call", self._wait.name, current.number, self._wait.budget, self._declined)
        async for key, answer in self._requester.answer_inputs(inputs, purpose):
            with suppress(ServerError):  # the task no longer needs it; its next status says how it continues
                await self._requester.request(
                    "tasks/update", {"taskId": self._task_id, "inputResponses": {key: answer}}
                )
            self._wait.given.keys.add(key)


@dataclass(frozen=True, slots=True)
class _TaskCall:
    """A tool call that may become a task."""

    name: str
    arguments: Mapping[str, Any] | None
    meta: Mapping[str, Any] | None
    ttl: int
    """Milliseconds for which the server is asked to keep the task, if it is asked."""
    token: str
    """Identifies progress, where that outlives the request."""
    timeouts: RequestTimeouts
    budget: TimeBudget
    """Time that ``timeouts.hard`` leaves for the task, once a call has become one."""
    on_progress: ProgressCallback
    on_round: RoundCallback

    @property
    def params(self) -> dict[str, Any]:
        given = {} if self.arguments is None else {"arguments": self.arguments}
        return {"name": self.name} | given | ({"_meta": self.meta} if self.meta else {})


_GetTask = Callable[[str], Awaitable[Task]]


class _TaskRules(Protocol):
    """The tasks of one session. Methods that send raise as `mcphost.client.requester.Requester.request` does."""

    asked_for: bool
    """True if the client asks for a task; otherwise a call becomes one when the server answers with a task."""

    @property
    def offered(self) -> bool:
        """True if tool calls can become tasks."""

    def applies_to(self, tool: Tool, *, preferred: bool) -> bool:
        """True if this tool should be called so that it can become a task."""

    async def begin(self, call: _TaskCall) -> Task | CallToolResult:
        """Call the tool."""

    def read(self, status: object) -> Task:
        """The status of a task. Raises InvalidResult."""

    def inputs(self, task: Task) -> Mapping[str, ServerInput]:
        """The inputs that the task waits for (``tasks/update``). Raises InvalidResult."""

    def is_due(self, task: Task) -> bool:
        """True if the result can be requested."""

    def seconds_left(self, task: Task, since: float | None) -> float:
        """Time for which the server keeps the task, which was begun at ``since`` (None: as the server says)."""

    async def result(self, task: Task, timeouts: RequestTimeouts) -> CallToolResult:
        """The result of a task that is due and was not cancelled."""

    async def cancelled(self, answer: Mapping[str, Any], task_id: str, get: _GetTask) -> Task:
        """The status after this answer to ``tasks/cancel``."""


class _CoreTasks:
    """The tasks of 2025-11-25."""

    asked_for = True

    def __init__(self, requester: Requester) -> None:
        self._requester = requester

    @property
    def offered(self) -> bool:
        session = self._requester.open_session
        return offers(TASK_CALLS, session.server.capabilities, session.revision)

    def applies_to(self, tool: Tool, *, preferred: bool) -> bool:
        support = tool.task_support
        return support is TaskSupport.REQUIRED or (preferred and support is TaskSupport.OPTIONAL)

    async def begin(self, call: _TaskCall) -> Task | CallToolResult:
        meta = {**(call.meta or {}), "progressToken": call.token}
        params = call.params | {"task": {"ttl": call.ttl}, "_meta": meta}
        result = await self._requester.request("tools/call", params, timeouts=call.timeouts)
        return CreateTaskResult.read(result).task if "task" in result else self._requester.tool_result(result)

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
        result = await self._requester.request("tasks/result", {"taskId": task.task_id}, timeouts=waiting)
        found = self._requester.tool_result(result)
        if task.status == "failed" and not found.is_error:
            raise task.failed_without_error({name: each for name, each in result.items() if name != "_meta"})
        return found

    async def cancelled(self, answer: Mapping[str, Any], task_id: str, get: _GetTask) -> Task:
        return Task.read(answer)


class _ExtensionTasks:
    asked_for = False

    def __init__(self, requester: Requester) -> None:
        self._requester = requester

    @property
    def offered(self) -> bool:
        sides = self._requester.open_session.server.capabilities, self._requester.declared
        return all(has_extension(TASKS_EXTENSION, capabilities) for capabilities in sides)

    def applies_to(self, tool: Tool, *, preferred: bool) -> bool:
        return True

    async def begin(self, call: _TaskCall) -> Task | CallToolResult:
        read = await self._requester.exchange(
            "tools/call",
            call.params,
            timeouts=call.timeouts,
            on_progress=call.on_progress,
            on_round=call.on_round,
            budget=call.budget,
        )
        return self.read(read.task) if isinstance(read, TaskStarted) else self._requester.tool_result(read.result)

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
        return self._requester.tool_result(task.outcome)

    async def cancelled(self, answer: Mapping[str, Any], task_id: str, get: _GetTask) -> Task:
        # The answer only says that the server got the request, and it may forget the task at once.
        try:
            return await get(task_id)
        except ServerError:
            return self.read({"taskId": task_id, "status": "cancelled"})


def _always() -> bool:
    return True


def _ignore(_: Progress | Task) -> None:
    return


async def _ignore_round(_: InputRound) -> None:
    return
