from __future__ import annotations

import asyncio
import contextlib

import pytest

from mcphost.client.deadlines import Deadline, Deadlines


class Clock:
    """The event loop's clock, which moves only when a test moves it: no machine is too busy for these deadlines."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    async def move(self, seconds: float) -> None:
        """Let ``seconds`` pass, and everything due then happen."""
        self.now += seconds
        for _ in range(5):  # the timer, the task that it cancels, and who waits for that
            await asyncio.sleep(0)


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    still = Clock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", still)
    return still


async def wait(deadlines: Deadlines, idle: float, hard: float, answer: asyncio.Future[str] | None = None) -> str:
    """Run one request; returns `idle` or `hard` for a TimeoutError."""
    limit = Deadline(deadlines, idle, hard)
    try:
        with limit:
            return await (answer or asyncio.get_running_loop().create_future())
    except TimeoutError:
        return "hard" if limit.hard else "idle"


async def test_each_of_many_requests_has_its_own_limit_on_the_one_timer(clock: Clock) -> None:
    deadlines = Deadlines()
    ended: list[str] = []

    async def run(name: str, idle: float, hard: float) -> None:
        ended.append(f"{name} {await wait(deadlines, idle, hard)}")

    answer = asyncio.get_running_loop().create_future()
    long = asyncio.create_task(wait(deadlines, 60, 60, answer))
    short = asyncio.gather(run("later", 9, 60), run("sooner", 3, 60), run("between", 60, 6))
    await clock.move(0)
    seen = []
    for _ in range(10):
        await clock.move(1)
        seen.append(len(ended))
    await short
    answer.set_result("answered")
    assert (ended, await long) == (["sooner idle", "between hard", "later idle"], "answered")
    assert seen == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]


async def test_progress_moves_the_idle_limit_and_never_the_hard_one(clock: Clock) -> None:
    began = clock.now

    async def stay_alive() -> bool:
        limit = Deadline(Deadlines(), 3, 12)
        with contextlib.suppress(TimeoutError), limit:
            while True:
                await asyncio.sleep(0)
                limit.extend()
        return limit.hard

    living = asyncio.create_task(stay_alive())
    await clock.move(0)
    while not living.done():
        await clock.move(1)
    assert (clock.now - began, await living) == (12, True)


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
