"""Dispatches a server's notifications to the observer, or to the request or task they concern.

Specification: basic/utilities (progress, cancellation, tasks); server/* (list changes, updates, logging).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from mcphost.client.requests import PendingProgress, ProgressCallback
from mcphost.client.server_requests import ServerRequestQueue
from mcphost.client.tasks import Tasks
from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.wire.jsonrpc import Malformed, RequestId

if TYPE_CHECKING:
    from mcphost.client.cache import ResultCache
    from mcphost.client.subscriptions import SubscriptionListener
    from mcphost.protocol.models.tasks import Task


class NotificationObserver(Protocol):
    """Observes one connection. Called synchronously, in order; may neither block nor raise."""

    def logged(self, params: Mapping[str, Any]) -> None:
        """``notifications/message``, unvalidated."""

    def list_changed(self, kind: str) -> None:
        """The list of ``tools``, ``prompts`` or ``resources`` is out of date."""

    def resource_updated(self, uri: str) -> None:
        """A resource changed: one subscribed to, one below it, or any other."""

    def served_from_cache(self, method: str, params: Mapping[str, Any], freshness: Freshness) -> None:
        """A kept result answered this request, so that it was not sent."""

    def elicitation_completed(self, elicitation: str) -> None:
        """A URL elicitation is complete, by an id that may be unknown."""

    def listening_changed(self) -> None:
        """How it stands with announcements of changes is different now."""

    def task_changed(self, task: Task) -> None:
        """The server sent the status of a task."""

    def malformed(self, problem: Malformed) -> None:
        """The server sent something that is no message."""

    def stderr(self, line: str) -> None:
        """A line of the process's standard error."""

    def noted(self, text: str) -> None:
        """A sentence for the log."""

    def remarked(self, text: str) -> None:
        """A sentence for the log on how the server breaks the specification, although it was understood."""

    def lost(self, reason: Exception) -> None:
        """The connection was lost."""


class Notifications:
    """Dispatches the notifications of one session; ``note`` takes a sentence for the log."""

    def __init__(
        self,
        observer: NotificationObserver,
        server_requests: ServerRequestQueue,
        tasks: Tasks,
        note: Callable[[str], None],
    ) -> None:
        self._observer, self._server_requests, self._tasks, self._note = observer, server_requests, tasks, note
        self.offered: Container[str] = ()
        """The server's capabilities; empty before initialization."""
        self.pending: PendingProgress = {}
        self.listener: SubscriptionListener | None = None
        """Whose subscriptions announcements must belong to; None in a session with a handshake."""
        self.cache: ResultCache | None = None
        """What changes make stale; None in a session with a handshake."""
        self.token_observers: dict[RequestId, ProgressCallback] = {}
        """By progress token, for tokens that outlive their request."""

    def take(self, method: str, params: Mapping[str, Any]) -> None:
        match method:
            case "notifications/message":
                self._observer.logged(params)
            case "notifications/progress":
                self._progressed(params)
            case "notifications/cancelled":
                self._cancelled(params)
            case "notifications/subscriptions/acknowledged" if self.listener is not None:
                self.listener.acknowledged(params)
            case (
                "notifications/tools/list_changed"
                | "notifications/prompts/list_changed"
                | "notifications/resources/list_changed"
            ):
                self._list_changed(method.split("/")[1], params)
            case "notifications/resources/updated":
                self._updated(params)
            case "notifications/elicitation/complete":
                self._elicitation_completed(params.get("elicitationId"))
            case "notifications/tasks/status" | "notifications/tasks":
                self._task_changed(method, params)
            case _:
                self._note(f"ignored a notification mcphost does not know: {method}")

    # `mcphost.client.subscriptions.ChangeObserver`.

    def list_changed(self, kind: str) -> None:
        if self.cache is not None:
            self.cache.list_changed(kind)
        self._observer.list_changed(kind)

    def resource_updated(self, uri: str) -> None:
        if self.cache is not None:
            self.cache.resource_updated(uri)
        self._observer.resource_updated(uri)

    def task_may_have_changed(self, task_id: str) -> None:
        self._tasks.may_have_changed(task_id)

    def listening_changed(self) -> None:
        self._observer.listening_changed()

    def _cancelled(self, params: Mapping[str, Any]) -> None:
        if self.listener is not None:
            self.listener.ended_by_server(params.get("requestId"))
        else:
            self._server_requests.cancel(params.get("requestId"), params.get("reason"))

    def _is_stray(self, params: Mapping[str, Any]) -> bool:
        """Does an announcement of a modern server belong to no subscription?"""
        if self.listener is None or self.listener.belongs(params):
            return False
        self._note("ignored an announcement that belongs to no subscription")
        return True

    def _list_changed(self, kind: str, params: Mapping[str, Any]) -> None:
        if self._is_stray(params):
            return
        if kind in self.offered:
            self.list_changed(kind)
        else:
            self._note(f"ignored a change of {kind}, which the server does not offer")

    def _updated(self, params: Mapping[str, Any]) -> None:
        if self._is_stray(params):
            return
        uri = params.get("uri")
        if isinstance(uri, str):
            self.resource_updated(uri)
        else:
            self._note("ignored an update of a resource that has no URI")

    def _elicitation_completed(self, elicitation: object) -> None:
        if isinstance(elicitation, str):
            self._observer.elicitation_completed(elicitation)

    def _task_changed(self, method: str, params: Mapping[str, Any]) -> None:
        if method != ("notifications/tasks/status" if self.listener is None else "notifications/tasks"):
            self._note(f"ignored {method}, which the session's revision does not have")
            return
        if self._is_stray(params):
            return
        task = self._tasks.status_received(params)
        if task is not None:
            self._observer.task_changed(task)

    def _progressed(self, params: Mapping[str, Any]) -> None:
        token, progress = params.get("progressToken"), Progress.read(params)
        if progress is None or type(token) not in (int, str):
            return
        if token in self.pending:
            limit, report = self.pending[token]
            limit.extend()
            report(progress)
        elif token in self.token_observers:
            self.token_observers[token](progress)
