"""The report of a bench: the figures of each side, the differences that are more than noise, and the budget."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from mcphost.host.bench.measurement import LIST, PING, MeasuredRequest, MeasuredSide
from mcphost.host.bench.statistics import NOISE_FLOOR, Figure, FigureRatio, percentile, ratio_of
from mcphost.json_values import as_dict, as_text, dicts_in, is_number
from mcphost.protocol.display import show_name, size_text

PERCENTILES: Final = (50, 95, 99)

BUDGETS: Final = ("startup", "memory", "p50", "p95", "p99", "throughput", "errors")
"""The figures that a budget may name."""

_BUDGET: Final = re.compile(r"([a-z0-9]+)=([+-]?\d{1,4}(?:\.\d{1,3})?)%?")

_LARGEST: Final = 1e15
"""Of a number in a baseline; larger ones may exceed any arithmetic."""

_CHEAP: Final = {PING: "ping", LIST: LIST}


class RequestFigures(NamedTuple):
    """The figures of one kind of request: ``latencies`` in seconds by percentile, ``throughput`` per second."""

    name: str
    requests: int
    errors: int
    first_error: str = ""
    latencies: Mapping[int, Figure] = {}
    throughput: Figure | None = None

    @property
    def error_share(self) -> float:
        return self.errors / self.requests if self.requests else 0.0


class SideFigures(NamedTuple):
    """The figures of one side: ``startup`` in seconds, ``memory`` in bytes; None where they were not measured."""

    label: str
    startup: Figure | None = None
    memory: Figure | None = None
    requests: Mapping[str, RequestFigures] = {}


def figures_of(measured: MeasuredSide) -> SideFigures:
    requests = {name: _request_figures(each) for name, each in measured.requests.items()}
    return SideFigures(measured.side.name, _middle(measured.startups), _middle(measured.memories), requests)


def _middle(values: Sequence[float]) -> Figure | None:
    return Figure.measured(percentile(values, 50), values) if values else None


def _request_figures(measured: MeasuredRequest) -> RequestFigures:
    rounds = [each for each in measured.rounds if each.latencies]
    every = [seconds for each in rounds for seconds in each.latencies]
    requests = len(every) + measured.errors
    if not every:
        return RequestFigures(measured.name, requests, measured.errors, measured.first_error)
    starts = [[s for each in rounds if each.start == start for s in each.latencies] for start in _starts(measured)]
    latencies = {}
    for percent in PERCENTILES:
        # A round has too few requests for what is at the end.
        groups = [each.latencies for each in rounds] if percent == 50 else starts
        latencies[percent] = Figure.measured(
            percentile(every, percent), [percentile(group, percent) for group in groups if group]
        )
    speeds = [len(each.latencies) / each.seconds for each in rounds if each.seconds > 0]
    throughput = Figure.measured(len(every) / sum(each.seconds for each in rounds), speeds) if speeds else None
    return RequestFigures(measured.name, requests, measured.errors, measured.first_error, latencies, throughput)


def _starts(measured: MeasuredRequest) -> list[int]:
    return sorted({each.start for each in measured.rounds})


# Differences.


class BenchFinding(NamedTuple):
    """The comparison of one figure: ``words`` is a sentence about it."""

    figure: str
    request: str
    ratio: FigureRatio
    words: str


def differences_between(first: SideFigures, second: SideFigures, *, concurrency: int = 1) -> list[BenchFinding]:
    """Compare start-up, memory and requests of two sides; of several at once also how many are answered."""
    found = [
        _finding("startup", "", first, second, first.startup, second.startup, ("starts more slowly", "start-up")),
        _finding("memory", "", first, second, first.memory, second.memory, ("takes more memory", "memory")),
    ]
    for name, one in first.requests.items():
        if (other := second.requests.get(name)) is None:
            continue
        about = _about(name)
        words = f"is slower at {about}", about
        found.append(_finding("p50", name, first, second, one.latencies.get(50), other.latencies.get(50), words))
        if concurrency > 1:
            words = f"answers more of {about} a second", f"{about} a second"
            found.append(_finding("throughput", name, first, second, one.throughput, other.throughput, words))
    return [each for each in found if each is not None]


def _about(name: str) -> str:
    return _CHEAP.get(name) or show_name(name)


def _finding(
    figure: str,
    request: str,
    first: SideFigures,
    second: SideFigures,
    one: Figure | None,
    other: Figure | None,
    words: tuple[str, str],
) -> BenchFinding | None:
    ratio = None if one is None or other is None else ratio_of(one, other)
    if ratio is None:
        return None
    more, subject = words
    if not ratio.certain:
        no = "no difference beyond the noise" if ratio.enough else "too few rounds to compare"
        return BenchFinding(figure, request, ratio, f"{subject}: {no}, {ratio.words}")
    larger, smaller = (first, second) if ratio.ratio > 1 else (second, first)
    return BenchFinding(figure, request, ratio, f"{larger.label} {more} than {smaller.label}: {ratio.words}")


# The budget.


class Budget(NamedTuple):
    """The share by which a figure may differ from that of the other side; of ``errors``, in points."""

    figure: str
    percent: float

    @property
    def words(self) -> str:
        return f"{self.figure}={self.percent:+g}%"


def read_budgets(texts: Sequence[str]) -> list[Budget]:
    """The budgets of ``p95=+15%,throughput=-10%``. Raises ValueError with a sentence."""
    budgets = []
    for part in (part.strip() for text in texts for part in text.split(",")):
        match = _BUDGET.fullmatch(part)
        if match is None:
            raise ValueError(f"“{part}” is not FIGURE=PERCENT, such as p95=+15%")
        if match[1] not in BUDGETS:
            raise ValueError(f"“{match[1]}” is not a figure; there are {', '.join(BUDGETS)}")
        budgets.append(Budget(match[1], float(match[2])))
    return budgets


class BudgetResult(NamedTuple):
    """``state`` is ``uncertain`` where the budget is exceeded by no more than noise."""

    budget: Budget
    request: str
    state: Literal["kept", "exceeded", "uncertain", "unknown"]
    words: str


def check_budgets(budgets: Sequence[Budget], first: SideFigures, second: SideFigures) -> list[BudgetResult]:
    """Check the figures of the first side by those of the second."""
    return [result for budget in budgets for result in _checked(budget, first, second)]


def _checked(budget: Budget, first: SideFigures, second: SideFigures) -> Iterator[BudgetResult]:
    if budget.figure in ("startup", "memory"):
        one, other = ((side.startup if budget.figure == "startup" else side.memory) for side in (first, second))
        yield _ratio_result(budget, "", one, other)
        return
    for name, requests in first.requests.items():
        others = second.requests.get(name)
        if others is None:
            yield BudgetResult(budget, name, "unknown", f"{_about(name)} was not measured on {second.label}")
        elif budget.figure == "errors":
            points = 100 * (requests.error_share - others.error_share)
            words = f"{_about(name)}: errors are {100 * requests.error_share:.1f} %, {points:+.1f} points"
            yield BudgetResult(budget, name, "exceeded" if points > budget.percent else "kept", words)
        else:
            yield _ratio_result(budget, name, _figure(requests, budget.figure), _figure(others, budget.figure))


def _figure(figures: RequestFigures, name: str) -> Figure | None:
    return figures.throughput if name == "throughput" else figures.latencies.get(int(name.removeprefix("p")))


def _ratio_result(budget: Budget, request: str, one: Figure | None, other: Figure | None) -> BudgetResult:
    subject = f"{_about(request)}: {budget.figure}" if request else budget.figure
    ratio = None if one is None or other is None else ratio_of(one, other)
    if ratio is None:
        return BudgetResult(budget, request, "unknown", f"{subject} was not measured on both sides")
    change = 100 * (ratio.ratio - 1)
    over = budget.percent - change if budget.figure == "throughput" else change - budget.percent
    words = f"{subject} changed by {change:+.1f} %, noise {100 * ratio.noise:.0f} %"
    if over > 0 and not (ratio.certain and over > 100 * ratio.noise):
        return BudgetResult(budget, request, "uncertain", f"{words}; over the budget, but not certainly")
    return BudgetResult(budget, request, "exceeded" if over > 0 else "kept", words)


# As rows.


def rows_of(measured: Sequence[MeasuredSide], figures: Sequence[SideFigures]) -> Iterator[tuple[str, ...]]:
    """A label and a cell for each side. Texts are as received, not safe to show."""
    yield "", *(each.label for each in figures)
    if any(each.failure for each in measured):
        yield "problem", *(each.failure or "-" for each in measured)
    yield "server", *(_server(each) for each in measured)
    yield "revision", *(each.revision or "-" for each in measured)
    yield "starts in", *(_seconds(each.startup) for each in figures)
    yield "memory", *("-" if each.memory is None else size_text(round(each.memory.value)) for each in figures)
    for name in dict.fromkeys(name for each in figures for name in each.requests):
        found = [each.requests.get(name, RequestFigures(name, 0, 0)) for each in figures]
        yield _about(name), *(f"{each.requests:,} requests" for each in found)
        for percent in PERCENTILES:
            yield f"  p{percent}", *(_seconds(each.latencies.get(percent)) for each in found)
        yield "  a second", *("-" if each.throughput is None else f"{each.throughput.value:,.0f}" for each in found)
        yield "  errors", *(f"{each.errors:,}: {each.first_error}" if each.errors else "0" for each in found)


def _server(measured: MeasuredSide) -> str:
    info = measured.server_info
    return " ".join(str(info[name]) for name in ("name", "version") if info.get(name)) or "-"


def _seconds(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    return f"{figure.value:.2f} s" if figure.value >= 1 else f"{figure.value * 1e3:.3g} ms"


# As JSON, which a later run reads again as its baseline.


def as_object(measured: Sequence[MeasuredSide], figures: Sequence[SideFigures]) -> dict[str, Any]:
    """The sides for ``--json``."""
    return {"sides": [_side_object(one, other) for one, other in zip(measured, figures, strict=True)]}


def _side_object(measured: MeasuredSide, figures: SideFigures) -> dict[str, Any]:
    return {
        "label": figures.label,
        "server": measured.side.server,
        "runs": measured.identity or None,
        "failure": measured.failure or None,
        "protocolVersion": measured.revision or None,
        "serverInfo": measured.server_info,
        "startupSeconds": _figure_object(figures.startup),
        "memoryBytes": _figure_object(figures.memory),
        "requests": [_request_object(each) for each in figures.requests.values()],
    }


def _request_object(figures: RequestFigures) -> dict[str, Any]:
    return {
        "request": figures.name,
        "count": figures.requests,
        "errors": figures.errors,
        "firstError": figures.first_error or None,
        "seconds": {f"p{percent}": _figure_object(each) for percent, each in figures.latencies.items()},
        "perSecond": _figure_object(figures.throughput),
    }


def _figure_object(figure: Figure | None) -> dict[str, float] | None:
    return None if figure is None else {"value": round(figure.value, 7), "noise": round(figure.noise, 4)}


def finding_object(found: BenchFinding) -> dict[str, Any]:
    return {
        "figure": found.figure,
        "request": found.request or None,
        "ratio": round(found.ratio.ratio, 4),
        "noise": round(found.ratio.noise, 4),
        "differs": found.ratio.certain,
        "words": found.words,
    }


def budget_object(result: BudgetResult) -> dict[str, Any]:
    name = {"budget": result.budget.words, "request": result.request or None}
    return {**name, "state": result.state, "words": result.words}


def read_baseline(value: object, label: str) -> SideFigures:
    """The figures of the first side in what ``--json`` printed. Raises ValueError with a sentence."""
    sides = dicts_in(as_dict(value).get("sides"))
    if not sides:
        raise ValueError("it holds no sides; write it with: mcphost bench SERVER --json")
    side = sides[0]
    requests = map(_read_request, dicts_in(side.get("requests")))
    startup, memory = _read_figure(side.get("startupSeconds")), _read_figure(side.get("memoryBytes"))
    return SideFigures(label, startup, memory, {each.name: each for each in requests})


def _read_request(value: Mapping[str, Any]) -> RequestFigures:
    seconds = as_dict(value.get("seconds"))
    latencies = {percent: _read_figure(seconds.get(f"p{percent}")) for percent in PERCENTILES}
    return RequestFigures(
        as_text(value.get("request")),
        round(_read_number(value.get("count"))),
        round(_read_number(value.get("errors"))),
        latencies={percent: figure for percent, figure in latencies.items() if figure is not None},
        throughput=_read_figure(value.get("perSecond")),
    )


def _read_figure(value: object) -> Figure | None:
    given = as_dict(value)
    if not (is_number(given.get("value")) and is_number(given.get("noise"))):
        return None
    return Figure(_read_number(given["value"]), max(NOISE_FLOOR, _read_number(given["noise"])))


def _read_number(value: object) -> float:
    return float(value) if is_number(value) and 0 <= value < _LARGEST else 0.0
