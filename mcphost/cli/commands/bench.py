"""``mcphost bench``: how fast a server starts and answers, beside another one, its other era or an earlier run."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcphost.cli.approver import approver_for
from mcphost.cli.commands.call import read_arguments, typed_arguments
from mcphost.cli.failures import BrokenServers, failure
from mcphost.cli.json_input import read_json
from mcphost.cli.output import ErrorReport, Exit, Outcome, StatusLine, answer, json_text, remark, table
from mcphost.cli.preparation import load_config, run_with_answers
from mcphost.composition import Selection, is_ad_hoc, select
from mcphost.config.files import read_regular, text_of
from mcphost.errors import ConfigError, McphostError, ServerNotReady, UsageError
from mcphost.host.bench.measurement import BenchPlan, MeasuredSide
from mcphost.host.bench.report import (
    Budget,
    BudgetResult,
    SideFigures,
    as_object,
    budget_object,
    check_budgets,
    differences_between,
    figures_of,
    finding_object,
    read_baseline,
    read_budgets,
    rows_of,
)
from mcphost.host.comparison.sides import ERAS, Side, in_era, in_eras
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line

if TYPE_CHECKING:
    from mcphost.host.host import Host

BASELINE_BYTES: Final = 1_000_000


def run_bench(options: Namespace) -> int:
    """Measure one or two sides. Raises what kept mcphost from it."""
    if options.args is not None and options.tool is None:
        raise UsageError("--args is for a call; name a tool")
    typed = read_arguments(options.pairs, options.args)
    plan = BenchPlan(
        options.calls,
        options.concurrency,
        options.tool or "",
        lambda tool: typed_arguments(typed, tool.input_schema),
        options.timeout,
    )
    budgets, baseline = _budgets(options), _baseline(options)
    chosen, sides = _chosen(options)
    bench = Bench(sides, plan, budgets, baseline, chosen.broken, as_json=options.json)
    configured = not is_ad_hoc(options.server)
    approver = approver_for(options.server, options.tool or "", yes=options.yes, configured=configured)
    return run_with_answers(options, chosen, approver, bench.run)


def _chosen(options: Namespace) -> tuple[Selection, Sequence[Side]]:
    """The servers to run, and the sides. Raises ConfigError."""
    if options.against is not None and (options.era == "both" or options.baseline is not None):
        raise UsageError("--era both, --against and --baseline each name the other side; give one of them")
    servers = [options.server, *([options.against] if options.against is not None else [])]
    if len(set(servers)) < len(servers):
        raise UsageError("these are the same server; without --against, it is measured alone")
    chosen = select(load_config(options, servers), servers)
    for error in chosen.broken.values():
        raise error
    if options.era is None:
        return chosen, [Side(name, name) for name in chosen.names]
    config, sides = chosen.config, list[Side]()
    if options.era == "both":
        config, both = in_eras(config, chosen.names[0], ERAS)
        sides = list(both)
    else:
        for name in chosen.names:
            config, side = in_era(config, name, options.era)
            sides.append(side)
    copies = {side.server: config.servers[side.server] for side in sides}
    return replace(chosen, config=config.model_copy(update={"servers": copies}), names=tuple(copies)), sides


def _budgets(options: Namespace) -> Sequence[Budget]:
    if options.budget and options.against is None and options.baseline is None:
        raise UsageError("--budget compares with another server or run; add --against SERVER or --baseline FILE")
    try:
        return read_budgets(options.budget)
    except ValueError as error:
        raise UsageError(f"--budget: {error}") from None


def _baseline(options: Namespace) -> SideFigures | None:
    if options.baseline is None:
        return None
    path = Path(options.baseline)
    try:
        value = read_json(text_of(read_regular(path, BASELINE_BYTES)))
        return read_baseline(value, f"the baseline {path.name}")
    except FileNotFoundError:
        raise ConfigError("does not exist; write it with: mcphost bench SERVER --json", path=path) from None
    except RecursionError:
        raise ConfigError("is nested too deeply", path=path) from None
    except ValueError as error:
        raise ConfigError(f"is not a baseline: {error}", path=path) from None


@dataclass(frozen=True, slots=True)
class Bench:
    """A measurement of sides, and the figures that it is compared with."""

    sides: Sequence[Side]
    plan: BenchPlan
    budgets: Sequence[Budget]
    baseline: SideFigures | None
    broken: BrokenServers
    as_json: bool

    async def run(self, host: Host) -> Outcome:
        """Measure, and report even where it is interrupted. Raises Declined, UnknownName, InvalidArguments."""
        measured = [MeasuredSide(side) for side in self.sides]
        if self.plan.tool:
            names = " and ".join(side.name for side in self.sides)
            remark(f"{self.plan.tool} is called {self.plan.times:,} times on {names}")
        status = StatusLine()
        try:
            await host.bench.measure(measured, self.plan, lambda text: status.show(text, last=True))
        except asyncio.CancelledError:
            status.clear()
            if any(each.requests for each in measured):
                remark("interrupted: this is what was measured until then")
                answer(self._outcome(host, measured).text)
            raise
        finally:
            status.clear()
        return self._outcome(host, measured)

    def _outcome(self, host: Host, measured: Sequence[MeasuredSide]) -> Outcome:
        figures = [figures_of(each) for each in measured]
        other = self.baseline or (figures[1] if len(figures) > 1 else None)
        found = [] if other is None else differences_between(figures[0], other, concurrency=self.plan.concurrency)
        results = [] if other is None else check_budgets(self.budgets, figures[0], other)
        if self.as_json:
            facts = as_object(measured, figures)
            text = json_text(
                {**facts, "differences": list(map(finding_object, found)), "budget": list(map(budget_object, results))}
            )
        else:
            lines = [*(each.words for each in found), *map(_budget_line, results)]
            text = table(list(rows_of(measured, figures))) + "".join(f"{show_line(line)}\n" for line in lines)
        return Outcome(text, *self._ending(host, measured, results))

    def _ending(
        self, host: Host, measured: Sequence[MeasuredSide], results: Sequence[BudgetResult]
    ) -> tuple[int, tuple[str, ...], tuple[ErrorReport, ...]]:
        """The exit code, remarks and errors."""
        closed = [each for each in measured if each.failure]
        errors = [self._failure(host, each) for each in closed]
        if errors:
            code = Exit.USAGE if any(isinstance(error, ConfigError) for error in errors) else Exit.NOT_CONNECTED
            return code, (), tuple(map(ErrorReport.from_error, errors))
        unanswered = any(request.unanswered for side in measured for request in side.requests.values())
        exceeded = any(result.state in ("exceeded", "unknown") for result in results)
        return Exit.NEGATIVE if exceeded or unanswered else Exit.DONE, (), ()

    def _failure(self, host: Host, measured: MeasuredSide) -> McphostError:
        if host.servers[measured.side.server].ready:  # it is there, but answers nothing
            return ServerNotReady(f"{measured.side.name}: {measured.failure}")
        return failure(host, measured.side.server, self.broken, called=measured.side.name)


def _budget_line(result: BudgetResult) -> str:
    return f"budget {result.budget.words} {result.state}: {result.words}"
