"""Tasks of revision 2025-11-25: tool calls that are answered later and keep their result for a while."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mcphost.demo.tool import DemoCall, InvalidParamsError, Json

POLL_MILLISECONDS = 1000
LONGEST_MILLISECONDS = 3_600_000
USUAL_MILLISECONDS = 600_000
PAGE_TASKS = 5
MOST_TASKS = 50

NotifyStatus = Callable[[str, Json], None]


class DemoTask:
    """A task: running, or ended with a result, an error (code and sentence) or neither."""

    def __init__(self, call: DemoCall, milliseconds: float) -> None:
        self.name = f"errand-{secrets.token_hex(8)}"
        self.call = call
        self.status = "working"
        self.result: Json | None = None
        self.error: tuple[int, str] | None = None
        self.over = threading.Event()
        self.milliseconds = milliseconds
        self.created = self.changed = time.time()

    @property
    def forgotten(self) -> bool:
        """True once its time to live has passed."""
        return self.over.is_set() and time.time() > self.created + self.milliseconds / 1000

    def end(self, status: str) -> None:
        """Mark the task as ended; its result was set before."""
        self.status, self.changed = status, time.time()
        self.over.set()

    def as_object(self) -> Json:
        """The task as the protocol shows it."""
        task: Json = {
            "taskId": self.name,
            "status": self.status,
            "createdAt": _clock(self.created),
            "lastUpdatedAt": _clock(self.changed),
            "ttl": self.milliseconds,
            "pollInterval": POLL_MILLISECONDS,
        }
        return task | ({"statusMessage": self.call.last_message} if self.call.last_message else {})


class DemoTasks:
    """All tasks. ``notify`` sends the client a status that it did not ask for."""

    def __init__(self, notify: NotifyStatus) -> None:
        self._notify = notify
        self._all: dict[str, DemoTask] = {}
        self._changing = threading.Lock()
        self.methods: dict[str, Callable[[Json], Json]] = {
            "tasks/get": lambda params: self.find(params).as_object(),
            "tasks/list": self._page,
            "tasks/cancel": self._cancel,
        }

    def begin(self, call: DemoCall, requested: Any) -> DemoTask:
        """Begin a task; ``requested`` is the client's ``task`` parameter."""
        wanted = requested.get("ttl") if isinstance(requested, dict) else None
        if not isinstance(wanted, int | float) or not wanted > 0:
            wanted = USUAL_MILLISECONDS
        task = DemoTask(call, min(wanted, LONGEST_MILLISECONDS))
        with self._changing:
            self._tidy()
            self._all[task.name] = task
        return task

    def find(self, params: Json) -> DemoTask:
        """The task named in ``params``. Raises InvalidParamsError."""
        with self._changing:
            self._tidy()
            task = self._all.get(str(params.get("taskId")))
        if task is None:
            raise InvalidParamsError("Nobody here was sent on that errand, or it is forgotten by now.")
        return task

    def finish(self, task: DemoTask, answer: Json | None) -> None:
        """End a task with the answer to its call; None: it was cancelled."""
        if answer is None:
            status = "cancelled"
        elif "error" in answer:
            status, task.error = "failed", (answer["error"]["code"], answer["error"]["message"])
        else:
            result: Json = answer["result"]
            related = {"io.modelcontextprotocol/related-task": {"taskId": task.name}}
            task.result = result | {"_meta": related}
            status = "failed" if result.get("isError") else "completed"
        with self._changing:
            if task.over.is_set():
                return
            task.end(status)
        self._notify("notifications/tasks/status", task.as_object())

    def _cancel(self, params: Json) -> Json:
        task = self.find(params)
        with self._changing:
            if task.over.is_set():
                raise InvalidParamsError("That errand is over.")
            task.end("cancelled")
        task.call.cancel()
        return task.as_object()

    def _page(self, params: Json) -> Json:
        with self._changing:
            self._tidy()
            tasks = list(self._all.values())
        starts = {f"errands-from-{start}": start for start in range(0, max(1, len(tasks)), PAGE_TASKS)}
        cursor = params.get("cursor", "errands-from-0")
        if not isinstance(cursor, str) or cursor not in starts:
            raise InvalidParamsError("That cursor is none of ours.")
        end = starts[cursor] + PAGE_TASKS
        page: Json = {"tasks": [task.as_object() for task in tasks[starts[cursor] : end]]}
        return page | ({"nextCursor": f"errands-from-{end}"} if end < len(tasks) else {})

    def _tidy(self) -> None:
        over = [name for name, task in self._all.items() if task.over.is_set()]
        oldest = over[: max(0, len(self._all) - MOST_TASKS)]
        for name in {*oldest, *(name for name in over if self._all[name].forgotten)}:
            del self._all[name]


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
