"""Values remembered by server, over runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mcphost.config.state import StateStore
from mcphost.host.remembered import KEPT, RememberedByServer
from tests.memory_store import BrokenStore, MemoryStore


def remembered(store: StateStore | None, report: Callable[[str], None] = pytest.fail) -> RememberedByServer[str]:
    return RememberedByServer(store, "file", "table", str, report, "what it is")


async def test_a_value_is_known_in_the_next_run() -> None:
    store = MemoryStore()
    await remembered(store).learn("a", "1")
    again = remembered(store)
    assert again.get("a") is None
    await again.load()
    assert again.get("a") == "1"
    forgotten = again.forget("a")
    assert forgotten is not None
    await forgotten
    assert (again.get("a"), again.forget("a"), store.content) == (None, None, {"table": {}})


async def test_without_a_store_a_value_is_known_in_this_run() -> None:
    known = remembered(None)
    await known.load()
    await known.learn("a", "1")
    assert known.get("a") == "1"


async def test_the_latest_values_are_kept() -> None:
    store = MemoryStore({"table": {f"k{number}": "x" for number in range(KEPT)}})
    await remembered(store).learn("k0", "y")
    assert list(store.content["table"]) == [*(f"k{number}" for number in range(1, KEPT)), "k0"]
    await remembered(store).learn("new", "z")
    assert next(iter(store.content["table"])) == "k2"
    assert len(store.content["table"]) == KEPT


async def test_forgetting_right_after_learning_reports_nothing() -> None:
    waiting = threading.Event()

    class Slow(MemoryStore):
        def update(self, name: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
            waiting.wait(30)
            super().update(name, change)

    store = Slow({"table": {"b": "2"}})
    known = remembered(store)
    learned, forgotten = known.learn("a", "1"), known.forget("a")
    waiting.set()
    assert forgotten is not None
    await asyncio.gather(learned, forgotten)
    assert store.content == {"table": {"b": "2"}}


async def test_a_value_learned_while_the_file_is_read_is_newer() -> None:
    class Late(MemoryStore):
        def read(self, name: str) -> Mapping[str, Any]:
            asyncio.run_coroutine_threadsafe(learn(), loop).result(30)
            return {"table": {"a": "old", "b": "2"}}

    async def learn() -> None:
        known.learn("a", "new")

    loop, known = asyncio.get_running_loop(), remembered(Late())
    await known.load()
    assert [known.get(key) for key in "ab"] == ["new", "2"]


async def test_an_unusable_file_is_only_reported() -> None:
    reports: list[str] = []
    known = remembered(BrokenStore(), reports.append)
    await known.load()
    await known.learn("a", "1")
    assert known.get("a") == "1"
    assert [each.partition(", and is detected again")[0] for each in reports] == [
        "what it is could not be read",
        "what it is could not be saved",
    ]
