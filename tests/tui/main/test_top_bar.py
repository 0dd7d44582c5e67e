"""The top bar, and the counters of the tabs."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.content import Content
from textual.widgets import Tab

from mcphost.config import ModelConfig
from mcphost.tui.main.top_bar import TopBar
from tests.tui.stage import NARROW, Stage, demo, echo, on_stage

pytestmark = pytest.mark.slow

MODEL = ModelConfig(provider="ollama", model="some-model")


def tabs(stage: Stage) -> list[str]:
    return [tab.label.plain for tab in stage.app.main.query(Tab)]


async def test_an_idle_top_bar_shows_the_model_and_the_tokens() -> None:
    async with on_stage(demo().model_copy(update={"models": {"local": MODEL}}), size=NARROW) as stage:
        await stage.ready()
        await stage.until(lambda _: stage.top.endswith("local"))
        chat = stage.host.chats.begin()
        chat.usage = type(chat.usage)(1_200, 34)
        stage.app.updater.top_line()
        assert stage.top.endswith("local · 1,234 tokens")


async def test_the_tokens_are_those_of_the_conversation_that_the_chat_shows() -> None:
    async with on_stage(demo().model_copy(update={"models": {"local": MODEL}}), size=NARROW) as stage:
        await stage.ready()
        first, second = stage.host.chats.begin(), stage.host.chats.begin()
        first.usage, second.usage = type(first.usage)(1_200, 34), type(first.usage)(5, 2, guessed=True)
        stage.app.chat.resume(first.id)
        await stage.until(lambda _: stage.top.endswith("local · 1,234 tokens"))
        await stage.shows("used 1,234 of ")
        stage.app.chat.resume(second.id)
        await stage.until(lambda _: stage.top.endswith("local · about 7 tokens"))
        await stage.shows("used about 7 of ")


async def test_a_running_call_replaces_the_note_on_the_model() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.until(lambda _: stage.top.endswith("no model"))
        call = stage.call("sleep", {"seconds": 60})
        await stage.call_dialog()
        await stage.press("y")
        await stage.until(lambda _: "running sleep" in stage.top)
        assert "no model" not in stage.top
        call.cancel()
        await stage.ended(call)
        await stage.until(lambda _: stage.top.endswith("no model"))


async def test_what_matters_least_gives_way_first_where_it_is_narrow() -> None:
    async with on_stage(echo(), size=(44, 24)) as stage:
        await stage.ready()
        bar = stage.app.main.top_line
        shown = []
        for words in (("model", "12 tokens", "a.toml"), ("model", "12 tokens", "a-longer-name.toml"), ("m" * 80,)):
            bar.show_state(list(stage.host.servers.values()), (0, 0), "", (), (), (), words)
            shown.append(stage.top.rpartition("ready")[2].strip())
        assert shown == ["model · 12 tokens", "model · 12 tokens", ""]


async def test_the_bar_is_drawn_again_only_if_it_says_something_else() -> None:
    class CountingBar(TopBar):
        drawn = 0

        def render(self) -> Content:
            self.drawn += 1
            return super().render()

    class OneBar(App[None]):
        def compose(self) -> ComposeResult:
            yield CountingBar()

    async with OneBar().run_test() as pilot:
        bar = pilot.app.query_one(CountingBar)
        for words, drawn in ((("model",), 1), (("model",), 0), (("model", "12 tokens"), 1), ((), 1)):
            bar.drawn = 0
            bar.show_state((), (0, 0), "", (), (), (), words)
            await pilot.pause()
            assert bar.drawn == drawn


async def test_warnings_are_counted_until_the_log_drawer_was_opened() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        assert "warning" not in stage.top
        call = stage.call("log", {"count": 3, "level": "warning"})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(call)
        await stage.until(lambda _: "▲ 3 warnings · f3" in stage.top)
        await stage.press("f3")
        await stage.until(lambda _: "warning" not in stage.top)
        await stage.press("f3")
        assert "warning" not in stage.top


async def test_tabs_count_only_what_the_servers_offer() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        count = len(stage.host.catalog.tools())
        await stage.until(lambda _: f"Tools {count}" in tabs(stage))
        assert "Resources" in tabs(stage)
        assert "Prompts" in tabs(stage)
