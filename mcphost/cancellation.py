"""Waits that asyncio lacks: for the first of several, or to the end whatever happens; and which task was cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Run all together until one ends, and stop the rest. Raises what the first to end raised; earlier ones first."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if task in done:
            task.result()


async def to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait for ``work`` even when cancelled meanwhile; the cancel goes on afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    task.result()


def is_cancelled() -> bool:
    """True if the current task was cancelled itself, and not only what it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
