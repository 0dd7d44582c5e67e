"""Sends a call that was allowed, directly or as a task, and collects a task in the next session where one is lost.

Specification: server/tools, basic/utilities/tasks, extensions/tasks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.client import Client, RequestTimeouts
from mcphost.client.tasks import new_token
from mcphost.errors import (
    CapabilityMissing,
    ConnectionLost,
    InputNotGiven,
    McphostError,
    RequestTimeout,
    ServerError,
    ServerNotReady,
    SessionExpired,
)
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.connection import Connection
from mcphost.host.events import CallChanged
from mcphost.host.reporting import Reporting
from mcphost.host.tool_calls.call import ToolCall
from mcphost.protocol.models.tasks import ExtensionTask
from mcphost.protocol.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from mcphost.client.rounds import InputRound
    from mcphost.protocol.models.progress import Progress
    from mcphost.protocol.models.tasks import Task
    from mcphost.protocol.models.tools import CallToolResult, Tool

CHANGED: Final = "the tool's definition changed in the meantime; look at it, and run it again"

LOST: Final = (ConnectionLost, SessionExpired, ServerNotReady)
"""The session is gone; a task may still be there."""


class CallSending:
    """One call on its way over ``connection``; ``timeouts`` is counted from when it was sent.

    ``values`` are the arguments with the values of references.
    ``started`` is called with a task that can be found again only by its id, once it began; ``since`` is when that was,
    in seconds since 1970, if it began in another run.
    """

    def __init__(
        self,
        call: ToolCall,
        values: Mapping[str, Any],
        connection: Connection,
        timeouts: RequestTimeouts,
        reporting: Reporting,
        started: Callable[[Task], None],
        since: float | None,
    ) -> None:
        self._call, self._values, self._connection, self._timeouts = call, values, connection, timeouts
        self._audit, self._bus, self._mask = reporting.audit, reporting.bus, reporting.mask
        self._started, self._since = started, since
        self._config = connection.config

    @cached_property
    def _token(self) -> str:
        return new_token()

    async def run(self, client: Client, tool: Tool) -> CallToolResult:
        """Call the tool. Raises as the client does."""
        try:
            return await self._begin(client, tool)
        except (asyncio.CancelledError, RequestTimeout):
            if self._call.task is not None:  # whoever stops waiting for a task of their own stops it
                self._note("cancel" if self._cancels() else "left")
            raise

    async def _begin(self, client: Client, tool: Tool) -> CallToolResult:
        try:
            return await self._send(client, tool)
        except ServerError as error:
            if error.code != ErrorCode.HEADER_MISMATCH or self._call.task is not None:
                raise
            # The server refused before it did anything: its list shows which headers it wants now.
            await self._connection.relist(CatalogKind.TOOLS)
            if not self._is_as_shown(tool):
                raise
            return await self._send(client, tool)
        except LOST as lost:
            return await self._again(lost)

    async def _send(self, client: Client, tool: Tool) -> CallToolResult:
        call = self._call

        async def report(current: InputRound) -> None:
            await self._round_came(current)
            if not current.answered:
                return
            await self._connection.current(CatalogKind.TOOLS)  # a change may have been announced before the questions
            if not self._is_as_shown(tool):
                needed = next((each.method for each in current.needed.inputs.values()), "tools/call")
                raise InputNotGiven(needed, CHANGED)

        if not client.tasks.applies_to(tool, preferred=call.request.as_task):
            return await client.call_tool(
                tool.name,
                self._values,
                meta=call.request.meta,
                timeouts=self._timeouts,
                on_progress=self._progressed,
                on_round=report,
            )
        return await client.tasks.call_tool(
            tool.name,
            self._values,
            meta=call.request.meta,
            token=self._token,
            given=call.given,
            cancels=self._cancels,
            timeouts=self._timeouts,
            on_progress=self._progressed,
            on_task=self._task_moved,
            on_round=report,
        )

    def _is_as_shown(self, tool: Tool) -> bool:
        """True if the tool is still the one that was allowed."""
        now = (each for each in self._connection.tools if each.name == tool.name)
        return any(each is tool or each.canonical == tool.canonical for each in now)

    async def collect(self, client: Client, task_id: str) -> CallToolResult:
        """Wait for a task that was begun before. Raises as the client does."""
        try:
            return await self._resume(client, task_id, self._timeouts)
        except LOST as lost:
            return await self._again(lost)

    async def _again(self, lost: McphostError) -> CallToolResult:
        """Collect the task in the next session, and in later ones. Raises the last error if that fails."""
        while self._call.task is not None:
            client = await self._next_session(lost)
            try:
                return await self._resume(client, self._call.task.task_id, self._left(lost))
            except LOST as again:
                lost = again
            except (ServerError, CapabilityMissing) as error:
                if error.method != "tasks/get":
                    raise
                raise ConnectionLost(f"{lost}; after that, the server no longer knew the task: {error}") from None
        raise lost

    async def _resume(self, client: Client, task_id: str, timeouts: RequestTimeouts) -> CallToolResult:
        return await client.tasks.resume(
            task_id,
            cancels=self._cancels,
            name=self._call.request.tool,
            since=self._since,
            token=self._token,
            given=self._call.given,
            timeouts=timeouts,
            on_progress=self._progressed,
            on_task=self._task_moved,
            on_round=self._round_came,
        )

    def _cancels(self) -> bool:
        """True if the task is cancelled when the wait for it ends."""
        return self._call.request.task is None and not self._call.leaving

    async def _next_session(self, lost: McphostError) -> Client:
        call, connection = self._call, self._connection
        call.interrupted = True
        self._note("interrupted")
        self._bus.publish(CallChanged(call.number))
        timeouts = self._left(lost)
        try:
            async with asyncio.timeout(timeouts.hard):
                await connection.settled(retries=True)
        except TimeoutError:
            raise lost from None
        if not connection.ready or connection.config.identity != self._config.identity:  # not a stranger's to know
            raise lost
        return connection.client

    def _left(self, lost: McphostError) -> RequestTimeouts:
        left = self._timeouts.hard - self._call.elapsed
        if left <= 0:
            raise RequestTimeout("tools/call", self._timeouts.hard, hard=True) from lost
        return replace(self._timeouts, hard=left)

    def _progressed(self, progress: Progress) -> None:
        self._call.progress = replace(progress, message=self._masked(progress.message))
        if (report := self._call.request.on_progress) is not None:
            report(progress)
        self._bus.publish(CallChanged(self._call.number))

    async def _round_came(self, current: InputRound) -> None:
        if not current.answered:
            self._call.rounds.append(current)
            self._bus.publish(CallChanged(self._call.number))

    def _task_moved(self, task: Task) -> None:
        call = self._call
        if call.task is None and isinstance(task, ExtensionTask):
            self._since = self._since or time.time()
            self._started(task)
        moved = call.task is None or call.task.status != task.status or call.interrupted
        call.task = task.model_copy(update={"status_message": self._masked(task.status_message)})
        call.interrupted = False
        if moved:
            self._note(task.status)
        self._bus.publish(CallChanged(call.number))

    def _masked(self, words: str | None) -> str | None:
        return None if words is None else self._mask(words)

    def _note(self, status: str) -> None:
        call = self._call
        assert call.task is not None
        record = {"event": "task", "call": call.number, "server": call.request.server, "tool": call.request.tool}
        self._audit.note({**record, "task": call.task.task_id, "status": status})
