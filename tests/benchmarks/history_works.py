"""The time until calls of earlier runs are there to be listed: the newest ones, and those that a filter finds."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from mcphost.host.history.past_call import PastCallQuery
from tests.benchmarks.measure import Row, Sample
from tests.benchmarks.sizes import Sizes
from tests.host.history.histories import Run

ALLOWED: Final = 0.1
"""Seconds in which the calls are there."""

_COPIES: Final = (
    "WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) "
    "INSERT INTO calls SELECT n, run, n, time + n, 'server' || n % 7, 'tool' || n % 40, state, duration, sent, "
    "result_size, result_digest, origin, identity, error, argument_text FROM numbers, calls WHERE id = 1",
    "WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) "
    "INSERT INTO searched SELECT n, text || ' needle' || n FROM numbers, searched WHERE call = 1",
    "WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) "
    "INSERT INTO results SELECT n, json FROM numbers, results WHERE call = 1",
)


async def many_calls(sizes: Sizes, runs: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.sqlite"
        await _kept(path)
        await asyncio.to_thread(_copied, path, sizes.kept_calls)
        opened, filtered = [], []
        for _ in range(runs):
            here = Run(path)
            opened.append(await _timed(here, PastCallQuery(), min(200, sizes.kept_calls)))
            rare = PastCallQuery(words=[f"needle{sizes.kept_calls // 2}"])
            filtered.append(await _timed(here, rare, 1))
            await here.history.aclose()
    bounds = (Sample(ALLOWED),) * runs
    count = f"{sizes.kept_calls:,}"
    return [
        Row(f"history of {count} calls: open", tuple(opened), bounds, 1.0),
        Row(f"history of {count} calls: filter", tuple(filtered), bounds, 1.0),
    ]


async def _kept(path: Path) -> None:
    """Keep a first call."""
    first = Run(path)
    path_like = "/home/user/projects/number/src/main.py"
    first.add(
        {"path": path_like, "query": "hay stack", "limit": 50}, {"content": [{"type": "text", "text": "x" * 400}]}
    )
    await first.history.aclose()


def _copied(path: Path, count: int) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for copies in _COPIES:
            database.execute(copies, (count,))


async def _timed(here: Run, query: PastCallQuery, expected: int) -> Sample:
    began = time.perf_counter()
    found = await here.history.find(query)
    took = time.perf_counter() - began
    assert len(found) == expected, len(found)
    return Sample(took)
