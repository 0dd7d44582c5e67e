"""`NotificationObserver`: what a client reports of its connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.models.tasks import Task
from mcphost.protocol.wire.jsonrpc import Malformed


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
        """`SubscriptionListener.state`, or what is announced, changed."""

    def task_changed(self, task: Task) -> None:
        """The server sent the status of a task."""

    def malformed(self, problem: Malformed) -> None:
        """The server sent something that is not a message."""

    def stderr(self, line: str) -> None:
        """A line of the process's standard error."""

    def noted(self, text: str) -> None:
        """A sentence for the log."""

    def remarked(self, text: str) -> None:
        """A sentence for the log on how the server breaks the specification, although it was understood."""

    def lost(self, reason: Exception) -> None:
        """The connection was lost."""
