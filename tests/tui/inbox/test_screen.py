"""The inbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.host.tool_calls.call import CallState
from mcphost.tui.inbox.screen import InboxScreen
from tests.tui.stage import NARROW, calls_in, echo, on_stage, server, servers

pytestmark = pytest.mark.slow


async def test_parked_questions_are_listed_oldest_first_and_opened_by_enter(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(echo("--record", record), size=NARROW) as stage:
        await stage.ready()
        calls = [stage.call("echo", {"text": f"number {n}"}) for n in range(3)]
        for _ in calls:
            await stage.call_dialog()
            await stage.press("p")
        await stage.gone()
        await stage.shows("3 waiting for you")
        await stage.press("f2", "down", "enter")
        await stage.call_dialog()
        assert "number 1" in stage.text
        await stage.press("y")
        await stage.ended(calls[1])
        await stage.shows("2 waiting for you")
        assert [params["arguments"] for params in calls_in(record)] == [{"text": "number 1"}]
        assert [call.state for call in calls] == [CallState.ASKING, CallState.DONE, CallState.ASKING]


@pytest.mark.hostile("P09")
async def test_n_declines_one_and_shift_n_all_of_a_server_while_the_list_follows() -> None:
    async with on_stage(servers(one=server("echo.py"), two=server("echo.py"))) as stage:
        await stage.ready()
        await stage.press("f2")
        await stage.at(InboxScreen)
        await stage.shows("Nothing waits for you")
        calls = [stage.call("echo", {"text": "x"}, name) for name in ("one", "one", "two", "one")]
        await stage.shows("two     ")
        await stage.until(lambda app: len(app.approver.open) == 4)
        await stage.press("n")
        assert (await stage.ended(calls[0])).state is CallState.DECLINED
        await stage.press("N")
        await stage.ended(calls[3])
        assert [call.state.ended for call in calls] == [True, True, False, True]
        calls[2].cancel()
        await stage.shows("Nothing waits for you")
        await stage.press("escape")
        await stage.gone()
