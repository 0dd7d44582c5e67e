"""A stopped clock for mcphost, so that no time on screen differs between runs."""

from __future__ import annotations

import pkgutil
import sys
import time
from collections.abc import Callable
from datetime import datetime, tzinfo
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import mcphost

NOW = datetime.fromisoformat("2026-11-03T14:02:11+00:00").timestamp()
SINCE_START = 5_000.0


class _AnyDate(type):
    """Lets dates of files, which no stopped clock made, pass for its own."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


class StillDate(datetime, metaclass=_AnyDate):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> StillDate:
        return cls.fromtimestamp(NOW, tz)


def stop_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only mcphost's own modules see it: the event loop, Textual and the tests have the real one."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    still = ModuleType("time")
    vars(still).update(vars(time), time=wall_clock, monotonic=steady_clock, perf_counter=steady_clock)
    for module in modules():
        if vars(module).get("time") is time:
            monkeypatch.setattr(module, "time", still)
        if vars(module).get("datetime") is datetime:
            monkeypatch.setattr(module, "datetime", StillDate)
        for each in list(vars(module).values()):
            if isinstance(each, type) and each.__module__ == module.__name__:
                _stop_defaults(monkeypatch, vars(each).get("__init__"))


def wall_clock() -> float:
    return NOW


def steady_clock() -> float:
    return SINCE_START


def _stop_defaults(monkeypatch: pytest.MonkeyPatch, function: Any) -> None:
    """Replace clocks that are the defaults of arguments."""
    defaults = getattr(function, "__kwdefaults__", None) or {}
    for name, value in list(defaults.items()):
        if value in (time.time, time.monotonic):
            monkeypatch.setitem(defaults, name, STAND_INS[value])


STAND_INS: dict[Any, Callable[[], float]] = {time.time: wall_clock, time.monotonic: steady_clock}


def modules() -> list[ModuleType]:
    """All modules of mcphost except the demo, which runs in a process of its own."""
    names = [each.name for each in pkgutil.walk_packages(mcphost.__path__, "mcphost.") if "__main__" not in each.name]
    for name in names:
        if not name.startswith("mcphost.demo"):
            import_module(name)
    return [module for name, module in list(sys.modules.items()) if name.startswith("mcphost.")]
