"""A repeated call on screen: the question, the runs, the changes, and the end."""

from __future__ import annotations

import asyncio
import time

from mcphost.errors import ConnectionLost
from mcphost.host.consent.repetition import Repetition
from mcphost.host.tool_calls.call import CallRequest, ToolCall
from mcphost.host.tool_calls.repeated_calls import RepeatedCall
from mcphost.protocol.models.tools import CallToolResult
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.results.repetition_row import changes_text, state_text
from mcphost.tui.results.view import Tab
from mcphost.tui.tools.repetition_seconds import RepetitionScreen
from tests.tui.stage import NARROW, on_stage


def after_runs(*answers: str) -> RepeatedCall:
    """A call whose runs took 12 ms each."""
    repeated = RepeatedCall(1, CallRequest("demo", "echo", {}), Repetition(5))
    for number, text in enumerate(answers, 1):
        now = iter((0.0, 0.0, 0.012))
        call = ToolCall(number, repeated.request, lambda now=now: next(now))  # type: ignore[misc]
        call.sent({})
        call.answered(CallToolResult.read({"content": [{"type": "text", "text": text}]}), None)
        repeated.take(call)
    return repeated


def test_the_row_counts_runs_and_names_those_that_changed() -> None:
    repeated = after_runs("a", "a", "b", "a")
    assert state_text(repeated).plain == "↻ every 5 s · 4 runs · last 12 ms · median 12 ms"
    assert changes_text(repeated).plain == "≠ 2 of 4 answers differ from the one before: runs 4, 3"


def test_the_row_says_that_nothing_changed() -> None:
    assert changes_text(after_runs("a", "a")).plain == "all 2 answers are the same"


def test_the_row_of_a_repetition_that_ended_has_another_mark() -> None:
    repeated = after_runs("a")
    call = ToolCall(2, repeated.request, time.monotonic)
    call.sent({})
    call.failed(ConnectionLost("it is gone"))
    repeated.take(call)
    assert state_text(repeated).plain.startswith("■ every 5 s · 2 runs · ")


async def test_a_call_repeats_until_it_is_stopped() -> None:
    async with on_stage(size=NARROW) as stage:
        await stage.ready()
        next_run = asyncio.Event()

        async def wait(_: float) -> None:
            await next_run.wait()
            next_run.clear()

        repeated_calls, result = stage.host.repeated_calls, (await stage.app.main.tools.bench()).result
        repeated_calls._wait = wait
        await stage.open_tool("read_instruments")
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended()
        await stage.press("R")
        await stage.at(RepetitionScreen)
        await stage.write("0")
        await stage.press("enter")
        await stage.shows("the time between two runs is 1 to 86,400 seconds")
        await stage.press("backspace", "7", "enter")
        await stage.call_dialog()
        await stage.shows("repeats", "every 7 s until you stop it")
        await stage.press("y")
        await stage.shows("every 7 s · 1 run ", "changes between answers are counted here")
        await stage.press("3")
        lens = stage.call("fit_lens", {"lens": "first-order"})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(lens)
        next_run.set()
        await stage.shows("1 of 2 answers differs from the one before: run 2", "x stop repeating")
        assert result.tab is Tab.RAW
        await stage.press("d")
        await stage.at(ReaderScreen)
        await stage.shows("run 1 and run 2", "first-order")
        await stage.press("escape", "h")
        assert "↻ read_instruments · every 7 s" in stage.top
        next_run.set()
        await stage.until(lambda _: repeated_calls.going_on[0].runs == 3)
        await stage.press("t", "f9", "x")
        await stage.shows("3 runs", "ended: you stopped it")
        assert "↻" not in stage.top
