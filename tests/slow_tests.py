"""Which tests are slow without saying so: those of some folders, and those that start a program or the whole app.

What a test starts is found in its text, and in that of its fixtures and of the helpers that these call. Others are
marked themselves, alone or with their module (`pytestmark`): what takes more than about a second, or starts a
program in a way that cannot be found so. `pytest -m "not slow"` is the inner loop: it does not even import a module
that says of itself that it is slow.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

FOLDERS = {"benchmarks", "conformance", "demo", "servers", "whole"}
APP = "McphostApp"
INNER_LOOP = "not slow"
MODULE_IS_SLOW = re.compile(rb"^pytestmark = .*\bpytest\.mark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The inner loop leaves out a module of slow tests: importing it takes longer than most tests."""
    if config.option.markexpr == INNER_LOOP and collection_path.match("test_*.py") and is_slow_module(collection_path):
        return True
    return None


def is_slow_module(path: Path) -> bool:
    """Return True if a module's folder or its text marks all its tests as slow."""
    return path.parent.name in FOLDERS or MODULE_IS_SLOW.search(path.read_bytes()) is not None


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.parent.name in FOLDERS or (isinstance(item, pytest.Function) and _is_slow(item)):
        item.add_marker("slow")


def _is_slow(test: pytest.Function) -> bool:
    definitions = test._fixtureinfo.name2fixturedefs
    fixtures = [each.func for name in test.fixturenames for each in definitions.get(name, ()) if _is_ours(each.func)]
    return any(starts_something(each) for each in (test.function, *fixtures))


def _is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith("tests.")


@cache
def starts_something(function: Any) -> bool:
    """Return True if a function, or a helper that it calls, names a program or the whole app."""
    return any(_starts(each) for each in _reached(function, set()))


def _reached(value: Any, seen: set[FunctionType]) -> Iterator[FunctionType]:
    """A function and all those of the tests that it names, the methods of the classes that it names among them."""
    if isinstance(value, type):
        for each in list(vars(value).values()):
            yield from _reached(getattr(each, "__func__", each), seen)
    function = inspect.unwrap(value) if callable(value) else value
    if isinstance(function, FunctionType) and function not in seen:
        seen.add(function)
        yield function
        for each in _named(function):
            if _is_ours(each):
                yield from _reached(each, seen)


def _starts(function: FunctionType) -> bool:
    named = list(_named(function))
    modules = [each for each in named if inspect.ismodule(each)]
    runs_python = sys in modules and any("executable" in code.co_names for code in _codes(function.__code__))
    return runs_python or subprocess in modules or any(getattr(each, "__name__", "") == APP for each in named)


def _named(function: FunctionType) -> Iterator[Any]:
    """The global values that a function names."""
    for code in _codes(function.__code__):
        yield from (function.__globals__[name] for name in code.co_names if name in function.__globals__)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions and comprehensions inside."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)
