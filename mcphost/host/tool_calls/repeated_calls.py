"""Calls that run again and again, with the durations of their runs and the changes between their answers."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Final, NamedTuple

from mcphost.errors import ConnectionLost
from mcphost.host.background import BackgroundTasks
from mcphost.host.consent.repetition import Repetition
from mcphost.host.events import EventBus, RepetitionChanged
from mcphost.host.internal_error import internal_error
from mcphost.host.tool_calls.call import CallRequest, CallState, ToolCall

_log = logging.getLogger(__name__)

LEAST_SECONDS: Final = 1.0
"""Seconds between two runs: with less, a mistyped number would be an attack on the server."""

MOST_SECONDS: Final = 86_400.0
"""Seconds between two runs: a day, since mcphost hardly runs for longer."""

KEPT_RUNS: Final = 60
"""Runs whose duration and number are kept."""

MOST_FAILURES: Final = 3
"""Runs that fail in a row before a repetition ends: what fails so often needs its user."""

MOST_AT_ONCE: Final = 10
"""Repetitions that go on at the same time; a user loses sight of more."""

KEPT_REPETITIONS: Final = 20
"""Repetitions that are kept, with those that ended."""

STOPPED: Final = "you stopped it"
ALL_DONE: Final = "all runs are done"


def read_seconds(text: str) -> float:
    """The seconds between two runs. Raises ValueError with a sentence."""
    try:
        seconds = float(text)
    except ValueError:
        raise ValueError(f"“{text}” is not a number of seconds") from None
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:  # NaN, too
        raise ValueError(f"the time between two runs is {LEAST_SECONDS:g} to {MOST_SECONDS:,.0f} seconds")
    return seconds


class RunAnswer(NamedTuple):
    run: int
    """The number of the run, from 1."""
    result: Mapping[str, Any]
    """As it came."""


class RepeatedCall:
    """A call that is repeated. ``words`` say how often and until when."""

    def __init__(self, number: int, request: CallRequest, repetition: Repetition) -> None:
        self.number, self.seconds, self.times = number, repetition.seconds, repetition.times
        self.often, self.words = repetition.often, repetition.words
        self.request = replace(request, repetition=repetition)
        """The next run."""
        self.call: ToolCall | None = None
        """The newest run."""
        self.ended_call: ToolCall | None = None
        """The newest run that has ended."""
        self.runs = self.answers = self.changes = 0
        """The runs that ended, those with an answer, and the answers that differ from the one before."""
        self.latencies: deque[float] = deque(maxlen=KEPT_RUNS)
        """Seconds of the last runs that were sent, oldest first."""
        self.changed_runs: deque[int] = deque(maxlen=KEPT_RUNS)
        """The numbers of the last runs whose answer differs from the one before."""
        self.difference: tuple[RunAnswer, RunAnswer] | None = None
        """The last two answers that follow each other and differ."""
        self.end = ""
        """Why it ended, in words; may hold foreign text. Empty while it goes on."""
        self._last_answer: RunAnswer | None = None
        self._failures = 0

    @property
    def median(self) -> float:
        """The median duration of the last runs in seconds."""
        return sorted(self.latencies)[len(self.latencies) // 2] if self.latencies else 0.0

    @property
    def waits(self) -> bool:
        """True between two runs."""
        return not self.end and self.call is self.ended_call

    def take(self, call: ToolCall) -> None:
        """Take the outcome of the run that has ended."""
        self.runs += 1
        self.ended_call = call
        if call.sent_at is not None:
            self.latencies.append(call.elapsed)
        if call.outcome is not None:
            self._take_answer(call, RunAnswer(self.runs, call.outcome.raw))
        self._failures = 0 if call.state is CallState.DONE else self._failures + 1
        self.end = self.end or self._why_end(call)
        # The user may have edited the arguments of the first run.
        answer = None if self._last_answer is None else self._last_answer.result
        self.request = replace(self.request, arguments=call.arguments, answer_before=answer)

    def _take_answer(self, call: ToolCall, answer: RunAnswer) -> None:
        self.answers += 1
        if self._last_answer is not None and not call.same_as_before:
            self.changes += 1
            self.changed_runs.append(answer.run)
            self.difference = self._last_answer, answer
        self._last_answer = answer

    def _why_end(self, call: ToolCall) -> str:
        """Why no run follows this one; empty if one does."""
        if call.state is CallState.CANCELLED:
            return f"run {self.runs} was cancelled"
        if call.sent_at is None or isinstance(call.error, ConnectionLost):  # the next run would end like this one
            return str(call.error)
        if self._failures == MOST_FAILURES:
            return f"{MOST_FAILURES} runs failed in a row"
        return ALL_DONE if self.runs == self.times else ""


class RepeatedCallService:
    """Repeats calls: one run after the other, with the same time between two of them.

    ``begin_call`` begins a run, ``forget_call`` forgets one that ended.
    """

    def __init__(
        self,
        begin_call: Callable[[CallRequest], ToolCall],
        forget_call: Callable[[ToolCall], None],
        background: BackgroundTasks,
        bus: EventBus,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._begin_call, self._forget_call, self._background, self._bus = begin_call, forget_call, background, bus
        self._wait = wait
        self._all: dict[int, RepeatedCall] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._numbers = count(1)

    @property
    def going_on(self) -> list[RepeatedCall]:
        """The repetitions that have not ended, oldest first."""
        return [each for each in self._all.values() if not each.end]

    @property
    def possible(self) -> bool:
        """True if one more call can be repeated."""
        return len(self.going_on) < MOST_AT_ONCE

    def of(self, call: ToolCall) -> RepeatedCall | None:
        """The repetition whose newest run, or newest one that has ended, is this call."""
        return next((each for each in self._all.values() if call in (each.call, each.ended_call)), None)

    def begin(self, request: CallRequest, seconds: float, times: int | None = None) -> RepeatedCall:
        """Begin a call, and repeat it ``seconds`` after each end. Returns with the first run begun."""
        repeated = RepeatedCall(next(self._numbers), request, Repetition(seconds, times))
        self._all[repeated.number] = repeated
        ended = [each.number for each in self._all.values() if each.end]
        for number in ended[: max(0, len(self._all) - KEPT_REPETITIONS)]:
            del self._all[number]
        repeated.call = self._begin_call(repeated.request)
        task = self._background.start(self._run(repeated, repeated.call), f"repeated call {repeated.number}")
        self._tasks[repeated.number] = task
        task.add_done_callback(lambda _: self._tasks.pop(repeated.number, None))
        self._publish(repeated)
        return repeated

    def stop(self, repeated: RepeatedCall, why: str = STOPPED) -> None:
        """End it. A run that was sent goes on to its end; one that was not is cancelled."""
        if repeated.end:
            return
        waits, repeated.end = repeated.waits, why
        if waits:
            self._cancel(repeated)
        elif repeated.call is not None and repeated.call.sent_at is None:
            repeated.call.cancel()
        self._publish(repeated)

    def stop_all(self) -> None:
        """End all without waiting for runs that go on, since mcphost exits."""
        for repeated in self.going_on:
            repeated.end = "mcphost exits"
        for task in list(self._tasks.values()):
            task.cancel()

    def _cancel(self, repeated: RepeatedCall) -> None:
        task = self._tasks.get(repeated.number)
        if task is not None:
            task.cancel()

    async def _run(self, repeated: RepeatedCall, call: ToolCall) -> None:
        try:
            while True:
                await call.ended()
                before = repeated.ended_call
                repeated.take(call)
                if before is not None and before.same_as_before and call.same_as_before:
                    self._forget_call(before)  # else the runs would push all other calls out
                self._publish(repeated)
                if repeated.end:
                    return self._warn(repeated)
                await self._wait(repeated.seconds)
                call = repeated.call = self._begin_call(repeated.request)
                self._publish(repeated)
        except Exception as error:  # a bug in here must end neither calls nor servers
            _log.exception("repetition %d did not go on", repeated.number)
            repeated.end = repeated.end or str(internal_error(error))
            self._publish(repeated)

    def _warn(self, repeated: RepeatedCall) -> None:
        """Say that a call is no longer repeated, if the user may count on it."""
        if repeated.runs > 1 and repeated.end not in (STOPPED, ALL_DONE):
            name = f"{repeated.request.server}:{repeated.request.tool}"
            self._bus.alarm(f"{name} is no longer repeated: {repeated.end}")

    def _publish(self, repeated: RepeatedCall) -> None:
        self._bus.publish(RepetitionChanged(repeated.number))
