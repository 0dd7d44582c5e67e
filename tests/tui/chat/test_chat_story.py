"""A first conversation by keys: a small terminal, the demo server, and a scripted model."""

from __future__ import annotations

import pytest

from mcphost.host.chat.turns import TurnState
from mcphost.tui.chat.dialogs import PreviewScreen
from tests.host.chat.scripted_model import text, use, uses
from tests.tui.chat.chats import chatting

pytestmark = pytest.mark.slow


@pytest.mark.requirement("TOOLS-13")
async def test_a_chat_with_a_prompt_an_allowed_and_a_refused_call() -> None:
    wanted = uses(
        use("demo__ships_in_sight", "1", kind="any"), use("demo__sound_foghorn", "2", blasts=3), say="I look."
    )
    async with chatting(wanted, text("A *quiet* night."), text("So be it.")) as stage:
        await stage.shows("Write a message below", "24 tools")
        await stage.say("what is out there?")
        await stage.call_dialog()
        await stage.shows("▸ ? demo › ships_in_sight", "Run Ships in sight on demo?")
        await stage.press(*["space"] * 6, "y")
        await stage.call_dialog()
        await stage.shows("● demo › ships_in_sight · done", "Run Sound")
        await stage.press("n")
        await stage.rest()
        await stage.shows("◌ demo › sound_foghorn · declined", "│ A quiet night.")
        assert [turn.state for turn in stage.chat.turns] == [TurnState.DONE]
        await stage.write("/demo:watch")
        await stage.shows("▸ /demo:watch_report")
        await stage.press("enter")
        await stage.shows("watch=")
        await stage.press("enter")
        assert stage.pane.input.text == "/demo:watch_report watch="
        await stage.write("first")
        await stage.press("enter")
        await stage.at(PreviewScreen)
        await stage.shows("What would be sent to big", "watch=first", "as said by you", "▲ a server's words")
        await stage.press("y")
        await stage.rest()
        await stage.shows("▌ /demo:watch_report", "│ So be it.")
        assert stage.chat.turns[1].message.prompts[0].arguments == {"watch": "first"}
        await stage.press("escape", "home", "j", "j", "f4")
        await stage.shows("tools/call")


async def test_a_small_terminal_shows_a_call_and_all_answers() -> None:
    async with chatting(uses(use("demo__sound_foghorn", blasts=2)), text("So be it.")) as stage:
        await stage.say("warn them")
        await stage.call_dialog()
        answers = "▸y once · u until exit · a always · r read-only tools · e edit · n don't run"
        await stage.shows('"blasts"  2', "sent to", "rule", answers, "t say why · p later")
        await stage.press("enter")
        await stage.rest()
        await stage.shows("● demo › sound_foghorn · done", "So be it.")
