"""The pinned tools, kept from run to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.config.state import StateStore
from mcphost.host.pinned_tools import PinnedTools
from tests.memory_store import BrokenStore, MemoryStore


async def test_two_mcphosts_keep_the_pins_of_both(tmp_path: Path) -> None:
    one, other = (PinnedTools(StateStore(tmp_path, pytest.fail), pytest.fail) for _ in range(2))
    await one.set(("demo", "brew"), pinned=True)
    await other.set(("git", "log"), pinned=True)
    await one.set(("demo", "pour"), pinned=True)
    await one.set(("demo", "brew"), pinned=False)
    assert await other.load() == {("demo", "pour"), ("git", "log")}
    await one.set(("git", "log"), pinned=False)
    assert "git" not in (tmp_path / "pins.toml").read_text()


async def test_an_invalid_pin_is_left_out() -> None:
    store = MemoryStore({"demo": ["brew", 3], "git": "log"})
    assert await PinnedTools(store, pytest.fail).load() == {("demo", "brew")}


async def test_pins_that_cannot_be_kept_are_reported() -> None:
    reports: list[str] = []
    pins = PinnedTools(BrokenStore(), reports.append)
    assert await pins.load() == frozenset()
    await pins.set(("demo", "brew"), pinned=True)
    assert [each.partition(":")[0] for each in reports] == [
        "the pinned tools could not be read",
        "the pinned tools could not be saved",
    ]
