"""Tasks of 2025-11-25: a tool call that is answered later, with a state of its own in between.

Specification: basic/utilities/tasks (2025-11-25 only).
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from pydantic import Field

from mcphost.protocol.display import duration_text
from mcphost.protocol.models.base import Hint, Wire

RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""The member of ``_meta`` that says which task a message belongs to."""

_YEARS: Final = 1970, 9000
"""Between these a time can be told in any zone."""

_ENDED: Final = frozenset({"completed", "failed", "cancelled"})


class TaskSupport(Enum):
    """Whether a tool may be called as a task."""

    FORBIDDEN = "forbidden"
    OPTIONAL = "optional"
    REQUIRED = "required"

    @classmethod
    def read(cls, execution: Any) -> TaskSupport:
        """What a tool's ``execution`` says; what makes no sense forbids."""
        word = execution.get("taskSupport") if isinstance(execution, dict) else None
        return next((each for each in cls if each.value == word), cls.FORBIDDEN)


class Task(Wire):
    """A task as its server last told of it."""

    task_id: str = Field(min_length=1)
    status: str
    """``working``, ``input_required``, ``completed``, ``failed`` or ``cancelled``."""
    status_message: Hint[str] = None
    ttl: Hint[float] = None
    """Milliseconds after its creation for which the server keeps it; None for ever."""
    poll_interval: Hint[float] = None
    """Milliseconds that the server wants between two looks."""
    created_at: Hint[str] = None
    last_updated_at: Hint[str] = None

    @property
    def ended(self) -> bool:
        """Will nothing more come?"""
        return self.status in _ENDED

    @property
    def wants_input(self) -> bool:
        """Does it wait for an answer of ours?"""
        return self.status == "input_required"

    @property
    def created(self) -> datetime | None:
        """When it was created by its server's clock; None where that makes no sense."""
        return _moment(self.created_at)

    @property
    def updated(self) -> datetime | None:
        """When its state changed last; the same."""
        return _moment(self.last_updated_at)

    @property
    def kept(self) -> str:
        """How long its server keeps it after its creation, in words."""
        return "no limit told" if self.ttl is None else duration_text(self.ttl / 1000)

    @property
    def words(self) -> str:
        """Its state in words; the message is the server's."""
        state = self.status.replace("_", " ")
        return f"{state}: {self.status_message}" if self.status_message else state


class CreateTaskResult(Wire):
    """The first answer to a call that runs as a task."""

    task: Task


def _moment(text: str | None) -> datetime | None:
    """An ISO 8601 time; one without a zone is UTC, and one that no clock shows is none."""
    try:
        moment = datetime.fromisoformat(text or "")
        moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if _YEARS[0] <= moment.year <= _YEARS[1] else None
