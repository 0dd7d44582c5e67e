"""The command palette: every action by name."""

from __future__ import annotations

import pytest
from textual.command import CommandPalette

from mcphost.tui.consent.grants import GrantsScreen
from tests.tui.stage import NARROW, echo, on_stage

pytestmark = pytest.mark.slow


async def test_the_palette_names_every_action_and_every_server() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        names = {command.title for command in stage.app.get_system_commands(stage.app.screen)}
        assert {"Keys", "Inbox", "Allowed tools", "Go to: Calls", "Logs", "Restart echo"} <= names


async def test_a_command_is_found_by_typing_and_run_by_enter() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("ctrl+p")
        await stage.at(CommandPalette)
        await stage.write("allowed")
        await stage.shows("Allowed tools")
        await stage.press("enter")
        await stage.at(GrantsScreen)


async def test_a_command_takes_one_to_another_part() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        for title, words in (("Go to: Calls", "No calls yet"), ("Go to: Tools", "Tools · all servers")):
            commands = stage.app.get_system_commands(stage.app.screen)
            next(each for each in commands if each.title == title).callback()
            await stage.shows(words)


async def test_what_can_be_done_here_is_found_by_its_words_and_done_where_one_was() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("f4")
        await stage.shows("Traffic · following", "initialize")
        await stage.press("ctrl+p")
        await stage.at(CommandPalette)
        await stage.write("export")
        await stage.shows("Here: export", "Export the frames shown")
        await stage.press("enter")
        await stage.shows("in which folder?")
