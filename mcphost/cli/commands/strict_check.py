"""``mcphost check --strict``: judges servers by what the specification demands of them."""

from __future__ import annotations

import asyncio
import json
import os
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from mcphost import __version__
from mcphost.cli.approver import approver_for
from mcphost.cli.failures import failure, unselected, worst_exit
from mcphost.cli.output import ErrorReport, Exit, Outcome, StatusLine, json_text, remark, with_coloured_states
from mcphost.cli.parser import ERA_CHOICES
from mcphost.cli.preparation import run_audited, run_without_calls, select_servers
from mcphost.cli.report_formats import ReportedCase, claim_reports, write_reports
from mcphost.composition import Selection, is_ad_hoc, values_for
from mcphost.composition.probing import ProbedServers
from mcphost.config import Config, ServerConfig
from mcphost.errors import ConfigError, Declined, InvalidArguments, McphostError, UnknownName, UsageError
from mcphost.host.comparison.sides import ERAS, EraName, in_era
from mcphost.host.server_rules.checking import EraSighting, calls_in, look_at
from mcphost.host.server_rules.judging import RuleFinding, judge
from mcphost.host.server_rules.requirements import requirements
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.redaction import Mask, redacted

if TYPE_CHECKING:
    from mcphost.host.host import Host
    from mcphost.host.server_rules.sighting import Sighting

SHOWN: Final = ("failed", "warning")
"""The outcomes that are findings."""

MARKS: Final = {"failed": "✖", "warning": "▲", "passed": "●", "skipped": "○"}

_NOT_EVEN: Final = ("of another revision", "not seen from outside")
"""Reasons to skip a row that say nothing about the server."""


@dataclass(frozen=True, slots=True)
class NamedCall:
    """A tool that may be called, with its arguments."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(slots=True)
class JudgedEra:
    """A server in one era. ``findings`` is empty if it does not speak it."""

    server: str
    looked: EraSighting
    findings: Sequence[RuleFinding] = ()

    @property
    def title(self) -> str:
        seen = self.looked.seen
        return f"{self.server}, {self.looked.era}" + (f" {seen.revision.version} over {seen.transport}" if seen else "")

    @property
    def counts(self) -> Counter[str]:
        return Counter(finding.outcome for finding in self.findings)

    def as_object(self, *, every: bool) -> dict[str, Any]:
        seen = self.looked.seen
        return {
            "server": self.server,
            "era": self.looked.era,
            "speaks": seen is not None,
            "reason": self.looked.words,
            "protocolVersion": seen.revision.version if seen else None,
            "transport": seen.transport if seen else None,
            **{outcome: self.counts[outcome] for outcome in MARKS},
            "findings": [_as_object(each) for each in self.findings if every or each.outcome in SHOWN],
        }


@dataclass(slots=True)
class StrictCheckPlan:
    """The eras and calls that the command line names."""

    eras: tuple[EraName, ...] | None
    """None: those that each server speaks."""
    calls: Sequence[NamedCall]
    copies: dict[tuple[str, EraName], str] = field(default_factory=dict)
    """The names of the servers' copies that speak one era, for calls."""


def run_check_strict(options: Namespace) -> int:
    """Probe the servers, and report every row that they break."""
    wanted = options.era
    if wanted not in (None, *ERA_CHOICES, "any"):  # ``check --strict --era SERVER``: the word is not an era
        options.servers, wanted = [wanted, *options.servers], "any"
    eras = None if wanted in (None, "any") else ERAS if wanted == "both" else (wanted,)
    plan = StrictCheckPlan(eras, [_read_call(word) for word in options.call])
    claim_reports(options)
    chosen = _unstarted(select_servers(options), plan)
    names = [name for name in chosen.names if name not in plan.copies.values()]
    values = values_for(chosen.config, os.environ)

    async def work(host: Host) -> Outcome:
        probed = ProbedServers(chosen.config, values, host.traffic)
        try:
            return await check_strictly(host, names, chosen, plan, options, probed, values.mask)
        finally:
            await probed.aclose()

    if not plan.calls:
        return run_without_calls(options, chosen, work, values=values)
    tools = ", ".join(dict.fromkeys(show_line(call.tool) for call in plan.calls))
    remark(f"will call {tools} on {', '.join(names)}, once in each era")
    configured = not any(map(is_ad_hoc, options.servers))
    approver = approver_for(names[0], plan.calls[0].tool, yes=options.yes, configured=configured)
    return run_audited(options, chosen, approver, work, values=values)


def _read_call(word: str) -> NamedCall:
    """``TOOL`` or ``TOOL {"name": value}``. Raises UsageError."""
    tool, _, given = word.partition(" ")
    if not given.strip():
        return NamedCall(tool, {})
    try:
        arguments = json.loads(given)
    except ValueError as error:
        raise UsageError(f"--call {tool}: the arguments are not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise UsageError(f"--call {tool}: the arguments must be a JSON object")
    return NamedCall(tool, arguments)


def _unstarted(chosen: Selection, plan: StrictCheckPlan) -> Selection:
    """The selection, in which nothing starts by itself; with copies of the servers for calls in each era."""
    config: Config = chosen.config
    servers: dict[str, ServerConfig] = {
        name: entry.model_copy(update={"start": "manual"}) for name, entry in config.servers.items()
    }
    for name in chosen.names if plan.calls else ():
        for era in plan.eras or ERAS:
            try:
                config, side = in_era(config, name, era)
            except ConfigError:
                continue
            plan.copies[name, era] = side.server
            servers[side.server] = config.servers[side.server]
    names = (*chosen.names, *plan.copies.values())
    return replace(chosen, config=config.model_copy(update={"servers": servers}), names=names)


async def check_strictly(
    host: Host,
    names: Sequence[str],
    chosen: Selection,
    plan: StrictCheckPlan,
    options: Namespace,
    probed: ProbedServers,
    mask: Mask,
) -> Outcome:
    """Look at all servers at once, make the calls one after the other, and report without secrets."""
    status = StatusLine()
    try:
        found = await asyncio.gather(*(_look(host, name, probed, plan, status) for name in names))
        for name, eras in zip(names, found, strict=True):
            for looked in eras if plan.calls else ():
                await _call(host, name, looked, plan, status)
    finally:
        status.clear()
    shown = [
        (name, looked)
        for name, eras in zip(names, found, strict=True)
        for looked in eras
        if looked.seen or plan.eras or not any(each.seen for each in eras)
    ]
    judged = await asyncio.to_thread(_judged, shown, mask)
    closed = [name for name, eras in zip(names, found, strict=True) if not any(each.seen for each in eras)]
    if closed:
        await host.servers.ready(closed)  # opened as every server is, it says why it cannot be
    unready = [name for name in closed if not host.servers[name].ready]
    failures = [
        *(failure(host, name, chosen.broken) for name in unready),
        *dict(unselected(chosen.broken, names)).values(),
    ]
    return _outcome(judged, failures, options)


def _judged(found: Sequence[tuple[str, EraSighting]], mask: Mask) -> list[JudgedEra]:
    return [
        JudgedEra(name, replace(looked, words=redacted(looked.words, mask)), _findings(looked.seen, mask))
        for name, looked in found
    ]


def _findings(seen: Sighting | None, mask: Mask) -> Sequence[RuleFinding]:
    found = judge(seen) if seen else ()
    return [each._replace(seen=redacted(each.seen, mask), reason=redacted(each.reason, mask)) for each in found]


async def _look(
    host: Host, name: str, probed: ProbedServers, plan: StrictCheckPlan, status: StatusLine
) -> Sequence[EraSighting]:
    pinned = host.config.servers[name].protocol
    eras = plan.eras or (ERAS if pinned == "auto" else (pinned,))
    try:
        target = await probed.find(name)
    except ConfigError as error:
        return [EraSighting(era, words=str(error)) for era in eras]
    identity = {"name": "mcphost", "version": __version__}
    return await look_at(target, eras, identity, lambda probe: status.show(f"probing {name}: {probe}"))


async def _call(host: Host, name: str, looked: EraSighting, plan: StrictCheckPlan, status: StatusLine) -> None:
    """Make the calls in one era, each with consent as any other. Raises Declined, UsageError."""
    copy = plan.copies.get((name, looked.era))
    if looked.seen is None or copy is None:
        return
    await host.servers.ready([copy])
    for wanted in plan.calls:
        status.show(f"calling {wanted.tool} on {name}", last=True)
        began = host.traffic.newest
        call = host.tool_calls.call(copy, wanted.tool, wanted.arguments)
        try:
            await call.result()
        except Declined:
            raise
        except (InvalidArguments, UnknownName) as error:
            raise UsageError(f"--call {wanted.tool}: {str(error).replace(copy, name)}") from None
        except McphostError as error:
            remark(f"{name}: {wanted.tool}: {error}")
        passed = [message for message in host.traffic.since(began) if message.call == call.number]
        looked.seen.calls += calls_in((message, host.traffic.raw(message)) for message in passed)


def _outcome(judged: Sequence[JudgedEra], failures: Sequence[McphostError], options: Namespace) -> Outcome:
    text = (
        "".join(json_text(each.as_object(every=options.rules)) for each in judged)
        if options.json
        else with_coloured_states("".join(_lines(judged, every=options.rules)))
    )
    rules = {row.id: row.text for row in requirements().values()}
    remarks = write_reports(options, [*_cases(judged, every=options.rules)], "mcphost check --strict", rules)
    broken = any(each.looked.seen is None or each.counts["failed"] for each in judged)
    code = Exit.NEGATIVE if broken else Exit.DONE
    if failures:
        code = worst_exit(failures)
    return Outcome(text, code, tuple(remarks), tuple(map(ErrorReport.from_error, failures)))


def _lines(judged: Sequence[JudgedEra], *, every: bool) -> Iterator[str]:
    """The findings of each server, then the counts; with ``every``, each row with its outcome."""
    for number, each in enumerate(judged):
        yield f"\n{each.title}\n" if number else f"{each.title}\n"
        if each.looked.seen is None:
            yield f"  not opened: {show_line(each.looked.words, 400)}\n"
            continue
        for outcome in SHOWN:
            yield from (_finding_lines(finding) for finding in each.findings if finding.outcome == outcome)
        if every:
            yield from (_row_line(finding) for finding in each.findings if finding.outcome not in SHOWN)
        counts, hint = each.counts, "" if every else " (--rules lists them)"
        warnings = "warning" if counts["warning"] == 1 else "warnings"
        yield (
            f"  {counts['failed']} broken, {counts['warning']} {warnings}, {counts['passed']} kept, "
            f"{counts['skipped']} not judged{hint}\n"
        )


def _finding_lines(finding: RuleFinding) -> str:
    row = finding.row
    return (
        f"{MARKS[finding.outcome]} {row.id}  {row.level}  {row.text}\n"
        f"    seen: {finding.seen}\n"
        f"    by:   {row.section}, {row.revisions}\n"
    )


def _row_line(finding: RuleFinding) -> str:
    reason = f" ({finding.reason})" if finding.reason else ""
    return f"{MARKS[finding.outcome]} {finding.row.id}  {finding.row.level}  {finding.row.text}{reason}\n"


def _as_object(finding: RuleFinding) -> dict[str, Any]:
    row = finding.row
    return {
        "rule": row.id,
        "outcome": finding.outcome,
        "level": row.level,
        "section": row.section,
        "revisions": row.revisions,
        "requirement": row.text,
        "seen": finding.seen,
        "reason": finding.reason,
    }


def _cases(judged: Sequence[JudgedEra], *, every: bool) -> Iterator[ReportedCase]:
    for each in judged:
        if each.looked.seen is None:
            yield ReportedCase(each.title, "speaks the era", "failed", each.looked.words, rule="era")
        for finding in each.findings:
            if every or finding.reason not in _NOT_EVEN:
                row, words = finding.row, finding.seen or finding.reason
                name = f"{row.id} {row.text}"
                yield ReportedCase(each.title, name, finding.outcome, words, rule=row.id)
