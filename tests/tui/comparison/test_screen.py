"""One server in both eras, and two servers, side by side on screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.config import ComparedServer, ServerConfig
from mcphost.config.surface_lock import SurfaceLock
from mcphost.host.comparison.lock_file import locked_server
from mcphost.host.comparison.report import Row
from mcphost.host.comparison.severity import BREAKING
from mcphost.host.comparison.surface import surface_of
from mcphost.tui.comparison.screen import NARROW as NARROW_ROW
from mcphost.tui.comparison.screen import ComparisonScreen, OtherServerScreen, ToolScreen, row
from mcphost.tui.forms.edit_arguments import EditArgumentsScreen
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.palette import PaletteScreen
from tests.tui.stage import NARROW, WIDE, Stage, demo, on_stage, server, servers
from tests.whole.peers import sdk_runs

pytestmark = pytest.mark.slow

SDK = Path(__file__).parents[2] / "servers" / "sdk.py"
"""A server of both eras as others write them."""


async def compared(stage: Stage) -> ComparisonScreen:
    await stage.at(ComparisonScreen)
    screen = stage.app.screen
    assert isinstance(screen, ComparisonScreen)
    await stage.until(lambda _: screen.report)
    return screen


@pytest.mark.parametrize("size", [NARROW, (120, 36), (200, 60)])
async def test_a_card_leads_to_its_server_in_both_eras_and_back(size: tuple[int, int]) -> None:
    async with on_stage(demo(), size=size) as stage:
        await stage.ready()
        before = stage.host.config
        await stage.press("c", "C")
        screen = await compared(stage)
        await stage.shows("demo in both eras", "legacy", "modern", "2025-11-25", "2026-07-28", "They offer the same.")
        await stage.press("d")
        assert not screen.rows.items
        await stage.press("d", "down", "enter")
        await stage.at(ReaderScreen)
        await stage.shows("legacy:", "2025-11-25", "modern:", "2026-07-28")
        await stage.press("escape", "escape")
        await stage.gone()
        await stage.until(lambda _: list(stage.host.servers) == ["demo"])
        assert stage.host.config == before


async def test_the_latest_call_is_repeated_on_both_sides_each_with_approval() -> None:
    command, *args = sdk_runs(SDK, "stdio")
    async with on_stage(servers(sdk=ServerConfig(command=command, args=tuple(args))), size=WIDE) as stage:
        await stage.ready()
        call = stage.call("weather", {"city": "Rome"})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(call)
        await stage.press("c", "C")
        screen = await compared(stage)
        await stage.press("c")
        for name in ("sdk-legacy", "sdk-modern"):
            await stage.call_dialog()
            await stage.shows(name)
            await stage.press("y")
            await stage.until(lambda _: isinstance(stage.app.screen, ComparisonScreen) or stage.app.questions._dialog)
        await stage.until(lambda _: screen.report and screen.report.answers)
        await stage.shows("Calls: the same answers", "median", "questions asked")


async def test_a_tool_is_called_on_both_sides_with_form_arguments() -> None:
    async with on_stage(demo(), size=WIDE) as stage:
        await stage.ready()
        await stage.press("c", "C")
        screen = await compared(stage)
        await stage.press("c")
        await stage.shows("Call a tool first (t)")
        for message in ("Rome", "Oslo"):
            await stage.press("t")
            await stage.at(ToolScreen)
            assert isinstance(stage.app.screen, ToolScreen)
            names = [tool.name for tool in stage.app.screen.rows.items]
            assert names == sorted(names)
            await stage.press("home", *["down"] * names.index("flash_lamp"), "enter")
            await stage.at(EditArgumentsScreen)
            await stage.shows("both sides › flash_lamp", "ctrl+r call both sides")
            await stage.press("ctrl+u")
            await stage.write(message)
            await stage.press("ctrl+r")
            for name in ("demo-legacy", "demo-modern"):
                await stage.shows(f"on {name}?", message)
                await stage.call_dialog()
                await stage.press("y")
            await stage.at(ComparisonScreen)
            await answered(stage, screen, message)
            assert screen.report is not None
            assert screen.report.answers is not None
            assert screen.report.answers.varying == ()  # calls with other arguments are not compared
            assert screen.rows.item is not None
            assert screen.rows.item.label == "Calls: the same answers"
        calls = list(stage.host.tool_calls.calls.values())
        assert [call.request.arguments["message"] for call in calls] == ["Rome", "Rome", "Oslo", "Oslo"]


async def answered(stage: Stage, screen: ComparisonScreen, message: str) -> None:
    """Wait until both sides answered this message."""
    await stage.until(lambda _: screen._seen and all(message in str(side.calls) for side in screen._seen))


async def test_a_declined_call_is_no_answer() -> None:
    async with on_stage(demo(), size=WIDE) as stage:
        await stage.ready()
        call = stage.call("flash_lamp", {"message": "Rome"})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(call)
        await stage.press("c", "C")
        screen = await compared(stage)
        await stage.press("c")
        await stage.call_dialog()
        await stage.press("n")
        await stage.shows("declined")
        assert screen.report is not None
        assert screen.report.answers is None


async def test_a_server_of_one_era_says_so() -> None:
    async with on_stage(servers(old=server("echo.py")), size=WIDE) as stage:
        await stage.ready()
        await stage.press("c", "C")
        await compared(stage)
        await stage.shows("A side could not be opened.", "answered -32601")


async def test_the_palette_compares_two_servers() -> None:
    config = servers(one=server("echo.py"), two=server("echo.py"))
    async with on_stage(config, size=WIDE) as stage:
        await stage.ready()
        await stage.press("ctrl+p")
        await stage.at(PaletteScreen)
        await stage.write("compare one with")
        await stage.shows("Compare “one” with …")
        await stage.press("enter")
        await stage.at(OtherServerScreen)
        await stage.press("enter")
        screen = await compared(stage)
        assert screen.report is not None
        assert screen.report.same
        await stage.shows("one with two", "They offer the same.")
        assert not any(isinstance(each, ComparedServer) for each in stage.host.config.servers.values())


def test_a_finding_has_the_room_of_its_values_in_a_narrow_row() -> None:
    words = "the server no longer declares resources.subscribe"
    found = Row(words, "true", "-", differs=True, severity=BREAKING)
    assert row(found, NARROW_ROW - 1, 8).plain.split() == ["breaking", *words.split()]
    assert row(found, NARROW_ROW + 10, 8).plain.split() == ["breaking", *words.split(), "true", "-"]


async def test_a_card_shows_the_changes_since_the_lock() -> None:
    async with on_stage(servers(git=server("plain.py", "{}")), size=WIDE) as stage:
        await stage.ready()
        config, connection = stage.host.config, stage.host.servers["git"]
        found = surface_of(connection, entry="git")
        assert found is not None
        locked = locked_server(found, str, resources=False)
        assert locked.tools is not None
        changed = locked.tools["t"].model_copy(update={"definition": f"sha256:{0:064}"})
        for tools, words in (
            (locked.tools, ("as locked in mcphost.lock",)),
            ({"t": changed}, ("1 tool differs from mcphost.lock and is not offered",)),
        ):
            lock = SurfaceLock(version=1, servers={"git": locked.model_copy(update={"tools": tools})})
            policy = config.policy.with_lock(Path("/nowhere/mcphost.lock"), lock)
            await stage.host.apply(config.model_copy(update={"policy": policy}))
            await stage.press("s", "down", "c")
            await stage.shows(*words)
        await stage.press("K")
        await stage.at(ReaderScreen)
        await stage.shows("git since mcphost.lock", "tool t", "review")
