"""Approvals: listed, revoked, kept, and lapsing."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mcphost.host.tool_calls.call import CallState
from mcphost.tui.consent.call_rows import when_text
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
async def test_a_revoked_grant_makes_the_tool_ask_again() -> None:
    async with on_stage(echo("--harmless"), size=NARROW) as stage:
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
async def test_only_always_outlives_a_restart_of_the_same_command(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with on_stage(echo("--harmless"), state) as stage:
        await stage.ready()
        await allow(stage, "a")
        await allow(stage, "u", "fail")
    async with on_stage(echo("--harmless"), state) as stage:
        await stage.ready()
        assert not await stage.needs_consent(HI)
        call = stage.call("fail")
        await stage.call_dialog()
        await stage.shows("definition unchanged since you allowed it")
        await stage.press("n")
        await stage.ended(call)
    async with on_stage(echo("--harmless", "--name", "other"), state) as stage:
        await stage.ready()
        call = stage.call("echo", HI)
        await stage.call_dialog()
        await stage.shows("CHANGED since you allowed it", "command", "--name other")
        await stage.press("n")
        assert (await stage.ended(call)).state is CallState.DECLINED


@pytest.mark.parametrize(
    ("ago", "words"), [(3, "a moment ago"), (60 * 5, "5 min ago"), (3600 * 7, "7 h ago"), (86_400 * 3, "on ")]
)
def test_what_was_allowed_today_is_told_by_its_age_and_not_by_a_date(ago: int, words: str) -> None:
    assert when_text(datetime.now().astimezone() - timedelta(seconds=ago)).startswith(words)
