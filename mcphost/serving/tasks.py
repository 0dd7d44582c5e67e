"""Tool calls that are answered later, in both dialects: tasks of 2025-11-25, and the extension of later revisions.

Specification: 2025-11-25 basic/utilities/tasks; extensions/tasks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from mcphost.json_values import as_dict, is_number
from mcphost.protocol.lifecycle.revisions import RELATED_TASK
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import InvalidParamsError, RpcError
from mcphost.serving.pages import page
from mcphost.serving.rounds import answer_asks
from mcphost.serving.served_request import Json, ServedRequest

POLL_MILLISECONDS: Final = 1000
USUAL_MILLISECONDS: Final = 600_000
LONGEST_MILLISECONDS: Final = 3_600_000
"""For which a task is kept at most, whatever the client asks for: its result takes memory."""

PAGE_TASKS: Final = 5
KEPT_TASKS: Final = 50
"""Above which ended tasks are forgotten, the oldest first."""

OPEN_TASKS: Final = 100
"""Tasks of one client that run at once: each takes a thread or a process of the content."""


class ServedTask:
    """A task: running, or ended with an outcome, or cancelled."""

    def __init__(self, request: ServedRequest, milliseconds: float, now: float) -> None:
        self.id = os.urandom(16).hex()
        self.request = request
        self.milliseconds = milliseconds
        self.created = self.changed = now
        self.outcome: Json | None = None
        self.waiters: list[ServedRequest] = []

    @property
    def over(self) -> bool:
        return self.request.over

    @property
    def status(self) -> str:
        if not self.over:
            return "input_required" if self.request.asks else "working"
        if self.outcome is None:
            return "cancelled"
        # In the older dialect, a tool that failed is a task that failed.
        failed = not self.request.revision.modern and self.outcome.get("result", {}).get("isError") is True
        return "failed" if failed or "error" in self.outcome else "completed"

    def summary(self) -> Json:
        """The task in the dialect of its call, without its outcome."""
        suffix = "Ms" if self.request.revision.modern else ""
        task: Json = {
            "taskId": self.id,
            "status": self.status,
            "createdAt": _clock(self.created),
            "lastUpdatedAt": _clock(self.changed),
            f"ttl{suffix}": self.milliseconds,
            f"pollInterval{suffix}": POLL_MILLISECONDS,
        }
        return task | ({"statusMessage": self.request.message} if self.request.message else {})

    def whole(self) -> Json:
        """The task as the extension shows it: with what it needs, or its outcome."""
        asks = {key: {"method": ask.method, "params": ask.params} for key, ask in self.request.asks.items()}
        return self.summary() | ({"inputRequests": asks} if asks else {}) | (self.outcome or {})


class TaskBook:
    """The tasks of one client; ``announce`` takes one whose status changed, ``clock`` returns Unix time."""

    def __init__(self, announce: Callable[[ServedTask], None], clock: Callable[[], float] = time.time) -> None:
        self._announce, self._clock = announce, clock
        self._all: dict[str, ServedTask] = {}

    @property
    def running(self) -> int:
        return sum(not task.over for task in self._all.values())

    def start(self, request: ServedRequest) -> Json:
        """Continue a request as a task; the result that answers it. Raises RpcError."""
        self._forget()
        if self.running >= OPEN_TASKS:
            raise RpcError(ErrorCode.INVALID_REQUEST, f"This client already has {OPEN_TASKS} open tasks.")
        wanted = as_dict(request.params.get("task")).get("ttl")
        kept = min(wanted, LONGEST_MILLISECONDS) if is_number(wanted) and wanted > 0 else USUAL_MILLISECONDS
        task = ServedTask(request, kept, self._clock())
        self._all[task.id] = task
        request.task_id = task.id
        request.suspend()
        return {"resultType": "task", **task.summary()} if request.revision.modern else {"task": task.summary()}

    def change(self, request: ServedRequest) -> None:
        """Take note that the request of a task asks, or has an answer."""
        self._changed(self._all[request.task_id or ""])

    def end(self, request: ServedRequest, outcome: Json) -> None:
        """Keep the outcome of a task's request."""
        task = self._all[request.task_id or ""]
        task.outcome = outcome
        if "error" in outcome:
            request.message = outcome["error"]["message"]
        self._changed(task)

    def get(self, request: ServedRequest) -> Json:
        task = self._found(request)
        return task.whole() if request.revision.modern else task.summary()

    def update(self, request: ServedRequest) -> Json:
        task = self._found(request)
        answer_asks(task.request, request.params)
        if not task.over:
            self._changed(task)
        return {}

    def cancel(self, request: ServedRequest) -> Json:
        """End the task, unless it is over; that is an error in the older dialect."""
        task = self._found(request)
        if task.over and not request.revision.modern:
            raise InvalidParamsError("This task is over.")
        if not task.over:
            task.request.cancel()
            self._changed(task)
        return {} if request.revision.modern else task.summary()

    def list(self, request: ServedRequest) -> Json:
        self._forget()
        return page("tasks", [task.summary() for task in self._all.values()], request.params, PAGE_TASKS)

    def result(self, request: ServedRequest) -> Json | None:
        """The outcome of a task; None: the request is answered when there is one. Raises RpcError."""
        task = self._found(request)
        if not task.over:
            task.waiters.append(request)
            request.on_cancel = lambda: task.waiters.remove(request)
            return None
        return _outcome(task)

    def close(self) -> None:
        for task in self._all.values():
            task.request.cancel()

    def _found(self, request: ServedRequest) -> ServedTask:
        self._forget()
        task = self._all.get(str(request.params.get("taskId")))
        if task is None or task.request.revision.modern is not request.revision.modern:
            raise InvalidParamsError("There is no such task, or it is no longer kept.")
        return task

    def _changed(self, task: ServedTask) -> None:
        task.changed = self._clock()
        while task.over and task.waiters:
            waiter = task.waiters.pop()
            try:
                waiter.finish(_outcome(task))
            except RpcError as error:
                waiter.fail(error)
        self._announce(task)

    def _forget(self) -> None:
        now = self._clock()
        ended = [key for key, task in self._all.items() if task.over]
        oldest = ended[: max(0, len(self._all) - KEPT_TASKS)]
        expired = [key for key in ended if self._all[key].created + self._all[key].milliseconds / 1000 < now]
        for key in {*oldest, *expired}:
            del self._all[key]


def _outcome(task: ServedTask) -> Json:
    """The result of a task's call, which names the task. Raises RpcError."""
    if task.outcome is None:
        raise InvalidParamsError("This task was cancelled, and has no result.")
    error, result = task.outcome.get("error"), task.outcome.get("result", {})
    if error is not None:
        raise RpcError(error["code"], error["message"], error.get("data"))
    return {**result, "_meta": {**as_dict(result.get("_meta")), RELATED_TASK: {"taskId": task.id}}}


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
