"""The list of calls: those of earlier runs, their results, forms and differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcphost.config import Config
from mcphost.config.policy import Policy
from mcphost.host.history.past_call import PAGE, PastCall
from mcphost.host.tool_calls.call import CallState
from mcphost.tui.kit.ranking import Search
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.results.view import ResultView
from mcphost.tui.tools.call_list import _past_row
from tests.host.history.histories import SECRET, run
from tests.tui.stage import NARROW, Stage, echo, on_stage

pytestmark = pytest.mark.slow


def allowed() -> Config:
    return echo().model_copy(update={"policy": Policy(default="allow")})


async def yesterday(state: Path, *texts: str, rows: list[Any] | None = None) -> None:
    """A run with a call of `echo` for each text, with a table as its result if ``rows`` are given."""
    async with run(state / "history.sqlite") as before:
        for text in texts:
            said = [{"type": "text", "text": text}]
            answer = {"content": said} if rows is None else {"content": [], "structuredContent": rows}
            before.add({"text": text}, answer, tool="echo", server="echo")


async def opened(stage: Stage, *words: str) -> None:
    """Open the tab of calls."""
    await stage.ready()
    await stage.press("h")
    await stage.shows(*words)


def calls_sent(stage: Stage) -> list[Any]:
    return [call.arguments for call in stage.host.tool_calls.calls.values()]


async def test_a_call_of_an_earlier_run_is_found_opened_and_run_again(tmp_path: Path) -> None:
    await yesterday(tmp_path, "first words", "other words", rows=[{"ship": "first"}, {"ship": "second"}])
    async with on_stage(allowed(), tmp_path, size=NARROW) as stage:
        await opened(stage, "2 earlier", "● ", "echo", "words")
        await stage.press("slash")
        await stage.write("first")
        await stage.until(lambda app: len(app.main.calls.rows.items) == 1)
        await stage.press("enter")
        await stage.shows("ship", "second")
        await stage.until(lambda app: app.main.query_one(ResultView).has_focus_within)
        assert calls_sent(stage) == []
        await stage.press("ctrl+r")
        call = await stage.ended()
        assert (call.number, call.arguments, call.state) == (1, {"text": "first words"}, CallState.DONE)


async def test_a_form_is_filled_from_an_earlier_call_but_for_masked_values(tmp_path: Path) -> None:
    await yesterday(tmp_path, "plain words", SECRET)
    async with on_stage(allowed(), tmp_path) as stage:
        await opened(stage, "2 earlier", "•••")
        await stage.press("ctrl+r")  # a masked value cannot be sent, so this too opens the form
        await stage.until(lambda app: app.main.tools.step == "form")
        bench = await stage.app.main.tools.bench()
        assert bench.form.values_so_far() == {}
        assert stage.notified == ["Write again what the history masks: text"]
        assert calls_sent(stage) == []
        await stage.press("escape", "h", "down", "a")
        await stage.until(lambda _: "plain words" in str(bench.form.values_so_far()))
        assert len(stage.notified) == 1


async def test_two_results_of_a_tool_are_compared(tmp_path: Path) -> None:
    await yesterday(tmp_path, "one\ntwo\nthree", "one\n2\nthree")
    async with on_stage(allowed(), tmp_path) as stage:
        await opened(stage, "one")
        await stage.press("m")
        await stage.shows("≠")
        await stage.press("down", "m")
        await stage.at(ReaderScreen)
        await stage.shows("-two", "+2", " three")


async def test_more_earlier_calls_are_read_on_the_way_down(tmp_path: Path) -> None:
    await yesterday(tmp_path, *map(str, range(PAGE + 10)))
    async with on_stage(allowed(), tmp_path) as stage:
        await opened(stage, f"{PAGE + 10} earlier")
        rows = stage.app.main.calls.rows
        assert len(rows.items) == PAGE
        await stage.press("end")
        await stage.until(lambda _: len(rows.items) == PAGE + 10)


@pytest.mark.parametrize(
    ("state", "words"),
    [(CallState.DONE, 'ships_in_sight {"kind": "any"'), (CallState.FAILED, 'failed  {"kind": "any"')],
)
def test_a_narrow_row_has_room_for_arguments(state: CallState, words: str) -> None:
    arguments = '{"kind": "any", "within_miles": 20}'
    call = PastCall(1, "run", 1, 0.0, "demo", "demo", "ships_in_sight", "you", state, 0.017, True, "", arguments)
    row = _past_row(call, 76, (4, 14), Search(), marked=False).plain
    assert words in row
    assert "done" not in row
