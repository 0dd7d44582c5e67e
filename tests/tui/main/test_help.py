"""The help lists the keys that work."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest
from textual.binding import Binding
from textual.dom import DOMNode
from textual.widgets import Static

import mcphost.tui
from mcphost.manual import topics
from mcphost.tui.kit.bindings import classes_with_bindings
from mcphost.tui.kit.facts_table import FactsTable
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.kit.rows import RowList
from mcphost.tui.kit.text_view import TextView
from mcphost.tui.main.help import TITLES, HelpScreen, TopicScreen
from tests.tui.stage import NARROW, Stage, echo, on_stage

pytestmark = pytest.mark.slow
SHOWN = {"escape": "esc", "less_than_sign": "<", "greater_than_sign": ">", "up": "↑", "down": "↓", "delete": "del"}
PLACES = {
    "tools": (["t"], ["Type words", "its definition", "Open the row"]),
    "servers": (["s"], ["Connect or disconnect", "Restart it", "Set the log level"]),
    "calls": (["h"], ["Cancel the call", "Open the tool with these arguments"]),
    "card": (["c"], ["Copy the card"]),
    "logs": (["f3"], ["Show only some lines"]),
}


async def help_at(stage: Stage, keys: list[str], key: str = "question_mark") -> str:
    await stage.press(*keys, key)
    await stage.at(HelpScreen)
    text = "\n".join(table.text for table in stage.app.screen.query(FactsTable))
    await stage.press("escape")
    await stage.gone()
    return text


async def test_each_part_has_its_keys_and_what_it_is_for() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        for name, (keys, words) in PLACES.items():
            text = await help_at(stage, keys)
            for word in (*words, "waits for your answer", "Leave mcphost", "Marks"):
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
        await stage.shows("Allow this call", "Allow it until mcphost exits", "Decline this call", "Decide later")
        await stage.press("escape")
        await stage.call_dialog()
        await stage.press("n")
        await stage.ended(call)


async def test_keys_of_the_pane_and_of_the_app_are_listed() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        text = await help_at(stage, ["f4"])
        for word in ("Sort by latency", "Keep this message", "Open the call", "Resources", "Everywhere"):
            assert word in text
        for word in ("Servers", "Prompts", "The chosen server"):
            assert word in text


async def test_levels_stand_in_one_frame() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("s", "down", "v")
        await stage.shows("Log level of “echo”", "warning and above")
        assert "▊" not in stage.text


def all_nodes(above: type[DOMNode] = DOMNode) -> Iterator[type[DOMNode]]:
    for node in above.__subclasses__():
        yield node
        yield from all_nodes(node)


NOT_KEYS = {"a", "A", "I", "tab", "/", "?"}
"""Words, and marks that the texts explain."""


def test_the_text_about_a_part_repeats_no_key_of_its_table() -> None:
    for module in pkgutil.walk_packages(mcphost.tui.__path__, "mcphost.tui."):
        importlib.import_module(module.name)
    parts = {node for node in all_nodes() if node.__module__.startswith("mcphost.") and "HELP" in vars(node)}
    assert len(parts) > 50
    for part in parts:
        bindings = [each for above in classes_with_bindings(part) for each in vars(above).get("BINDINGS", ())]
        keys = {key for each in Binding.make_bindings(bindings) for key in (each.key, SHOWN.get(each.key, each.key))}
        said = set(re.findall(r"[^\s,;:.()]+", vars(part)["HELP"].lower() + vars(part)["HELP"]))
        assert not (keys - NOT_KEYS) & said, part


async def test_keys_are_in_two_columns_and_letters_of_a_field_in_neither() -> None:
    async with on_stage(echo(), size=(100, 30)) as stage:
        await stage.ready()
        await stage.open_tool("echo back")
        await stage.press("f1")
        await stage.at(HelpScreen)
        left, right = stage.app.screen.query(FactsTable)
        assert abs(left.size.height - right.size.height) < 12
        keys = [line[:14].strip() for table in (left, right) for line in table.text.splitlines()]
        assert {"f5", "f6", "^q"} < set(keys)
        assert not {"t", "s", "z"} & set(keys)
        await stage.pilot.resize_terminal(*NARROW)
        await stage.until(lambda _: left.size.height > 24 and not right.display)


async def test_a_list_of_offers_tells_the_keys_that_all_such_lists_have() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        text = await help_at(stage, ["t"])
        for word in ("Type words", "Show its definition"):
            assert word in text
