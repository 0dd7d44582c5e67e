"""A server's notifications, taken to whom they concern: the listener, the request or task they are about.

Knows their names and which of them make no sense here. Refuses to know what is done about them.

Specification: basic/utilities (progress, cancellation, tasks); server/* (list changes, updates, logging).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from mcphost.client.requests import ProgressCallback, Waiting
from mcphost.client.server_requests import InputQueue
from mcphost.client.tasks import Tasks
from mcphost.protocol.models.tools import Progress
from mcphost.protocol.wire.jsonrpc import Malformed, RequestId

if TYPE_CHECKING:
    from mcphost.protocol.models.tools import Task


class NotificationObserver(Protocol):
    """Takes what a server says unasked. Called synchronously, in order; may neither wait nor raise."""

    def logged(self, params: Mapping[str, Any]) -> None:
        """notifications/message, as it came."""

    def list_changed(self, kind: str) -> None:
        """``tools``, ``prompts`` or ``resources``: what was listed is out of date."""

    def resource_updated(self, uri: str) -> None:
        """A resource that was subscribed to changed; or one below it, or one nobody asked about."""

    def elicitation_completed(self, elicitation: str) -> None:
        """The server says that a page it asked to visit is done with; perhaps one that nobody knows."""

    def task_changed(self, task: Task) -> None:
        """The server told by itself how a task stands."""

    def malformed(self, problem: Malformed) -> None:
        """The server sent what is no message."""

    def stderr(self, line: str) -> None:
        """A line of the process's standard error."""

    def noted(self, text: str) -> None:
        """Something the client decided, for the log."""

    def lost(self, reason: Exception) -> None:
        """The connection ended by itself."""


class Notifications:
    """Takes the notifications of one session; ``note`` takes a sentence for the log."""

    def __init__(
        self, listener: NotificationObserver, inputs: InputQueue, tasks: Tasks, note: Callable[[str], None]
    ) -> None:
        self._listener, self._inputs, self._tasks, self._note = listener, inputs, tasks, note
        self.offered: Container[str] = ()
        """The server's capabilities, once they are known."""
        self.waiting: Waiting = {}
        self.hearing: dict[RequestId, ProgressCallback] = {}
        """Tokens that outlive their request."""

    def take(self, method: str, params: Mapping[str, Any]) -> None:
        """Hand one on."""
        match method:
            case "notifications/message":
                self._listener.logged(params)
            case "notifications/progress":
                self._progressed(params)
            case "notifications/cancelled":
                self._inputs.take_back(params.get("requestId"), params.get("reason"))
            case (
                "notifications/tools/list_changed"
                | "notifications/prompts/list_changed"
                | "notifications/resources/list_changed"
            ):
                self._list_changed(method.split("/")[1])
            case "notifications/resources/updated":
                self._updated(params.get("uri"))
            case "notifications/elicitation/complete":
                self._elicitation_completed(params.get("elicitationId"))
            case "notifications/tasks/status":
                self._task_changed(params)
            case _:
                self._note(f"ignored a notification mcphost does not know: {method}")

    def _list_changed(self, kind: str) -> None:
        if kind in self.offered:
            self._listener.list_changed(kind)
        else:
            self._note(f"ignored a change of {kind}, which the server does not offer")

    def _updated(self, uri: object) -> None:
        if isinstance(uri, str):
            self._listener.resource_updated(uri)
        else:
            self._note("ignored an update of a resource that has no URI")

    def _elicitation_completed(self, elicitation: object) -> None:
        if isinstance(elicitation, str):
            self._listener.elicitation_completed(elicitation)

    def _task_changed(self, params: Mapping[str, Any]) -> None:
        task = self._tasks.heard(params)
        if task is not None:
            self._listener.task_changed(task)

    def _progressed(self, params: Mapping[str, Any]) -> None:
        token, progress = params.get("progressToken"), Progress.read(params)
        if progress is None or type(token) not in (int, str):
            return
        if token in self.waiting:
            limit, report = self.waiting[token]
            limit.extend()
            report(progress)
        elif token in self.hearing:
            self.hearing[token](progress)
