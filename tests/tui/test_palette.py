"""The command palette: everything by name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.command import CommandList

from mcphost.config.state import StateStore
from mcphost.host.layout import kept_theme
from mcphost.tui.consent.grants import GrantsScreen
from mcphost.tui.kit.ranking import HIT, Search
from mcphost.tui.palette import MOST, PaletteScreen, offer_entry
from tests.tui.stage import NARROW, WIDE, Stage, demo, echo, on_stage, server, servers

pytestmark = pytest.mark.slow


async def find(stage: Stage, words: str) -> None:
    """Open the palette and type these words."""
    await stage.press("ctrl+p")
    await stage.at(PaletteScreen)
    await stage.write(words)


def hits(stage: Stage) -> list[str]:
    commands = stage.app.screen.query_one(CommandList)
    return [" ".join(str(option.prompt).split()) for option in commands.options]


@pytest.mark.parametrize(
    ("typed", "hit", "shown"),
    [
        ("brew", "Brew a storm brew_storm", "demo › brew_storm"),
        ("tide gauge", "Tide gauge lighthouse://tide.bin", "Contents"),
        ("ships kind", "A ship in sight lighthouse://ships", "demo › A ship in sight"),
        ("watch_report", "Report of a watch watch_report", "Whose watch"),
        ("demo", "demo It is ready server", "demo"),
        ("calls", "calls Calls of this run and of earlier ones action h", "No calls yet"),
        ("bst", "Brew a storm brew_storm", "demo › brew_storm"),
    ],
)
async def test_what_is_typed_is_found_and_opened_by_enter(typed: str, hit: str, shown: str) -> None:
    async with on_stage(demo(), size=NARROW) as stage:
        await stage.ready()
        await find(stage, typed)
        await stage.until(lambda _: hits(stage) and hits(stage)[0].startswith(hit))
        await stage.press("enter")
        await stage.gone()
        await stage.shows(shown)


async def test_a_call_is_found_and_its_result_opened() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": "something said before"})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(call)
        await find(stage, "call 1")
        await stage.until(lambda _: hits(stage) and "call 1 · echo" in hits(stage)[0])
        await stage.press("enter")
        await stage.shows("something said before")


async def test_tools_rank_before_servers_and_past_calls() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": "x"})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(call)
        await find(stage, "echo")
        await stage.until(lambda _: len(hits(stage)) > 2 and hits(stage)[0].endswith("tool · echo"))
        assert hits(stage)[1].startswith("echo It is ready")
        assert "call 1 · echo" in hits(stage)[2]


async def test_an_empty_query_lists_actions_here_servers_then_others() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("t", "ctrl+p")
        await stage.at(PaletteScreen)
        await stage.until(lambda _: hits(stage))
        found = hits(stage)
        assert found[0].startswith("open Open the row under the cursor")
        assert found[0].endswith("here ⏎")
        order = [next(n for n, each in enumerate(found) if each.startswith(s)) for s in ("filter ", "echo It", "chat ")]
        assert order == sorted(order)
        assert "inbox What waits for your answer action f2" in found
        assert not any(each.startswith(("up ", "down ", "clear ")) for each in found)


async def test_a_command_is_found_by_typing_and_run_by_enter() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await find(stage, "allowed")
        await stage.shows("What runs without asking")
        await stage.press("enter")
        await stage.at(GrantsScreen)


async def test_an_action_is_found_and_done_in_the_pane_before() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("f4")
        await stage.shows("Traffic · following", "initialize")
        await find(stage, "save")
        await stage.shows("save  Export the messages shown")
        await stage.press("enter")
        await stage.shows("in which folder?")


async def test_an_action_of_another_tab_is_done_there() -> None:
    async with on_stage(echo(), size=NARROW, all_panes=True) as stage:
        await stage.ready()
        await find(stage, "traffic export")
        await stage.until(lambda _: hits(stage) and hits(stage)[0].startswith("Traffic › save Export the messages"))
        await stage.press("enter")
        await stage.shows("in which folder?")
        await stage.press("escape")
        await stage.shows("Traffic · following")


async def test_a_theme_is_previewed_and_kept_once_it_is_chosen(tmp_path: Path) -> None:
    async with on_stage(echo(), tmp_path, size=NARROW) as stage:
        await stage.ready()
        await find(stage, "theme light")
        await stage.until(lambda _: hits(stage) and hits(stage)[0].startswith("Theme: mcphost-light kept"))
        await stage.until(lambda app: app.theme == "mcphost-light")
        await stage.press("escape")
        await stage.until(lambda app: app.theme == "mcphost-dark")
        await find(stage, "theme light")
        await stage.until(lambda app: app.theme == "mcphost-light")
        await stage.press("down")
        await stage.until(lambda app: app.theme not in ("mcphost-light", "mcphost-dark"))
        await stage.press("up", "enter")
        await stage.gone()
        assert stage.app.chosen_theme == stage.app.theme == "mcphost-light"
        await stage.until(lambda _: kept_theme(StateStore(tmp_path, print)) == "mcphost-light")


async def test_every_server_can_be_restarted_by_its_name() -> None:
    async with on_stage(servers(one=server("echo.py"), two=server("echo.py")), size=NARROW) as stage:
        await stage.ready()
        await find(stage, "restart t")
        await stage.until(lambda _: hits(stage) and hits(stage)[0].startswith("Restart “two”"))


async def test_over_a_dialog_nothing_of_the_main_screen_is_found() -> None:
    async with on_stage(demo(), size=NARROW) as stage:
        await stage.ready()
        stage.call("brew_storm")
        await stage.call_dialog()
        await stage.press("ctrl+p")
        await stage.at(PaletteScreen)
        await stage.until(lambda _: hits(stage))
        await stage.shows("In this dialog · the rest is found once it is closed")
        found = hits(stage)
        assert any("run once" in each or "allow once" in each for each in found)
        assert any(each.startswith("quit ") for each in found)
        assert not any(each.endswith("server") or each.startswith("inbox") for each in found)


def test_text_of_a_server_is_shown_as_text() -> None:
    entry, _ = offer_entry("tool", "git", "na\x1b[2Jme", "[red]T\u202eitle[/red]", "$x [@click=app.quit]d\x07[/]", str)
    row = entry.row(Search("title"), 100)
    assert "[red]T⟨U+202E⟩itle[/red]" in row.plain
    assert "[@click=app.quit]" in row.plain
    assert not {"\x1b", "\x07", "\u202e"} & set(row.plain)
    assert all(span.style in (HIT, "$foreground-muted", "bold $text-accent") for span in row.spans)


async def test_ten_thousand_tools_are_ranked_without_blocking() -> None:
    async with on_stage(echo("--tools", 10_000), size=NARROW) as stage:
        await stage.ready()
        await stage.until(lambda app: len(app.host.catalog.tools()) >= 10_000)
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        counting = asyncio.create_task(count())
        await stage.press("ctrl+p")
        await stage.at(PaletteScreen)
        index = await stage.app.palette.offers()
        counting.cancel()
        assert turns > 20
        await stage.write("7777")
        await stage.until(lambda _: hits(stage) and "7777" in hits(stage)[0])
        assert len(hits(stage)) <= MOST
        await stage.press("escape", "ctrl+p")
        await stage.at(PaletteScreen)
        assert await stage.app.palette.offers() is index  # nothing changed, so nothing is prepared again


async def test_an_open_palette_follows_the_size_and_the_theme() -> None:
    async with on_stage(demo(), size=NARROW) as stage:
        await stage.ready()
        await find(stage, "definition")
        await stage.shows("Show its definition")
        assert "as the server sends it" not in stage.text
        listed = stage.app.screen.query_one(CommandList)
        await stage.pilot.resize_terminal(*WIDE)
        await stage.shows("Show its definition, as the server sends it")
        dark = {segment.style for segment in listed.render_line(1)}
        stage.app.theme = "mcphost-light"
        await stage.until(lambda _: dark.isdisjoint(segment.style for segment in listed.render_line(1)))
        await stage.shows("Show its definition, as the server sends it")
