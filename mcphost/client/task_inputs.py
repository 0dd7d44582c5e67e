"""Answers what one task needs, each input once, while somebody polls the task.

Specification: extensions/tasks (from 2026-07-28 on).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Final

from mcphost.client.deadlines import Deadline, TimeBudget
from mcphost.client.rounds import InputRound, RoundCallback
from mcphost.client.server_requests import InputPurpose
from mcphost.errors import ServerError
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.results import InputRequired, ServerInput

if TYPE_CHECKING:
    from mcphost.client.client import Client

METHOD: Final = "tasks/update"


@dataclass(slots=True)
class GivenInputs:
    """What a call needed so far, in this session and in earlier ones."""

    keys: set[str] = field(default_factory=set)
    """Of the inputs that its task was given."""
    rounds: int = 0
    """Those before it became a task, and those of the task."""


class TaskInputs:
    """The inputs of task ``task_id``, which tool ``name`` began.

    ``given`` is continued. The clock of ``limit`` stops while a person or a model is asked. ``wake`` is called
    if that fails; `answer` then raises why.
    """

    def __init__(
        self,
        client: Client,
        task_id: str,
        name: str,
        given: GivenInputs,
        limit: Deadline,
        budget: TimeBudget,
        report: RoundCallback,
        wake: Callable[[], None],
    ) -> None:
        self._client, self._task_id, self._name = client, task_id, name
        self._given, self._asked = given, set(given.keys)
        self._limit, self._budget, self._report, self._wake = limit, budget, report, wake
        self._due: list[InputRound] = []
        self._declined: list[object] = []
        self._work: asyncio.Task[None] | None = None

    def answer(self, inputs: Mapping[str, ServerInput]) -> None:
        """Begin to answer those that nobody was asked for yet.

        Raises InvalidResult if they are too many, and why an earlier one was not given.
        """
        if self._work is not None and self._work.done():
            self._work.result()
        new = {key: needed for key, needed in inputs.items() if key not in self._asked}
        if not new:
            return
        self._asked.update(new)
        self._given.rounds += 1
        current = InputRound(self._given.rounds, InputRequired(new, None))
        self._client.check_round(current)
        self._due.append(current)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer_due(), name="answer a task")
            self._work.add_done_callback(lambda _: self._wake())

    async def aclose(self) -> None:
        """Withdraw what is still asked for."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)

    async def _answer_due(self) -> None:
        before = self._budget.left = self._limit.left
        try:
            with self._limit.paused():
                while self._due:
                    await self._answer_round(self._due.pop(0))
        finally:
            self._limit.shift(self._budget.left - before)  # what mcphost itself waited for counts

    async def _answer_round(self, current: InputRound) -> None:
        await self._report(current)
        inputs = current.needed.inputs
        purpose = InputPurpose("tools/call", self._name, current.number, self._budget, self._declined)
        async for key, answer in self._client.answer_inputs(inputs, purpose):
            with suppress(ServerError):  # the task no longer needs it; its next status tells how it goes on
                await self._client.request(METHOD, {"taskId": self._task_id, "inputResponses": {key: answer}})
            self._given.keys.add(key)
