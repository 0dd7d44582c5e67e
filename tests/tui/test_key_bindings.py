"""A key that works everywhere means the same everywhere."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import ModalScreen

import mcphost.tui
from mcphost.tui.app import McphostApp
from mcphost.tui.main.screen import MainScreen
from tests.tui.stage import NARROW, echo, on_stage

IN_DIALOGS_ONLY = {"FolderTree"}
"""Widgets that no pane of the main screen holds: in a dialog, letters are answers."""

CLOSES = {
    ("f2", "back"),  # the inbox
    ("f1", "back"),  # the help
    ("alt+s", "back"),  # the saved calls
}
"""Actions of a screen on the key of the app that opened it: the key closes it again."""


def bindings_of(node: type[DOMNode]) -> Iterator[Binding]:
    yield from Binding.make_bindings(node.__dict__.get("BINDINGS", ()))


def all_nodes(above: type[DOMNode] = DOMNode) -> Iterator[type[DOMNode]]:
    for node in above.__subclasses__():
        if node.__module__.startswith("mcphost."):
            yield node
        yield from all_nodes(node)


def import_everything() -> None:
    for module in pkgutil.walk_packages(mcphost.tui.__path__, "mcphost.tui."):
        importlib.import_module(module.name)


def same(action: str, other: str) -> bool:
    """True if the actions are the same, whatever their namespace."""
    return action.rpartition(".")[2] == other.rpartition(".")[2]


def shadows(nodes: set[type[DOMNode]]) -> Iterator[tuple[str, str, str]]:
    everywhere = {each.key: each for node in (McphostApp, MainScreen) for each in bindings_of(node)}
    for node in nodes - {McphostApp, MainScreen}:
        dialog = issubclass(node, ModalScreen) or node.__name__ in IN_DIALOGS_ONLY
        for binding in bindings_of(node):
            other = everywhere.get(binding.key)
            if other is None or same(binding.action, other.action) or (binding.key, binding.action) in CLOSES:
                continue
            if not dialog or (len(binding.key) > 1 and binding.key != "question_mark"):
                yield node.__name__, binding.key, binding.action


def test_no_pane_takes_a_key_that_works_everywhere() -> None:
    import_everything()
    nodes = set(all_nodes())
    assert len(nodes) > 100
    assert sorted(shadows(nodes)) == []


def test_no_two_widgets_bind_the_same_key_twice_without_saying_when() -> None:
    import_everything()
    for node in all_nodes():
        keys = [each.key for each in bindings_of(node)]
        twice = {key for key in keys if keys.count(key) > 1}
        assert not twice or "check_action" in node.__dict__, (node, twice)


@pytest.mark.slow
async def test_f5_opens_the_chat_from_a_form_and_runs_nothing() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.open_tool("echo back")
        await stage.write("half")
        await stage.press("f5")
        await stage.until(lambda app: app.main.conversing)
        assert not stage.host.tool_calls.calls
        assert len(stage.app.screen_stack) == 1
