"""The layout of the main screen, kept from run to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.config.state import StateStore
from mcphost.host.layout import Layout, LayoutFile
from tests.memory_store import BrokenStore, MemoryStore


async def test_a_layout_is_written_only_if_it_changed(tmp_path: Path) -> None:
    file = LayoutFile(StateStore(tmp_path, pytest.fail), pytest.fail)
    await file.save(await file.load())
    assert not (tmp_path / "layout.toml").exists()
    await file.save(Layout(30, "open"))
    assert await LayoutFile(StateStore(tmp_path, pytest.fail), pytest.fail).load() == Layout(30, "open")


@pytest.mark.parametrize(
    ("share", "logs", "layout"),
    [
        ("30", "open", Layout(logs="open")),
        (31, "open", Layout(logs="open")),
        (True, "wide", Layout()),
        (30, [], Layout(30)),
    ],
)
async def test_an_invalid_value_is_the_default(share: object, logs: object, layout: Layout) -> None:
    store = MemoryStore({"list_share": share, "logs": logs})
    assert await LayoutFile(store, pytest.fail).load() == layout


async def test_a_layout_that_cannot_be_kept_is_reported() -> None:
    reports: list[str] = []
    file = LayoutFile(BrokenStore(), reports.append)
    await file.save(await file.load())
    await file.save(Layout(30))
    assert [each.partition(":")[0] for each in reports] == [
        "the layout could not be read",
        "the layout could not be saved",
    ]
