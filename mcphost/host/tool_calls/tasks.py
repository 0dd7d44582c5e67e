"""The tasks a server keeps, and the calls of this run that began them.

Knows how the two are told to belong together. Refuses to know how a task is listed, stopped and collected.

Specification: basic/utilities/tasks (2025-11-25 only).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcphost.host.connections.connection import Connection
from mcphost.host.tool_calls.call import ToolCall
from mcphost.protocol.eras.revisions import offers

if TYPE_CHECKING:
    from mcphost.protocol.models.tools import Task


@dataclass(frozen=True, slots=True)
class KeptTask:
    """A task as its server told of it last; ``call`` is None where it was begun in another run or by somebody else."""

    server: str
    task: Task
    call: ToolCall | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What tells it apart from every other."""
        return self.server, self.task.task_id

    @property
    def tool(self) -> str | None:
        """The tool that runs, where that is known: a server does not say."""
        return None if self.call is None else self.call.request.tool


def keeps_tasks(connection: Connection) -> bool:
    """Did this server say, in its session, that it has tasks?"""
    session = connection.session
    return connection.ready and session is not None and offers("tasks", session.server.capabilities, session.revision)


def kept_tasks(server: str, told: Iterable[Task] | None, calls: Iterable[ToolCall]) -> list[KeptTask]:
    """The tasks a server told of, in its order, with their calls; None: those of these calls, as last told."""
    begun: dict[str, ToolCall] = {}
    for call in calls:
        # Who only collects a task is not the one who began it.
        if call.task is not None and call.request.server == server and call.request.task is None:
            begun[call.task.task_id] = call
    if told is None:
        return [KeptTask(server, call.task, call) for call in begun.values() if call.task is not None]
    return [KeptTask(server, task, begun.get(task.task_id)) for task in told]
