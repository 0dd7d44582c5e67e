"""Approvals: listed, revoked, kept, and lapsing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.host.tool_calls.call import CallState
from mcphost.tui.consent.grants import GrantsScreen
from tests.tui.stage import NARROW, Stage, echo, on_stage

pytestmark = pytest.mark.slow
HI = {"text": "hi"}


async def allow(stage: Stage, key: str, tool: str = "echo") -> None:
    call = stage.call(tool, HI if tool == "echo" else {})
    await stage.call_dialog()
    await stage.press(key)
    await stage.ended(call)
    await stage.gone()


@pytest.mark.hostile("P10")
@pytest.mark.requirement("SEC-01", "TOOLS-29")
async def test_a_grant_is_listed_and_once_taken_back_the_tool_is_asked_about_again() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("g")
        await stage.at(GrantsScreen)
        await stage.shows("Nothing is allowed without asking")
        await stage.press("escape")
        await allow(stage, "a")
        await allow(stage, "u", "fail")
        assert not await stage.needs_consent(HI)
        await stage.press("g")
        await stage.shows("echo", "always", "fail", "until mcphost exits")
        await stage.press("x")
        await stage.until(lambda _: "always" not in stage.text)
        await stage.press("escape")
        assert await stage.needs_consent(HI)


@pytest.mark.hostile("P10")
async def test_always_outlives_a_restart_until_exit_does_not_and_another_command_lapses_both(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with on_stage(echo(), state) as stage:
        await stage.ready()
        await allow(stage, "a")
        await allow(stage, "u", "fail")
    async with on_stage(echo(), state) as stage:
        await stage.ready()
        assert not await stage.needs_consent(HI)
        call = stage.call("fail")
        await stage.call_dialog()
        await stage.shows("definition unchanged since you allowed it")
        await stage.press("n")
        await stage.ended(call)
    async with on_stage(echo("--name", "other"), state) as stage:
        await stage.ready()
        call = stage.call("echo", HI)
        await stage.call_dialog()
        await stage.shows("CHANGED since you allowed it", "command", "--name other")
        await stage.press("n")
        assert (await stage.ended(call)).state is CallState.DECLINED
