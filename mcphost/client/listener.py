"""Who takes what a server says unasked: the client's way up.

Knows the names of what can be heard. Refuses to know what is done about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from mcphost.protocol.jsonrpc import Malformed

if TYPE_CHECKING:
    from mcphost.protocol.types import Task


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
