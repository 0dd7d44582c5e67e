"""The questions of the demo server in the first five minutes, answered by keys; its answers show what arrived."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from mcphost.tui.elicitation.form import FormElicitationScreen
from mcphost.tui.elicitation.url import UrlElicitationScreen
from mcphost.tui.inbox.screen import InboxScreen
from mcphost.tui.kit.facts_table import FactsTable
from mcphost.tui.main.help import HelpScreen
from mcphost.tui.roots.screen import RootsScreen
from tests.tui.elicitation.questions import Browser, at
from tests.tui.stage import NARROW, WIDE, Stage, on_stage

pytestmark = pytest.mark.slow


async def begin(stage: Stage, words: str) -> None:
    """Run a tool without arguments."""
    await stage.open_tool(words)
    await stage.call_dialog()
    await stage.press("y")


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_the_guest_book_is_signed(size: tuple[int, int]) -> None:
    async with on_stage(size=size) as stage:
        await stage.ready()
        await begin(stage, "guest")
        await at(stage, FormElicitationScreen)
        await stage.shows("Who climbed up to us today?", "Name *", "Foul, as always", "for call 1 · sign_guest_book")
        await stage.write("Ada")
        await stage.press("ctrl+r")
        await stage.shows('"name": "Ada"', "send this to “demo”")
        await stage.press("y")
        await stage.ended()
        await stage.shows("The guest book says:", "Ada")


async def test_a_call_with_a_parked_question_waits_for_you() -> None:
    async with on_stage(size=NARROW) as stage:
        await stage.ready()
        await begin(stage, "guest")
        await at(stage, FormElicitationScreen)
        await stage.press("escape", "p")
        await stage.gone()
        await stage.shows("▲ waiting for your answer", "waiting for you: sign_guest_book")
        assert "running" not in stage.text
        await stage.press("f2")
        await stage.shows("call 1 · sign_guest_book · waiting for your answer")


async def test_the_ticket_is_stamped_by_a_visit_and_the_screen_says_when() -> None:
    browser = Browser()
    async with on_stage(size=NARROW, open_url=browser) as stage:
        await stage.ready()
        await begin(stage, "stamp")
        await at(stage, UrlElicitationScreen)
        await stage.shows("http://127.0.0.1:", "This page is served by a program on this machine.")
        await stage.press("y")
        await stage.shows("the server has not said that it is done")
        async with httpx.AsyncClient() as client:
            assert (await client.get(browser.opened[0])).status_code == 200
        await stage.shows("● done, says the server")
        await stage.press("escape")
        await stage.ended()
        await stage.shows("is stamped")


async def test_the_charts_are_shown_and_each_screen_explains_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    charts = tmp_path / "charts"
    charts.mkdir()
    monkeypatch.chdir(charts)
    async with on_stage(size=NARROW, state=tmp_path) as stage:
        await stage.ready()
        await stage.press("f2")
        await stage.at(InboxScreen)
        await stage.shows("Nothing waits for you.", "Questions of your calls open at once.")
        await stage.press("escape")
        await begin(stage, "charts")
        await at(stage, RootsScreen)
        await stage.press("question_mark")
        await stage.at(HelpScreen)
        told = stage.app.screen.query_one(FactsTable).text
        assert "Nothing is shared before you agree" in told
        assert "It does not confine the server to it." in told
        assert "Mark this folder" in told
        await stage.press("escape")
        await at(stage, RootsScreen)
        await stage.shows("suggested: the folder you are in")
        await stage.shows("[x]")
        await stage.press("y")
        await stage.ended()
        await stage.shows("On the table:")
