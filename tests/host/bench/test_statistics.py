"""A difference counts only where it is more than noise."""

from __future__ import annotations

import random

import pytest

from mcphost.host.bench.statistics import NOISE_FLOOR, Figure, noise_of, percentile, ratio_of


def figure(*rounds: float) -> Figure:
    return Figure.measured(percentile(rounds, 50), rounds)


@pytest.mark.parametrize(("percent", "value"), [(50, 2.0), (95, 4.0), (100, 4.0), (25, 1.0)])
def test_percentiles_are_values_that_were_measured(percent: int, value: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], percent) == value


def test_the_noise_of_many_values_ignores_a_slow_minute() -> None:
    assert noise_of([1.0] * 18 + [9.0, 9.0]) == NOISE_FLOOR
    assert noise_of([0.9, 1.1] * 10) == pytest.approx(0.148, abs=0.001)


def test_the_noise_of_few_values_is_at_least_half_of_their_range() -> None:
    assert noise_of([1.0, 1.0, 1.0, 1.0, 1.4]) == pytest.approx(0.2)
    assert noise_of([]) == NOISE_FLOOR


def test_a_slow_minute_that_hits_both_sides_cancels() -> None:
    slow_minute = [1.0] * 10 + [5.0] * 10
    found = ratio_of(figure(*(1.3 * each for each in slow_minute)), figure(*slow_minute))
    assert found is not None
    assert (round(found.ratio, 2), found.noise, found.certain) == (1.3, NOISE_FLOOR, True)
    assert found.words == "1.30 times, noise 2 %"


@pytest.mark.parametrize(("first", "certain"), [(1.03, False), (1.05, True), (0.9, True), (1.0, False)])
def test_a_difference_is_certain_beyond_twice_the_noise(first: float, certain: bool) -> None:
    found = ratio_of(figure(*[first] * 10), figure(*[1.0] * 10))
    assert found is not None
    assert found.certain is certain


def test_four_pairs_are_too_few_for_a_difference() -> None:
    found = ratio_of(figure(*[2.0] * 4), figure(*[1.0] * 4))
    assert found is not None
    assert (found.enough, found.certain) == (False, False)


def test_pairs_that_point_both_ways_are_no_difference() -> None:
    found = ratio_of(figure(*[1.2] * 16, *[0.9] * 4), figure(*[1.0] * 20))
    assert found is not None
    assert not found.certain
    assert found.words == "1.20 times, noise 15 %"


@pytest.mark.parametrize("rounds", [5, 50])
def test_one_program_measured_twice_hardly_ever_differs(rounds: int) -> None:
    chance = random.Random(7)
    sides = [[chance.lognormvariate(0, 0.2) for _ in range(rounds)] for _ in range(400)]
    found = [ratio_of(figure(*one), figure(*other)) for one, other in zip(sides[::2], sides[1::2], strict=True)]
    assert sum(each is not None and each.certain for each in found) <= 3


def test_fifty_noisy_rounds_show_a_difference_of_a_half() -> None:
    chance = random.Random(7)
    slow, fast = ([base * chance.lognormvariate(0, 0.3) for _ in range(50)] for base in (1.5, 1.0))
    found = ratio_of(figure(*slow), figure(*fast))
    assert found is not None
    assert found.certain


def test_a_figure_of_another_run_is_compared_by_both_noises() -> None:
    found = ratio_of(figure(*[1.3] * 20), Figure(1.0, 0.2))
    assert found is not None
    assert (round(found.noise, 2), found.certain) == (0.2, False)
    assert ratio_of(figure(*[1.3] * 20), Figure(0.0)) is None


@pytest.mark.parametrize(("starts", "certain"), [(4, False), (5, True)])
def test_a_figure_of_another_run_needs_rounds_beside_it(starts: int, certain: bool) -> None:
    found = ratio_of(figure(*[2.0] * starts), Figure(1.0))
    assert found is not None
    assert found.certain is certain
