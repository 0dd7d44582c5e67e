from __future__ import annotations

import asyncio

import pytest

from mcphost.client.deadlines import Deadline, Deadlines


async def wait(deadlines: Deadlines, idle: float, hard: float, answer: asyncio.Future[str] | None = None) -> str:
    """What one request does; TimeoutError is told as `idle` or `hard`."""
    limit = Deadline(deadlines, idle, hard)
    try:
        with limit:
            return await (answer or asyncio.get_running_loop().create_future())
    except TimeoutError:
        return "hard" if limit.hard else "idle"


async def test_each_of_many_requests_has_its_own_limit_on_the_one_timer() -> None:
    deadlines = Deadlines()
    ended: list[str] = []

    async def run(name: str, idle: float, hard: float) -> None:
        ended.append(f"{name} {await wait(deadlines, idle, hard)}")

    answer = asyncio.get_running_loop().create_future()
    long = asyncio.create_task(wait(deadlines, 60, 60, answer))
    await asyncio.gather(run("later", 0.09, 60), run("sooner", 0.03, 60), run("between", 60, 0.06))
    answer.set_result("answered")
    assert (ended, await long) == (["sooner idle", "between hard", "later idle"], "answered")


async def test_a_sign_of_life_moves_the_idle_limit_and_never_the_hard_one() -> None:
    loop = asyncio.get_running_loop()
    limit = Deadline(Deadlines(), 0.03, 0.12)
    began = loop.time()

    async def stay_alive() -> None:
        with limit:
            while True:
                await asyncio.sleep(0)
                limit.extend()

    with pytest.raises(TimeoutError):
        await stay_alive()
    assert 0.12 <= loop.time() - began < 1
    assert limit.hard


async def test_a_task_that_was_cancelled_as_well_stays_cancelled() -> None:
    deadlines = Deadlines()
    task = asyncio.create_task(wait(deadlines, 60, 60))
    await asyncio.sleep(0)
    (limit,) = deadlines.running
    limit.strike()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nothing_is_left_in_the_loop_once_nobody_waits_any_more() -> None:
    deadlines = Deadlines()
    before = _timers()
    assert await wait(deadlines, 0.01, 60) == "idle"
    answer = asyncio.get_running_loop().create_future()
    answer.set_result("answered")
    assert await wait(deadlines, 60, 60, answer) == "answered"
    deadlines.close()
    assert _timers() == before


def _timers() -> int:
    return sum(not handle.cancelled() for handle in asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]
