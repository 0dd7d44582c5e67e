"""The dialog that allows all read-only tools of a server: what it lists, and when it can be answered."""

from __future__ import annotations

import pytest

from mcphost.host.tool_calls.call import CallState
from mcphost.protocol.models.tools import Tool
from mcphost.tui.consent.grants import GrantsScreen
from mcphost.tui.consent.read_only import ReadOnlyToolsScreen
from mcphost.tui.consent.tool_call import ToolCallScreen
from mcphost.tui.kit.reader import ReaderScreen
from tests.tui.stage import NARROW, Stage, echo, on_stage

pytestmark = pytest.mark.slow

SHIPS = "ships_in_sight"


async def opened(stage: Stage) -> ReadOnlyToolsScreen:
    await stage.until(lambda app: isinstance(app.screen, ReadOnlyToolsScreen) and app.screen.shown_for() >= 0)
    await stage.until(lambda _: "looking for read-only tools" not in stage.text)
    assert isinstance(stage.app.screen, ReadOnlyToolsScreen)
    return stage.app.screen


@pytest.mark.hostile("P07", "P10")
@pytest.mark.requirement("SEC-01", "TOOLS-29", "HOST-04")
async def test_one_answer_allows_all_read_only_tools_until_taken_back() -> None:
    async with on_stage() as stage:
        await stage.ready()
        call = stage.call(SHIPS)
        await stage.call_dialog()
        await stage.press("r")
        dialog = await opened(stage)
        assert "the server says so; mcphost cannot check it" in stage.flat
        await stage.shows("✓ ships_in_sight")
        assert dialog.answers.item is not None
        assert dialog.answers.item.key == "n"
        await stage.press("tab", "enter")
        await stage.at(ReaderScreen)
        await stage.press("escape", "escape")
        await stage.call_dialog()
        assert call.state is CallState.ASKING
        await stage.press("r")
        await opened(stage)
        await stage.press("y")
        assert (await stage.ended(call)).state is CallState.DONE
        assert not await stage.needs_consent({}, SHIPS)
        assert await stage.needs_consent({}, "feed_gulls")
        await stage.press("g")
        await stage.at(GrantsScreen)
        await stage.shows("read-only tools", "until mcphost exits")
        await stage.press("x")
        await stage.shows("Nothing is allowed without asking")
        await stage.press("escape")
        assert await stage.needs_consent({}, SHIPS)


@pytest.mark.hostile("P09")
async def test_a_long_list_must_be_read_before_it_can_be_allowed() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        reads = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
        stage.host.catalog.keep("echo", [Tool.read({"name": f"read_{number}", **reads}) for number in range(40)])
        call = stage.call("read_7")
        await stage.call_dialog()
        await stage.press("r")
        await opened(stage)
        await stage.press("y")
        await stage.shows("space first")
        assert call.state is CallState.ASKING
        await stage.press(*["space"] * 20)
        await stage.shows("read_39")
        await stage.until(lambda app: not app.screen._hint.display)  # type: ignore[attr-defined]
        await stage.press("y")
        await stage.ended(call)
        (grant,) = stage.host.consent.grants()
        assert len(grant.tools) == 40


@pytest.mark.hostile("P07")
@pytest.mark.parametrize(("claims", "offered"), [({}, False), ({"readOnlyHint": True}, True)])
async def test_it_is_offered_by_a_tool_that_claims_to_be_read_only(claims: dict[str, bool], offered: bool) -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        tool = Tool.read({"name": "act", "inputSchema": {"type": "object"}, "annotations": claims})
        stage.host.catalog.keep("echo", [tool])
        stage.call("act")
        await stage.call_dialog()
        assert ("allow all read-only tools" in stage.text) is offered
        await stage.press("r")
        assert isinstance(stage.app.screen, ToolCallScreen) is not offered
