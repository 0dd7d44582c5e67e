"""Dispatches a server's notifications to the observer, or to the request or task they concern.

Specification: basic/utilities (progress, cancellation, tasks); server/* (list changes, updates, logging).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from mcphost.client.cache import ResultCache
from mcphost.client.observer import NotificationObserver
from mcphost.client.requests import Requests
from mcphost.client.server_requests import ServerRequestQueue
from mcphost.client.subscriptions import SubscriptionListener
from mcphost.client.tasks import Tasks
from mcphost.protocol.models.progress import Progress


class Notifications:
    """Dispatches the notifications of one session; ``note`` takes a sentence for the log."""

    def __init__(
        self,
        observer: NotificationObserver,
        server_requests: ServerRequestQueue,
        requests: Requests,
        tasks: Tasks,
        note: Callable[[str], None],
    ) -> None:
        self._observer, self._note = observer, note
        self._server_requests, self._requests, self._tasks = server_requests, requests, tasks
        self.offered: Container[str] = ()
        """The server's capabilities; empty before initialization."""
        self.listener: SubscriptionListener | None = None
        """Announcements must belong to its subscriptions; None in a session with a handshake."""
        self.cache: ResultCache | None = None
        """Changes make its results stale; None in a session with a handshake."""

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
        """True if an announcement of a modern server belongs to no subscription."""
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
        if progress is not None and (type(token) is int or type(token) is str):
            self._requests.progressed(token, progress)
