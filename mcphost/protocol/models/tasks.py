"""Tasks: tool calls that are answered later. Those of 2025-11-25, and those of the extension of later revisions.

Specification: basic/utilities/tasks (2025-11-25 only); extensions/tasks (from 2026-07-28 on).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import Field

from mcphost.errors import InvalidResult
from mcphost.protocol.display import duration_text, show_name
from mcphost.protocol.lifecycle.results import ServerInput, read_inputs
from mcphost.protocol.models.base import Hint, Wire
from mcphost.protocol.wire.jsonrpc import ErrorObject, words_in

TASK_ID_LENGTH: Final = 1024
"""Characters of a task's id, which each request for the task repeats in a header: a longer one would be refused."""

_YEARS: Final = 1970, 9000
"""Years within which a time can be converted to any zone."""

_ENDED: Final = frozenset({"completed", "failed", "cancelled"})
_STATUSES: Final = ("working", "input_required", "completed", "failed", "cancelled")

FAILURE_CHARACTERS: Final = 300
"""Characters of the words by which a task failed, where they come in no error object."""


class Task(Wire):
    """The latest known status of a task."""

    NULLABLE = frozenset({"ttl", "ttlMs"})

    task_id: str = Field(min_length=1, max_length=TASK_ID_LENGTH)
    status: str
    """``working``, ``input_required``, ``completed``, ``failed`` or ``cancelled``."""
    status_message: Hint[str] = None
    ttl: Hint[float] = None
    """Milliseconds for which the server keeps it after its creation; None: no limit."""
    poll_interval: Hint[float] = None
    """The requested polling interval in milliseconds."""
    created_at: Hint[str] = None
    last_updated_at: Hint[str] = None

    @property
    def oddity(self) -> str:
        """The fault of a status that the specification does not have, after which it is not known how long to wait."""
        if self.status in _STATUSES:
            return ""
        known = ", ".join(_STATUSES)
        return f"the server says that the task is {show_name(self.status, 40)}, which is not a status ({known})"

    @property
    def ended(self) -> bool:
        return self.status in _ENDED

    @property
    def wants_input(self) -> bool:
        return self.status == "input_required"

    @property
    def created(self) -> datetime | None:
        """The creation time by the server's clock; None if it is invalid."""
        return _moment(self.created_at)

    @property
    def updated(self) -> datetime | None:
        """The time of the last change by the server's clock; None if it is invalid."""
        return _moment(self.last_updated_at)

    @property
    def kept(self) -> str:
        """Time that the server keeps it after its creation, in words."""
        return "no limit" if self.ttl is None else duration_text(max(0.0, self.ttl / 1000))

    @property
    def words(self) -> str:
        """Its state in words, with the server's message; not safe to show."""
        state = self.status.replace("_", " ")
        return f"{state}: {self.status_message}" if self.status_message else state

    def failed_without_error(self, *places: object) -> InvalidResult:
        """The exception for a failed task without an error; the reason may be in these places, or in its message."""
        said = " · ".join(filter(None, [*map(words_in, places), self.status_message]))
        return InvalidResult(f"the task failed without an error{f': {said[:FAILURE_CHARACTERS]}' if said else ''}")


class ExtensionTask(Task):
    """A task of the extension: its status holds what it needs, what it brought, or why it failed."""

    ttl: Hint[float] = Field(None, alias="ttlMs")
    poll_interval: Hint[float] = Field(None, alias="pollIntervalMs")
    input_requests: Any = None
    result: Any = None
    error: Any = None

    @property
    def inputs(self) -> Mapping[str, ServerInput]:
        """The server requests that it waits for, by the keys that the answers carry. Raises InvalidResult."""
        return read_inputs(self.input_requests) if self.wants_input else {}

    @property
    def outcome(self) -> Mapping[str, Any]:
        """The result object that a completed task brought. Raises InvalidResult."""
        if not isinstance(self.result, dict):
            said = words_in(self.result)[:FAILURE_CHARACTERS]
            raise InvalidResult(f"the task is completed, and its result is not an object{f': {said}' if said else ''}")
        return self.result

    @property
    def failure(self) -> tuple[int, str, Any]:
        """The code, message and data of the JSON-RPC error by which a task failed. Raises InvalidResult."""
        error = ErrorObject.read(self.error)
        if error is not None:
            return error.code, error.message, error.data
        raise self.failed_without_error(self.error, self.result)


class CreateTaskResult(Wire):
    """The first response to a call that runs as a task."""

    task: Task


def _moment(text: str | None) -> datetime | None:
    """Parse an ISO 8601 time, UTC unless it names a zone; None if it is invalid."""
    try:
        moment = datetime.fromisoformat(text or "")
        moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if _YEARS[0] <= moment.year <= _YEARS[1] else None
