"""Expiry and rates, by a clock that the tests move."""

from __future__ import annotations

from mcphost.serving.time_limits import Expiry, Rate
from tests.serving.manual_timers import ManualTimers


def test_each_item_ends_at_its_time_by_one_timer() -> None:
    timers, ended = ManualTimers(), list[str]()
    expiry = Expiry(timers, 10, ended.append)
    for name in "abc":
        expiry.add(name)
        timers.advance(2)
    expiry.discard("b")
    assert len(timers.waiting) == 1
    timers.advance(4)
    assert ended == ["a"]
    timers.advance(4)
    assert (ended, timers.waiting) == (["a", "c"], [])


def test_no_timer_is_set_while_nothing_is_open() -> None:
    timers, ended = ManualTimers(), list[str]()
    expiry = Expiry(timers, 10, ended.append)
    expiry.add("a")
    expiry.discard("a")
    assert timers.waiting == []


def test_an_item_that_is_added_again_lasts_longer() -> None:
    timers, ended = ManualTimers(), list[str]()
    expiry = Expiry(timers, 10, ended.append)
    for name in "aba":
        expiry.add(name)
        timers.advance(4)
    timers.advance(4)
    assert ended == ["b"]


def test_an_item_may_be_added_when_one_ends() -> None:
    timers = ManualTimers()
    ended = list[str]()
    expiry: Expiry[str]

    def end(item: str) -> None:
        ended.append(item)
        expiry.add(item + "'")

    expiry = Expiry(timers, 10, end)
    expiry.add("a")
    timers.advance(20)
    assert ended == ["a", "a'"]


def test_a_rate_counts_what_it_refuses() -> None:
    timers = ManualTimers()
    rate = Rate(2, timers.time)
    assert [rate.admit() for _ in range(4)] == [True, True, False, False]
    timers.advance(1)
    assert (rate.admit(), rate.take_refused(), rate.take_refused()) == (True, 2, 0)
