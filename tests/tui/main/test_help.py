"""The help lists the keys that work."""

from __future__ import annotations

import re

import pytest
from textual.binding import Binding
from textual.dom import DOMNode
from textual.widgets import Static

from mcphost.manual import topics
from mcphost.tui.kit.facts_table import FactsTable
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.kit.rows import RowList
from mcphost.tui.kit.text_view import TextView
from mcphost.tui.logs.pane import LogsPane
from mcphost.tui.main.help import TITLES, HelpScreen, TopicScreen
from mcphost.tui.prompts.pane import PromptList
from mcphost.tui.resources.pane import ResourceList
from mcphost.tui.servers.list import ServersPane
from mcphost.tui.tools.call_list import CallList
from mcphost.tui.tools.pane import ToolList
from tests.tui.stage import NARROW, Stage, echo, on_stage

pytestmark = pytest.mark.slow
PLACES = {
    "tools": (["t"], ["filter", "definition", "open"]),
    "servers": (["s"], ["on/off", "restart", "log level"]),
    "calls": (["h"], ["cancel", "again"]),
    "card": (["c"], ["copy"]),
    "logs": (["f3"], ["filter"]),
}


async def help_at(stage: Stage, keys: list[str], key: str = "question_mark") -> str:
    await stage.press(*keys, key)
    await stage.at(HelpScreen)
    text = stage.app.screen.query_one(FactsTable).text
    await stage.press("escape")
    await stage.gone()
    return text


async def test_each_part_has_its_keys_and_what_it_is_for() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        for name, (keys, words) in PLACES.items():
            text = await help_at(stage, keys)
            for word in (*words, "inbox", "quit", "Marks"):
                assert word in text, (name, word)


async def test_m_opens_the_manual_by_topic() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("question_mark")
        await stage.at(HelpScreen)
        await stage.press("m")
        await stage.at(TopicScreen)
        await stage.shows(f"{topics()['tour']}.")
        sentence = stage.app.screen.query_one(".sentence", Static)
        assert sentence.size.height == 2
        for row in range(len(topics())):
            text = str(stage.app.screen.query_one(RowList).render_line(row).text).rstrip()
            assert text.endswith(("…", *topics().values())), text  # a sentence that is cut says so
        await stage.press("enter")
        await stage.at(ReaderScreen)
        assert "A tour with the demo server" in stage.app.screen.query_one(TextView).lines[0]
        await stage.press("escape")
        await stage.at(TopicScreen)
        await stage.press("escape")
        await stage.at(HelpScreen)


def bindings_of(node: DOMNode) -> list[Binding]:
    return [each for each in type(node).__dict__.get("BINDINGS", ()) if isinstance(each, Binding)]


async def test_every_binding_of_ours_has_words_and_an_id() -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        for node in [stage.app, stage.app.main, *stage.app.main.query("*")]:
            if not type(node).__module__.startswith("mcphost"):
                continue
            name = type(node).__name__
            assert not name.startswith("_") or name in TITLES or not node._bindings.key_to_bindings, name
            for binding in bindings_of(node):
                assert binding.id, (node, binding)
                assert binding.description, (node, binding)
                assert binding.tooltip or not binding.show, (node, binding)


@pytest.mark.parametrize("key", ["question_mark", "f1"])
async def test_the_help_opens_over_a_dialog_and_tells_its_keys(key: str) -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": "x"})
        await stage.call_dialog()
        await stage.press(key)
        await stage.at(HelpScreen)
        await stage.shows("allow once", "until exit", "don't run", "decide later")
        await stage.press("escape")
        await stage.call_dialog()
        await stage.press("n")
        await stage.ended(call)


async def test_keys_of_the_pane_and_of_the_app_are_listed() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        text = await help_at(stage, ["f4"])
        for word in ("sort  Sort by", "pin  Keep this", "call  Open the call", "resources  Resources", "Everywhere"):
            assert word in text
        for word in ("servers  Servers", "prompts  Prompts", "card  The chosen server"):
            assert word in text


async def test_levels_stand_in_one_frame() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("s", "down", "v")
        await stage.shows("Log level of “echo”", "warning and above")
        assert "▊" not in stage.text


@pytest.mark.parametrize("part", [CallList, LogsPane, PromptList, ResourceList, RowList, ServersPane, ToolList])
def test_the_text_about_a_list_repeats_no_key_of_its_table(part: type[DOMNode]) -> None:
    words = re.findall(r"\S+", (getattr(part, "HELP", None) or "").partition("A filter: ")[0])
    chain = [each for each in part.__mro__ if "BINDINGS" in each.__dict__ and each.__module__.startswith("mcphost")]
    bindings = [binding for each in chain for binding in Binding.make_bindings(each.__dict__["BINDINGS"])]
    assert not ({binding.key for binding in bindings} - {"a"}) & set(words)


async def test_a_list_of_offers_tells_the_keys_that_all_such_lists_have() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        text = await help_at(stage, ["t"])
        for word in ("filter  Type words", "definition  Show its definition"):
            assert word in text
