"""Names of widgets: CSS selects a widget by its class name alone."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from typing import Any

from textual.widget import Widget

import mcphost.tui


def test_no_two_widgets_share_a_name() -> None:
    """Else each would get the other's rules, once both have been on screen."""
    for module in pkgutil.walk_packages(mcphost.tui.__path__, "mcphost.tui."):
        importlib.import_module(module.name)
    ours = {each for each in _heirs(Widget) if each.__module__.startswith("mcphost.")}
    names = Counter(each.__name__ for each in ours)
    assert [name for name, count in names.items() if count > 1] == []


def _heirs(parent: type[Any]) -> set[type[Any]]:
    return {parent}.union(*(_heirs(each) for each in parent.__subclasses__()))
