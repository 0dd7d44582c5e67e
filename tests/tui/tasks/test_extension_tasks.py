"""Tasks of a modern server on screen: begun in one run, found and collected in the next; and tools for apps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcphost.config import Config
from mcphost.host.tool_calls.call import CallState
from mcphost.tui.elicitation.form import FormElicitationScreen
from tests.tui.stage import NARROW, WIDE, on_stage, server, servers
from tests.tui.tasks.errands import begun, listed

pytestmark = pytest.mark.slow


def errands(folder: Path) -> Config:
    config = servers(errands=server("modern_errands.py", "--keep", folder / "kept"))
    return config.model_copy(update={"policy": config.policy.model_copy(update={"default": "allow"})})


@pytest.mark.requirement("XTASK-09")
@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_a_task_that_was_left_is_listed_and_collected_in_the_next_run(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    config, state = errands(tmp_path), tmp_path / "state"
    async with on_stage(config, state, size=size) as stage:
        await stage.ready()
        call = await begun(stage)
        await stage.until(lambda _: stage.host.tasks.outlives(call))
    assert call.state is CallState.CANCELLED
    async with on_stage(config, state, size=size) as stage:
        await stage.ready()
        screen = await listed(stage)
        await stage.shows("research", "◐ working", "of an earlier run", "5 min")
        assert [each.tool for each in screen.rows.items] == ["research"]
        await stage.press("enter")
        await stage.shows("esc or x stops waiting; the task continues")
        await stage.ended(stage.call("finish"))
        await stage.until(lambda _: next(iter(stage.host.tool_calls.calls.values())).state is CallState.DONE)
    assert json.loads((tmp_path / "kept").read_text())["task-1"]["status"] == "completed"


@pytest.mark.requirement("XTASK-04")
async def test_a_task_asks_for_what_it_needs_in_the_same_form_as_a_call(tmp_path: Path) -> None:
    async with on_stage(errands(tmp_path), size=WIDE) as stage:
        await stage.ready()
        call = stage.call("travel")
        await stage.at(FormElicitationScreen)
        await stage.shows("Which city?")
        await stage.write("Rome")
        await stage.press("ctrl+r")
        await stage.shows("Send this to “errands”?", '"city": "Rome"')
        await stage.press("y")
        assert (await stage.ended(call)).state is CallState.DONE
    assert call.outcome is not None
    assert call.outcome.raw["content"][0]["text"] == "to Rome"


@pytest.mark.requirement("EXT-03")
async def test_tools_for_an_apps_user_interface_are_marked(tmp_path: Path) -> None:
    async with on_stage(errands(tmp_path), size=WIDE) as stage:
        await stage.ready()
        await stage.press("t")
        await stage.shows("app only")
        await stage.press("/", *"panel")
        await stage.shows("has a UI that mcphost cannot show")
