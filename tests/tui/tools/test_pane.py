"""From the list to the form to the result and back by keys, and calls that run meanwhile."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from textual.content import Content

from mcphost.host.tool_calls.call import CallState
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.results.view import StructuredView
from mcphost.tui.tools.pane import ToolsPane
from tests.tui.stage import NARROW, WIDE, Stage, after_a_call, calls_in, echo, hostile, on_stage, server, servers

pytestmark = pytest.mark.slow
SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])


def step(stage: Stage) -> str:
    return stage.app.main.tools.step


@SIZES
@pytest.mark.requirement("TOOLS-02", "TOOLS-13")
async def test_list_form_dialog_result_and_back_by_esc(size: tuple[int, int], tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(echo("--record", record), size=size) as stage:
        await stage.ready()
        await stage.open_tool("echo back")
        assert step(stage) == "form"
        await stage.write("hello")
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended()
        await stage.shows("Result · echo › echo", "done", "hello")
        assert calls_in(record)[0]["arguments"] == {"text": "hello"}
        await stage.press("escape")
        assert step(stage) == "form"
        await stage.shows("hello")
        await stage.press("escape")
        assert step(stage) == "list"
        await stage.shows("Tools · all servers")


@pytest.mark.parametrize("columns", [80, 120, 200])
async def test_a_list_gives_its_room_to_titles_and_to_claims_that_warn(columns: int) -> None:
    read = given_tool("look", "Look at everything in sight", readOnlyHint=True)
    tear = given_tool("tear", "Tear it up", readOnlyHint=False, destructiveHint=True)
    config = servers(shop=server("given.py", "--given", json.dumps([read, tear])))
    async with on_stage(config, size=(columns, 36)) as stage:
        await stage.ready()
        await stage.shows("Look at everything in", "destroys")
        assert "reads" not in stage.text


def given_tool(name: str, title: str, **hints: bool) -> dict[str, object]:
    return {"name": name, "title": title, "inputSchema": {"type": "object"}, "annotations": hints}


@pytest.mark.hostile("L05")
@SIZES
@pytest.mark.requirement("SCHEMA-04")
async def test_a_tool_with_a_remote_schema_is_refused_with_a_reason(size: tuple[int, int]) -> None:
    async with on_stage(hostile("evil-schema"), size=size) as stage:
        await stage.ready()
        await stage.open_tool("in-file")
        await stage.until(lambda _: "✖ refused, never runs: external $ref 'file:///etc/passwd'" in stage.flat)
        await stage.press("ctrl+r")
        await stage.until(lambda app: app.host.tool_calls.calls)
        await stage.ended()
        await stage.until(lambda _: "in-file was declined by policy: external $ref" in stage.flat)


@SIZES
async def test_what_was_typed_is_still_there_after_going_away_and_back(size: tuple[int, int]) -> None:
    async with on_stage(echo(), size=size) as stage:
        await stage.ready()
        await stage.open_tool("echo back")
        await stage.write("half a thought")
        await stage.press("escape", "slash")
        await stage.write("add")
        await stage.press("enter")
        await stage.until(lambda _: "half a thought" not in stage.text)
        await stage.press("escape", "h", "s", "t", "slash")
        await stage.write("echo back")
        await stage.press("enter")
        await stage.shows("half a thought")


@pytest.mark.requirement("TOOLS-03")
async def test_a_required_field_left_empty_sends_nothing(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(echo("--record", record), size=NARROW) as stage:
        await stage.ready()
        await stage.open_tool("adds two")
        await stage.press("ctrl+r")
        await stage.shows("▲ is required", "▲ 2 invalid fields")
        assert step(stage) == "form"
        assert not stage.host.tool_calls.calls
        assert not calls_in(record)
        await stage.press("escape")
        await stage.open_tool("answers with iserror")
        await stage.shows("echo › fail")
        assert "▲" not in stage.text


async def run(stage: Stage, words: str, *keys: str) -> None:
    """Open a tool, fill its form by these keys, and allow it."""
    await stage.open_tool(words)
    await stage.press(*keys, "ctrl+r")
    await stage.call_dialog()
    await stage.press("y")
    await stage.gone()


@SIZES
@pytest.mark.requirement("CANC-07", "PROG-05", "TOOLS-13")
async def test_a_running_call_is_seen_everywhere_and_esc_cancels_it(size: tuple[int, int]) -> None:
    async with on_stage(size=size) as stage:
        await stage.ready()
        await run(stage, "watch_horizon", "ctrl+u", "9", "9")
        await stage.shows("◐ running watch_horizon", "waves")
        await stage.press("escape")
        call = await stage.ended()
        assert call.state is CallState.CANCELLED
        await stage.shows("cancelled")
        await stage.until(lambda _: "running" not in stage.top)


@SIZES
@pytest.mark.requirement("CANC-07")
async def test_a_call_is_cancelled_and_repeated_from_the_list(size: tuple[int, int], tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(echo("--record", record), size=size) as stage:
        await stage.ready()
        await run(stage, "answers after some seconds", "4", "5")
        await stage.shows("◐ running sleep")
        await stage.press("h")
        await stage.shows("sleep", "running")
        await stage.press("x")
        assert (await stage.ended()).state is CallState.CANCELLED
        await stage.shows("◌", "cancelled")
        assert not stage.app.main.calls.check_action("cancel", ())
        assert '"notifications/cancelled"' in record.read_text()
        await stage.press("a")
        await stage.shows("45")
        assert step(stage) == "form"
        await stage.press("escape", "h", "enter")
        await stage.shows("Result · echo › sleep")


@pytest.mark.hostile("F02")
@pytest.mark.requirement("PROG-06")
async def test_a_flood_of_progress_ends_at_its_last_value() -> None:
    async with on_stage(hostile("progress-flood"), size=NARROW) as stage:
        await stage.ready()
        await stage.open_tool("act")
        await stage.call_dialog()
        await stage.press("y")
        call = await stage.ended()
        assert call.progress is not None
        assert call.progress.progress == 100


@pytest.mark.requirement("TOOLS-18", "TOOLS-20")
async def test_a_tool_that_comes_is_listed_by_its_title_and_goes_again() -> None:
    async with on_stage(size=NARROW) as stage:
        await stage.ready()
        assert "Row the boat" not in stage.text
        await stage.open_tool("open_boathouse")
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended()
        await stage.press("escape", "slash")
        await stage.write("rows once")
        await stage.shows("Row the boat")
        await stage.press("down", "d")
        await stage.at(ReaderScreen)
        await stage.shows('"name": "row_boat"')
        await stage.press("q")
        await stage.gone()


@pytest.mark.hostile("L04")
async def test_ten_thousand_tools_are_filtered_drawing_only_the_view() -> None:
    async with on_stage(echo("--tools", 10_000), size=NARROW) as stage:
        await stage.ready()
        await stage.shows("10,000")
        rows = stage.app.main.tools.list.rows
        drawn: list[str] = []
        render = rows._render_row

        def counted(item: Any, width: int) -> Text | Content:
            drawn.append(item.tool.name)
            return render(item, width)

        rows._render_row = counted
        await stage.press("slash")
        for typed in ("7", "77", "777"):
            drawn.clear()
            await stage.press(typed[-1])
            await stage.until(lambda _: "of 10,000" in stage.text)
            assert 0 < len(drawn) <= 4 * NARROW[1], typed
        await stage.shows("tool-0777", "19 of 10,000")


async def test_telling_the_same_thousands_of_tools_again_costs_nothing() -> None:
    async with on_stage(echo("--tools", 1_000), size=NARROW) as stage:
        await stage.ready()
        pane = stage.app.main.tools.list
        await stage.press("slash")
        kept = pane._texts
        stage.host.servers["echo"].publish_change()
        await stage.pilot.pause(0.1)
        assert pane._texts is kept is not None


async def test_the_tool_beside_the_list_is_the_best_match_of_what_is_typed() -> None:
    async with on_stage(echo(), size=WIDE) as stage:
        await stage.ready()
        await stage.press("slash")
        for typed in ("sle", "ep"):
            await stage.write(typed)
            await stage.shows("echo › sleep")
        await stage.press("ctrl+u")
        await stage.write("fail")
        await stage.shows("echo › fail")


@pytest.mark.parametrize("size", [(120, 36), (120, 28), (160, 50)])
async def test_an_open_form_folds_the_result_and_shows_its_field(size: tuple[int, int]) -> None:
    async with on_stage(size=size) as stage:
        await stage.ready()
        await stage.open_tool("read_logbook")
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended()
        await stage.open_tool("flash_lamp")
        await stage.shows("▸ message", "▏1", "ctrl+r run", "Last result · demo › read_logbook", "f9 shows it")
        assert "Somebody" not in stage.text
        await stage.press("escape")
        await stage.open_tool("keep_logbook")
        await stage.shows("▸ Keeper", "ctrl+r run", "Last result · demo › read_logbook")
        await stage.press("f9")
        await stage.shows("Result · demo › read_logb", "Somebody")
        await stage.press("escape")
        await stage.shows("▸ Keeper", "Last result · demo › read_logbook")  # of another tool
        assert "Somebody" not in stage.text


async def test_a_result_that_takes_long_to_be_built_still_gets_the_focus(monkeypatch: pytest.MonkeyPatch) -> None:
    compose = StructuredView._compose

    async def compose_late(view: StructuredView) -> None:
        await asyncio.sleep(0.05)
        await compose(view)

    monkeypatch.setattr(StructuredView, "_compose", compose_late)
    async with on_stage(size=WIDE) as stage:
        result = (await after_a_call(stage)).result
        await stage.until(lambda _: result.query("TableView"))
        await stage.pilot.pause(0.1)
        assert result.has_focus_within


@SIZES
async def test_ctrl_r_in_the_result_asks_again_with_what_the_form_holds(size: tuple[int, int], tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(echo("--record", record), size=size) as stage:
        await stage.ready()
        await stage.open_tool("echo back")
        await stage.write("one")
        for count in range(1, 3):
            await stage.press("ctrl+r")
            await stage.call_dialog()
            await stage.press("y")
            await stage.ended()
            assert step(stage) == "result"
            assert [each["arguments"] for each in calls_in(record)] == [{"text": "one"}] * count


async def test_ctrl_r_in_the_result_of_another_tool_runs_that_one_again(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(echo("--record", record), size=NARROW) as stage:
        await stage.ready()
        await stage.open_tool("echo back")
        await stage.press("escape")
        call = stage.call("add", {"a": 1, "b": 2})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(call)
        await stage.press("h", "enter")
        bench = await stage.app.main.tools.bench()
        assert bench.entry is None  # the form of the other tool is not beside it
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended()
        assert [each["name"] for each in calls_in(record)] == ["add", "add"]


async def test_the_first_words_say_that_servers_start() -> None:
    config = servers(a=server("echo.py", "--delay", 30), b=server("echo.py", "--delay", 30))
    async with on_stage(config, size=NARROW) as stage:
        words = "Starting 2 servers. Tools appear as soon as a server is ready."
        assert words in stage.flat
        assert ToolsPane(stage.host).list.rows.empty == words  # before its first update
