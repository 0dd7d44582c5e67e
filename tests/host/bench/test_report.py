"""The report of a bench: figures, sentences on differences, budgets and the baseline."""

from __future__ import annotations

import json

import pytest

from mcphost.host.bench.measurement import BenchPlan, MeasuredRequest, MeasuredRound, MeasuredSide
from mcphost.host.bench.report import (
    as_object,
    check_budgets,
    differences_between,
    figures_of,
    read_baseline,
    read_budgets,
    rows_of,
)
from mcphost.host.comparison.sides import Side


def measured(label: str, seconds: float, *, errors: int = 0, name: str = "work", startup: float = 0.1) -> MeasuredSide:
    """A side with twenty rounds of five requests, the last of which takes twice as long."""
    rounds = [MeasuredRound(n // 4, (seconds,) * 4 + (2 * seconds,), 6 * seconds) for n in range(20)]
    request = MeasuredRequest(name, rounds, errors, "no\nway" if errors else "")
    return MeasuredSide(Side(label, label), startups=[startup] * 5, memories=[10_000_000] * 5, requests={name: request})


def test_the_figures_are_those_of_all_answered_requests() -> None:
    figures = figures_of(measured("a", 0.01, errors=25)).requests["work"]
    assert [round(each.value, 3) for each in figures.latencies.values()] == [0.01, 0.02, 0.02]
    assert (figures.requests, figures.errors, figures.error_share) == (125, 25, 0.2)
    assert figures.throughput is not None
    assert figures.throughput.value == pytest.approx(100 / 1.2)


@pytest.mark.parametrize(("first", "second"), [("fast", "slow"), ("slow", "fast")])
def test_a_difference_names_the_slower_side(first: str, second: str) -> None:
    seconds = {"fast": 0.01, "slow": 0.015}
    one, other = (figures_of(measured(label, seconds[label])) for label in (first, second))
    assert [each.words for each in differences_between(one, other)] == [
        "start-up: no difference beyond the noise, 1.00 times, noise 2 %",
        "memory: no difference beyond the noise, 1.00 times, noise 2 %",
        'slow is slower at "work" than fast: 1.50 times, noise 2 %',
    ]


def test_throughput_counts_where_requests_are_sent_at_the_same_time() -> None:
    one, other = figures_of(measured("a", 0.01)), figures_of(measured("b", 0.02))
    words = differences_between(one, other, concurrency=8)[-1].words
    assert words == 'a answers more of "work" a second than b: 2.00 times, noise 2 %'


@pytest.mark.parametrize(
    ("budget", "state"),
    [
        ("p95=+60%", "kept"),
        ("p95=+15", "exceeded"),
        ("p50=50.1%", "kept"),
        ("p50=+49%", "uncertain"),
        ("throughput=-10%", "exceeded"),
        ("throughput=-40%", "kept"),
        ("startup=+5%", "kept"),
        ("errors=+5%", "exceeded"),
        ("errors=+20%", "kept"),
    ],
)
def test_a_budget_bounds_how_much_a_figure_may_change(budget: str, state: str) -> None:
    first, second = figures_of(measured("new", 0.015, errors=20)), figures_of(measured("old", 0.01))
    (result,) = check_budgets(read_budgets([budget]), first, second)
    assert result.state == state, result.words


def test_a_budget_is_not_exceeded_by_noise() -> None:
    new, old = measured("new", 0.01), measured("old", 0.01)
    new.startups, old.startups = [0.1, 0.2, 0.3, 0.2, 0.1], [0.1] * 5
    (result,) = check_budgets(read_budgets(["startup=+10%"]), figures_of(new), figures_of(old))
    assert (result.state, "not certainly" in result.words) == ("uncertain", True)


def test_what_was_not_measured_keeps_no_budget() -> None:
    new, old = figures_of(measured("new", 0.01)), figures_of(measured("old", 0.01, name="other"))
    (result,) = check_budgets(read_budgets(["p95=+10%"]), new, old._replace(memory=None))
    assert result.state == "unknown"
    assert check_budgets(read_budgets(["memory=+1%"]), new, old._replace(memory=None))[0].state == "unknown"


@pytest.mark.parametrize("text", ["p95", "p95=fast", "p75=+1%", "p95=+1e9%", ""])
def test_a_budget_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not (FIGURE=PERCENT|a figure)"):
        read_budgets([text])


def test_the_json_of_a_run_is_a_baseline() -> None:
    side = measured("a", 0.01, errors=25)
    figures = figures_of(side)
    value = json.loads(json.dumps(as_object([side], [figures])))
    read = read_baseline(value, "before")
    assert [each.ratio.ratio for each in differences_between(figures, read)] == [1.0, 1.0, 1.0]
    assert read.requests["work"].error_share == figures.requests["work"].error_share


@pytest.mark.parametrize("value", [None, [], {"sides": []}, {"sides": [1]}])
def test_other_json_is_not_a_baseline(value: object) -> None:
    with pytest.raises(ValueError, match="holds no sides"):
        read_baseline(value, "before")


def test_a_hostile_baseline_has_no_figures() -> None:
    number = {"value": True, "noise": float("nan")}
    side = {"startupSeconds": 5, "memoryBytes": number, "requests": [{"request": 1, "count": -1, "seconds": []}, 2]}
    read = read_baseline({"sides": [side]}, "before")
    assert (read.startup, read.memory) == (None, None)
    assert [(each.name, each.requests, each.latencies) for each in read.requests.values()] == [("", 0, {})]


def test_the_rows_name_errors_and_what_is_missing() -> None:
    sides = [measured("a", 0.01, errors=2), MeasuredSide(Side("b", "b"), failure="it exited")]
    rows = {row[0]: row[1:] for row in rows_of(sides, [figures_of(each) for each in sides])}
    assert rows["problem"] == ("-", "it exited")
    assert rows["  errors"] == ("2: no\nway", "0")
    assert rows["  p50"] == ("10 ms", "-")
    assert (rows["starts in"], rows["memory"]) == (("100 ms", "-"), ("10 MB", "-"))


@pytest.mark.parametrize(("calls", "concurrency"), [(1, 1), (7, 3), (20, 1), (103, 4), (500, 64)])
def test_the_plan_spreads_all_requests_over_the_starts(calls: int, concurrency: int) -> None:
    plan = BenchPlan(calls, concurrency)
    rounds = [plan.rounds_after(start) for start in range(plan.starts)]
    assert sum(map(sum, rounds)) == calls
    assert all(rounds)
    assert plan.times == calls + 3 * len(rounds)
