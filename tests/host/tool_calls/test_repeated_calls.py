"""Repeated calls: their runs, what is counted of them, and their end. The runs follow a script, and so does time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcphost.errors import ConnectionLost, Declined, McphostError, RequestTimeout
from mcphost.host.background import BackgroundTasks
from mcphost.host.events import Alarmed, EventBus, RepetitionChanged
from mcphost.host.tool_calls.call import CallRequest, CallState, ToolCall
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.host.tool_calls.repeated_calls import MOST_AT_ONCE, RepeatedCall, RepeatedCallService, read_seconds
from mcphost.protocol.models.tools import CallToolResult

Outcome = str | McphostError | None
"""The text that a run answers, its error, or None for a run that goes on."""


def answer(text: str, **more: Any) -> CallToolResult:
    return CallToolResult.read({"content": [{"type": "text", "text": text}], **more})


class Script:
    """Runs calls as the script says, one outcome each; the times between them pass at once, but for the last."""

    def __init__(self, *outcomes: Outcome | CallToolResult) -> None:
        self.outcomes = list(outcomes)
        self.registry, self.bus, self.now = CallRegistry(), EventBus(), 0.0
        self.begun: list[ToolCall] = []
        self.waited: list[float] = []
        self.events = 0
        self.resting = asyncio.Event()
        """Set once the script is at its end."""
        self.alarms: list[str] = []
        self.bus.observe(self._changed, RepetitionChanged)
        self.bus.observe(lambda event: self.alarms.append(event.text), Alarmed)

    def _changed(self, _: RepetitionChanged) -> None:
        self.events += 1

    def begin(self, request: CallRequest) -> ToolCall:
        call = self.registry.add(request)
        call._clock = lambda: self.now
        call.attach(asyncio.create_task(self._run(call, self.outcomes.pop(0))))
        self.begun.append(call)
        return call

    async def _run(self, call: ToolCall, outcome: Outcome | CallToolResult) -> None:
        try:
            if not isinstance(outcome, Declined):
                call.sent(call.arguments)
            self.now += 0.1 * len(self.begun)
            if outcome is None:
                self.resting.set()
                await asyncio.Event().wait()
            elif isinstance(outcome, McphostError):
                call.failed(outcome)
            else:
                call.answered(answer(outcome) if isinstance(outcome, str) else outcome, None)
        except asyncio.CancelledError:
            call.cancelled()
        call.finished.set()
        self.registry.ended(call)

    async def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        if not self.outcomes:
            self.resting.set()
            await asyncio.Event().wait()


@asynccontextmanager
async def repeating(
    script: Script, times: int | None = None
) -> AsyncIterator[tuple[RepeatedCallService, RepeatedCall]]:
    """Repeat a call until the script has come to its end."""
    background = BackgroundTasks()
    await background.open()
    service = RepeatedCallService(script.begin, script.registry.forget, background, script.bus, script.wait)
    repeated = service.begin(CallRequest("a", "echo", {"text": "x"}), 5.0, times)
    (task,) = service._tasks.values()
    resting = asyncio.create_task(script.resting.wait())
    await asyncio.wait([task, resting], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield service, repeated
    finally:
        resting.cancel()
        service.stop_all()
        await background.close()


async def test_runs_follow_each_other_with_the_same_time_between() -> None:
    script = Script("a", "a", "a")
    async with repeating(script) as (_, repeated):
        assert (repeated.runs, script.waited, repeated.end) == (3, [5.0] * 3, "")
        assert [round(each, 3) for each in repeated.latencies] == [0.1, 0.2, 0.3]
        assert round(repeated.median, 3) == 0.2


async def test_no_run_begins_before_the_last_one_ended() -> None:
    script = Script("a", None)
    async with repeating(script) as (_, repeated):
        assert (len(script.begun), repeated.runs, script.waited) == (2, 1, [5.0])


async def test_answers_that_differ_from_the_one_before_are_named() -> None:
    async with repeating(Script("a", "a", "b", "b", "a")) as (_, repeated):
        assert (repeated.answers, repeated.changes, [*repeated.changed_runs]) == (5, 2, [3, 5])
        assert repeated.difference is not None
        assert [(each.run, each.result["content"][0]["text"]) for each in repeated.difference] == [(4, "b"), (5, "a")]


async def test_a_change_of_meta_alone_is_none() -> None:
    async with repeating(Script(answer("a", _meta={"at": 1}), answer("a", _meta={"at": 2}))) as (_, repeated):
        assert repeated.changes == 0


async def test_runs_between_equal_answers_are_forgotten() -> None:
    """The list of calls keeps the first run, the changes and the last run."""
    script = Script("a", "a", "a", "a", "b", "b", "b")
    async with repeating(script):
        assert list(script.registry.calls) == [1, 4, 5, 7]


async def test_each_run_knows_the_arguments_the_user_edited() -> None:
    script = Script("a", "a")
    begin = script.begin

    def edited(request: CallRequest) -> ToolCall:
        call = begin(request)
        if len(script.begun) == 1:
            call.arguments = {"text": "edited"}
        return call

    script.begin = edited  # type: ignore[method-assign]
    async with repeating(script):
        assert script.begun[1].request.arguments == {"text": "edited"}


@pytest.mark.parametrize(
    ("outcomes", "end"),
    [
        (["a", Declined("not today", by="user", rule="", reason="")], "not today"),
        (["a", ConnectionLost("it is gone")], "it is gone"),
        ([RequestTimeout("late", 1.0)] * 3, "3 runs failed in a row"),
    ],
)
async def test_it_ends_with_a_reason(outcomes: list[Outcome], end: str) -> None:
    script = Script(*outcomes)
    async with repeating(script) as (service, repeated):
        assert (repeated.end, service.going_on) == (end, [])
        assert script.alarms == [f"a:echo is no longer repeated: {end}"]


async def test_a_success_between_failures_starts_the_count_again() -> None:
    late = RequestTimeout("late", 1.0)
    async with repeating(Script(late, late, "a", late, late)) as (_, repeated):
        assert (repeated.runs, repeated.end) == (5, "")


async def test_it_ends_after_so_many_times() -> None:
    script = Script("a", "a", "a")
    async with repeating(script, times=2) as (_, repeated):
        assert (repeated.runs, repeated.end, script.alarms) == (2, "all runs are done", [])


async def test_a_cancelled_run_ends_it() -> None:
    script = Script("a", None)
    async with repeating(script) as (service, repeated):
        script.begun[1].cancel()
        await asyncio.gather(*service._tasks.values())
        assert repeated.end == "run 2 was cancelled"


async def test_stopping_it_between_two_runs_begins_no_other() -> None:
    script = Script("a")
    async with repeating(script) as (service, repeated):
        tasks = list(service._tasks.values())
        service.stop(repeated)
        await asyncio.wait(tasks)
        assert (repeated.end, repeated.runs, len(script.begun)) == ("you stopped it", 1, 1)


async def test_stopping_it_leaves_a_run_that_was_sent() -> None:
    script = Script("a", None)
    async with repeating(script) as (service, repeated):
        service.stop(repeated)
        assert script.begun[1].state is CallState.RUNNING
        script.begun[1].cancel()
        await asyncio.gather(*service._tasks.values())
        assert (repeated.end, repeated.runs) == ("you stopped it", 2)


async def test_only_a_few_are_repeated_at_once() -> None:
    script = Script("a", *[None] * MOST_AT_ONCE)
    async with repeating(script) as (service, _):
        assert service.possible
        for _ in range(MOST_AT_ONCE - 1):
            service.begin(CallRequest("a", "echo", {}), 5.0)
        assert not service.possible


@pytest.mark.parametrize("text", ["", "soon", "0.5", "0", "-3", "nan", "inf", "86401"])
def test_other_times_between_two_runs_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="seconds"):
        read_seconds(text)
