"""The layout of the main screen at each size."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from textual.screen import Screen

from mcphost.config import Config
from mcphost.host.comparison.sides import in_eras
from mcphost.host.logs import LogSource
from mcphost.protocol.models.logging import LogLevel
from mcphost.tui.kit.rows import RowList
from mcphost.tui.main.screen import Body
from mcphost.tui.start_info import StartInfo
from tests.tui.stage import NARROW, Stage, after_a_call, demo, echo, on_stage, server, servers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("columns", "form", "result"), [(109, 0, 48), (110, 64, 48), (140, 72, 48), (180, 64, 48), (200, 64, 68)]
)
async def test_a_form_is_wide_beside_a_narrow_list_where_there_is_room(columns: int, form: int, result: int) -> None:
    async with on_stage(size=(columns, 30)) as stage:
        bench = await after_a_call(stage)
        assert bench.tool.region.width >= form
        assert bool(stage.app.main.tools.list.region.width) is bool(bench.tool.region.width) is bool(form)
        assert stage.app.main.tools.list.region.width <= 40
        assert bench.result.region.width >= result


async def test_servers_and_logs_yield_their_room_to_a_form(tmp_path: Path) -> None:
    async with on_stage(state=tmp_path, size=(120, 40)) as stage:
        await stage.ready()
        main = stage.app.main
        bench = await main.tools.bench()
        assert (main.servers.region.width, main.logs_open) == (26, True)
        await stage.open_tool("keep_logbook")
        await stage.until(lambda _: main.servers.region.width == 6 and not main.logs_open)
        await stage.until(lambda _: bench.form.query_one("#fields").max_scroll_y == 0)
        await stage.shows("Writes an entry into the logbook. Its form", "f8 all")
        assert "server says" not in stage.text
        await stage.press("f8")
        await stage.until(lambda _: "server says" in stage.flat)
        await stage.press("escape")
        await stage.until(lambda _: main.servers.region.width == 26 and main.logs_open)


async def test_the_result_is_beside_the_form_on_a_wide_screen() -> None:
    async with on_stage(size=(180, 40)) as stage:
        bench = await after_a_call(stage)
        assert bench.result.region.y == bench.tool.region.y
        await stage.pilot.resize_terminal(179, 40)
        await stage.until(lambda _: bench.result.region.y == bench.tool.region.bottom)


async def test_the_start_is_over_once_when_all_panes_are_there() -> None:
    starts: list[None] = []
    async with on_stage(started=lambda: starts.append(None), all_panes=True) as stage:
        await stage.until(lambda _: starts)
        main = stage.app.main
        panes = main.resources, main.prompts, main.chat, main.calls, main.card, main.traffic, main.logs
        assert all(pane is not None and pane.is_attached for pane in panes)
        await stage.press("f4", "t")
        assert len(starts) == 1


async def test_a_pane_is_made_when_its_tab_is_clicked() -> None:
    async with on_stage() as stage:
        await stage.ready()
        main = stage.app.main
        assert main.resources is None
        assert not main.calls.is_attached
        await stage.pilot.click("#--content-tab-resources")
        await stage.until(lambda _: main.resources is not None and main.resources.list.rows.items)
        await stage.pilot.click("#--content-tab-calls")
        await stage.until(lambda _: main.calls.is_attached)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["narrow", "wide"])
async def test_going_through_the_tabs_changes_no_class_of_the_screen(size: tuple[int, int]) -> None:
    """A changed class would style all 300 widgets again; the servers and the logs are styled alone."""
    async with on_stage(size=size) as stage:
        await stage.ready()
        classes = stage.app.main.classes
        for key, word in (("f4", "Traffic"), ("f5", "enter sends"), ("escape", "Traffic"), ("s", "Servers"), ("t", "")):
            await stage.press(key)
            await stage.shows(word)
            assert stage.app.main.classes == classes


async def test_the_servers_fold_to_marks_without_the_focus() -> None:
    async with on_stage(size=(80, 24)) as stage:
        await stage.ready()
        servers = stage.app.main.servers
        assert servers.region.width == 6
        await stage.press("s")
        await stage.until(lambda _: servers.region.width == 26)
        await stage.shows("all servers", "● demo")
        await stage.press("t")
        await stage.until(lambda _: servers.region.width == 6)


async def test_the_tool_under_the_cursor_is_described_beside_the_list() -> None:
    async with on_stage(size=(120, 36)) as stage:
        await stage.ready()
        await stage.app.main.tools.bench()
        await stage.press("t", "down", "up")
        await stage.shows("Lists the ships that can be seen from the gallery", "argument", "within_miles")
        await stage.press("down", "down")
        await stage.shows("Paints the lighthouse from the sea", "enter opens the form")


async def test_z_gives_a_pane_the_whole_screen_and_takes_it_back() -> None:
    async with on_stage(size=(140, 44)) as stage:
        await stage.ready()
        main = stage.app.main
        await stage.press("t", "z")
        await stage.until(lambda _: main.tools.list.region.width == 140 and not main.query_one("#side").display)
        assert main.logs.region.height == 0
        await stage.press("z")
        await stage.until(lambda _: main.tools.list.region.width < 60 and main.query_one("#side").display)
        await stage.press("f3", "z")
        await stage.until(lambda _: main.logs.region.height > 35)
        await stage.press("t")
        await stage.until(lambda _: main.logs.region.height <= 14 and main.tools.region.height > 20)


@pytest.mark.parametrize(("rows", "is_open"), [(35, False), (36, True)])
async def test_the_log_drawer_opens_when_a_server_warns(rows: int, is_open: bool) -> None:
    async with on_stage(size=(120, rows)) as stage:
        await stage.ready()
        main = stage.app.main
        assert not main.logs_open
        await stage.open_tool("brew_storm")
        await stage.press("ctrl+r")
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended()
        await stage.until(lambda _: main.logs_open is is_open)
        await stage.press("f5")
        await stage.until(lambda _: not main.logs_open)


async def test_the_layout_and_pinned_tools_are_restored(tmp_path: Path) -> None:
    async with on_stage(state=tmp_path, size=(140, 44)) as stage:
        await stage.ready()
        main = stage.app.main
        assert main.logs_open
        before = main.tools.list.region.width
        await stage.press("t", "greater_than_sign", "greater_than_sign")
        await stage.until(lambda _: main.tools.list.region.width > before + 8)
        wider = main.tools.list.region.width
        await stage.press("f3", "f3")
        await stage.until(lambda _: not main.logs_open)
        await stage.until(lambda _: 'logs = "closed"' in (tmp_path / "layout.toml").read_text())
        await stage.press("down", "P", "left")  # pins it, and folds the group of the server
        await stage.until(lambda _: '"demo"' in (tmp_path / "layout.toml").read_text())
        await stage.until(lambda _: '"read_instruments"' in (tmp_path / "pins.toml").read_text())
    async with on_stage(state=tmp_path, size=(140, 44)) as stage:
        await stage.ready()
        await stage.until(lambda app: app.main.tools.list.region.width == wider and not app.main.logs_open)
        await stage.shows("▾ Pinned", "Read the instruments", "▸ demo")


@pytest.mark.parametrize("content", ['list_share = "wide"\nlogs = 3\n', "list_share = 7\n", "not TOML"])
async def test_a_layout_that_makes_no_sense_is_not_taken(content: str, tmp_path: Path) -> None:
    (tmp_path / "layout.toml").write_text(content)
    async with on_stage(state=tmp_path, size=(140, 36)) as stage:
        await stage.ready()
        assert 40 <= stage.app.main.tools.list.region.width <= 50


@pytest.mark.parametrize("size", [NARROW, (120, 36)], ids=["80x24", "120x36"])
async def test_without_a_server_one_place_says_how_to_add_one(size: tuple[int, int]) -> None:
    async with on_stage(Config(), size=size) as stage:
        await stage.shows("No servers are configured.", "a adds one", "i looks at those of other programs.")
        for words in ("No servers are configured.", "a adds one"):
            assert stage.flat.count(words) == 1
        assert "Choose a tool" not in stage.text


async def test_the_log_drawer_grows_with_its_lines_up_to_a_bound() -> None:
    async with on_stage(echo(), size=(120, 60)) as stage:
        await stage.ready()
        logs = stage.app.main.logs
        assert (len(stage.text.splitlines()), logs.size.height) == (60, 5)
        for number in range(3, 12):
            stage.host.logs.warn("echo", f"line {number}")
        await stage.shows("line 11")
        await stage.until(lambda _: logs.size.height == 9)
        await stage.press("f3", "slash")
        await stage.write("line 7")
        await stage.shows("/ line 7", "1 of")
        assert logs.size.height == 9
        await stage.press("enter", "z")
        await stage.until(lambda _: logs.size.height > 50)
        await stage.press("z")
        await stage.until(lambda _: logs.size.height == 9)


async def test_a_run_that_takes_no_servers_offers_none(tmp_path: Path) -> None:
    start = StartInfo(tmp_path / "a.toml", False, (), tmp_path, "Write them into a.toml.", fixed=True)
    async with on_stage(Config(), start=start) as stage:
        await stage.shows("No servers are configured.", "Write them into a.toml.")
        assert "a adds one" not in stage.text
        body = stage.app.main.query_one(Body)
        offered = [each for each in ("import_servers", "add_server", "copy_example") if body.check_action(each, ())]
        assert offered == ["copy_example"]


@pytest.mark.parametrize("size", [NARROW, (120, 36)], ids=["80x24", "120x36"])
async def test_the_demo_says_that_it_is_one_until_x(size: tuple[int, int], tmp_path: Path) -> None:
    async with on_stage(demo(), size=size, start=StartInfo(None, True, (), tmp_path, "")) as stage:
        await stage.ready()
        assert stage.text.splitlines()[1].startswith(" Demo: a ")
        assert "safe to try" in stage.text.splitlines()[1]
        assert not stage.app.main.query_one(Body).check_action("import_servers", ())
        await stage.press("x")
        await stage.until(lambda _: "safe to try" not in stage.text)


async def test_unfolded_servers_leave_every_tab_a_name() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.shows("Resources", "Traffic")
        await stage.press("s")
        await stage.shows("Tools Res. Pro. Chat Calls Srv. Traf.")
        await stage.press("t")
        await stage.shows("Resources", "Traffic")


async def test_the_footer_of_a_filter_names_its_keys_and_no_letter() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("slash")
        await stage.write("e")
        footer = stage.text.splitlines()[-1]
        assert footer.startswith(" ↓ rows  ⏎ go  esc clear filter ")
        assert "f1 keys" in footer
        assert "s servers" not in footer


async def test_the_footer_of_a_choice_offers_no_letter() -> None:
    choices = {
        "type": "object",
        "properties": {"c": {"enum": ["red", "green"]}, "s": {"type": "array", "items": {"enum": ["a"]}}},
    }
    config = servers(shop=server("given.py", "--given", json.dumps([{"name": "pick", "inputSchema": choices}])))
    async with on_stage(config, size=(120, 36)) as stage:
        await stage.ready()
        await stage.press("enter")
        for _ in range(2):
            await stage.until(lambda _: "type to search" in stage.text.splitlines()[-1])
            footer = stage.text.splitlines()[-1]
            assert "f1 keys" in footer
            assert not [key for key in ("s servers", "h calls", "T tasks", "? keys", "z zoom") if key in footer]
            await stage.press("tab")


async def test_a_comparison_is_not_counted_among_the_servers() -> None:
    async with on_stage(echo(), size=(120, 36)) as stage:
        await stage.ready()
        config, _ = in_eras(stage.host.config, "echo")
        await stage.host.apply(config)
        await stage.until(lambda app: len(app.host.servers) == 3)
        stage.app.updater.top_line()
        assert "stopped" not in stage.top
        assert "● 1 ready" in stage.top


QUIET = 3
"""Refreshes without a layout, after which those of earlier steps are over."""


async def later_layouts(stage: Stage) -> list[Screen[object]]:
    """The layouts of the main screen from now on, once those of earlier steps are over."""
    seen: list[Screen[object]] = []
    main = stage.app.main
    main.screen_layout_refresh_signal.subscribe(main, seen.append, immediate=True)
    quiet = 0
    async with asyncio.timeout(30):
        while quiet < QUIET:
            seen.clear()
            refreshed = asyncio.Event()
            main.call_after_refresh(refreshed.set)
            await refreshed.wait()
            await stage.pilot.pause()
            quiet = 0 if seen else quiet + 1
    return seen


async def test_what_is_hidden_causes_no_layout() -> None:
    async with on_stage(echo("--tools", 100), size=(120, 30), all_panes=True) as stage:
        await stage.ready()
        await stage.until(lambda app: app.main.traffic is not None and app.main.traffic.is_attached)
        main = stage.app.main
        below = [each for pane in main.query("*") if not pane.display for each in pane.query("*")]
        assert {type(each).__name__ for each in below} >= {"RowList", "Transcript", "TrafficList", "FilterLine"}
        layouts = await later_layouts(stage)
        for _ in range(3):  # what is shown may want one meanwhile, but not each time
            layouts.clear()
            idle = asyncio.Event()
            for widget in below:
                widget.refresh(layout=True)
            below[-1].call_after_refresh(main.call_after_refresh, idle.set)
            await asyncio.wait_for(idle.wait(), 30)
            if not layouts:
                break
        assert layouts == []


async def test_a_hidden_widget_takes_no_layout_from_one_that_is_shown() -> None:
    async with on_stage(echo(), size=(120, 30)) as stage:
        await stage.ready()
        layouts = await later_layouts(stage)
        stage.app.main.tools.refresh(layout=True)
        stage.app.main.calls.rows.refresh(layout=True)
        await stage.until(lambda _: layouts)


async def add_lines(stage: Stage, count: int) -> None:
    """Log lines of a server, and wait until their list has them."""
    for number in range(count):
        stage.host.logs.add("echo", LogSource.SERVER, LogLevel.INFO, f"line {number} of {count}")
    rows = stage.app.main.logs.query_one(RowList)
    await stage.until(lambda _: bool(rows.items) and rows.items[-1].text == f"line {count - 1} of {count}")


async def test_an_opening_log_drawer_shows_earlier_lines() -> None:
    async with on_stage(echo("--tools", 100), size=(120, 30)) as stage:
        await stage.ready()
        await stage.until(lambda app: bool(app.main.logs.query(RowList)))  # its pane is filled after the first frame
        rows = stage.app.main.logs.query_one(RowList)
        await add_lines(stage, 10)  # the drawer asks for more room
        await stage.pilot.pause()
        layouts = await later_layouts(stage)
        await add_lines(stage, 100)
        await stage.pilot.pause()
        assert layouts == []
        assert len(rows.items) >= 110
        await stage.press("f3")
        await stage.shows("line 99 of 100")
