"""Which tests are slow without saying so: those of some folders, and those that run the whole app or a terminal.

Others are marked where they stand, alone or with their module (`pytestmark`): what runs the app through a helper of its
own, starts a process for each test, or takes more than about a second. `pytest -m "not slow"` is the inner loop.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

FOLDERS = {"benchmarks", "conformance", "demo", "servers", "whole"}
RUNNERS = {"Terminal", "asked", "chatting", "lent", "mcphost", "on_stage", "signing"}
HOMES = ("tests.terminal", "tests.tui.")


def runs_the_app(test: Callable[..., Any]) -> bool:
    """Does the text of a test name what runs the whole app or a terminal?"""
    plain = inspect.unwrap(test)
    named = (plain.__globals__.get(name) for name in RUNNERS.intersection(plain.__code__.co_names))
    return any(getattr(each, "__module__", "").startswith(HOMES) for each in named)


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.parent.name in FOLDERS or (isinstance(item, pytest.Function) and runs_the_app(item.function)):
        item.add_marker("slow")
