"""``mcphost test``: the answers of servers against recordings, or against what saved calls expect."""

from __future__ import annotations

import asyncio
import json
import os
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcphost.cli.approver import NO_CUT, TerminalApprover, YesApprover, confirmed, nobody_hint
from mcphost.cli.failures import BrokenServers, failure
from mcphost.cli.margin import labelled
from mcphost.cli.output import (
    Exit,
    Outcome,
    StatusLine,
    answer,
    exit_for,
    json_text,
    remark,
    table,
    with_coloured_states,
)
from mcphost.cli.preparation import load_config, run_with_answers
from mcphost.cli.report_formats import ReportedCase, claim_reports, write_reports
from mcphost.cli.run import finish
from mcphost.cli.terminal import has_terminal, say, terminal_size
from mcphost.composition import Selection, calls_file, is_ad_hoc, select, values_for
from mcphost.config import ServerConfig, Values, users_path
from mcphost.config.calls import CallsFile
from mcphost.config.state import file_version
from mcphost.errors import ConfigError, Declined, McphostError, NotDone, RequestTimeout, UnknownName, UsageError
from mcphost.host.consent.policy import PolicyDecision
from mcphost.host.consent.questions import Answer, Approver, DeclineAll, Question, ToolCallQuestion
from mcphost.host.recordings.recording import SUFFIX, Recording
from mcphost.host.server_requests.request_kinds import SAMPLING, WRITING
from mcphost.host.verification.answers import ABSENT, AnswerDifference, AnswerRules, path_words
from mcphost.host.verification.cases import (
    CaseReport,
    RecordedCase,
    SavedCase,
    VerificationCase,
    as_recorded,
    chosen,
    recorded_cases,
    saved_cases,
)
from mcphost.host.verification.normalizers import NORMALIZERS, known_names
from mcphost.host.verification.updates import update_call, update_recording, why_not
from mcphost.json_values import as_dict, canonical
from mcphost.lazy_dataclass import dataclass
from mcphost.places import CALLS_FILE, with_tilde
from mcphost.protocol.display import duration_text, show_line, show_name

if TYPE_CHECKING:
    from mcphost.host.host import Host
    from mcphost.host.verification.service import PlannedUse

HELP: Final = "help"
"""The value of ``--normalize`` that lists the normalizers."""

MOST_FILES: Final = 1000
"""Files of a folder."""

MOST_JSON: Final = 10_000
"""Characters of a value in the JSON of a case; longer ones are only in its words."""

RULES: Final = {
    "answer-differs": "The answer of a server differs from the expected one.",
    "not-answered": "The case could not be tried.",
}

_MARKS: Final = {"passed": "✓", "failed": "✖", "error": "✖", "skipped": "-"}


@dataclass(frozen=True, slots=True)
class VerificationFile:
    """A file of cases. ``version`` is that of the file when it was read."""

    path: Path
    shown: str
    cases: Sequence[VerificationCase]
    version: object
    recording: Recording | None = None


@dataclass(slots=True)
class VerificationRun:
    """The cases of a run, each with its server, and their ends."""

    files: Sequence[VerificationFile]
    cases: Sequence[tuple[VerificationCase, str]]
    """The server of a case that is skipped is empty."""
    rules: AnswerRules
    entries: Mapping[str, ServerConfig]
    """The servers as configured."""
    calls: Mapping[str, CallsFile] = field(default_factory=dict)
    """The files of saved calls, as the host opens them."""
    reports: list[CaseReport] = field(default_factory=list)
    declined: bool = False
    updated: set[str] = field(default_factory=set)
    """The cases whose expected answers were replaced."""

    @property
    def tried(self) -> list[tuple[VerificationCase, str]]:
        """The cases that are not skipped."""
        return [(case, server) for case, server in self.cases if server]

    @property
    def code(self) -> int:
        """The exit code: what could not be tried comes before what differs."""
        errors = [each.answer.error for each in self.reports if each.state == "error"]
        failed = [each for each in self.reports if each.state == "failed" and _key(each.case) not in self.updated]
        if self.declined:
            return Exit.DECLINED
        if errors:
            return next((exit_for(error) for error in errors if error is not None), Exit.NOT_CONNECTED)
        if failed and all(isinstance(each.answer.error, RequestTimeout) for each in failed):
            return Exit.TIMED_OUT
        return Exit.NEGATIVE if failed else Exit.DONE


def run_test(options: Namespace) -> int:
    if options.normalize == HELP:
        rows = [("NORMALIZER", "HIDES"), *((each.name, each.about) for each in NORMALIZERS)]
        return finish(Outcome(table(rows)))
    rules = _rules(options)
    claim_reports(options)
    files = _files(options)
    cases = [case for file in files for case in chosen(file.cases, options.k)]
    if all(case.skipped for case in cases):
        raise UsageError(_nothing(options, files, cases))
    selected, servers = _servers(options, cases)
    planned = [(case, "" if case.skipped else servers[case.server]) for case in cases]
    run = VerificationRun(files, planned, rules, dict(selected.config.servers))
    for file in files:
        for problem in () if file.recording is None else file.recording.problems:
            remark(f"{file.shown}: {problem}")
    approver = PlanApprover() if not options.yes and has_terminal() else None
    calling: Approver = approver or (YesApprover() if options.yes else DeclineAll("there is no terminal to ask on"))
    selected, answers = _opened_first(selected, run)
    return run_with_answers(
        options,
        selected,
        calling,
        lambda host: _verify(host, run, approver, selected.broken, options),
        answers=answers,
    )


def _rules(options: Namespace) -> AnswerRules:
    """The rules for differences from a recording. Raises UsageError."""
    names = known_names() if options.normalize is None else options.normalize.split(",")
    try:
        return AnswerRules.parse(options.ignore, names)
    except ValueError as error:
        raise UsageError(str(error)) from None


# Files.


def _files(options: Namespace) -> list[VerificationFile]:
    """The files of cases, or the saved calls beside the configuration. Raises ConfigError, UsageError."""
    if not options.files:
        loaded = load_config(options, ())
        path = calls_file(loaded.config, values_for(loaded.config, os.environ)).path
        return [_file(path, str(with_tilde(path)))] if path.exists() else []
    found: dict[Path, str] = {}
    for word in options.files:
        path = Path(word)
        for each in _in_folder(path) if path.is_dir() else [path]:
            found.setdefault(each, show_line(str(each), 400))
    return [_file(path, shown) for path, shown in found.items()]


def _in_folder(folder: Path) -> list[Path]:
    """The recordings and files of saved calls in a folder and below it, without hidden folders."""
    found: list[Path] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        found += (Path(place, name) for name in sorted(names) if name == CALLS_FILE or name.endswith(SUFFIX))
        if len(found) > MOST_FILES:
            raise UsageError(f"{folder} holds more than {MOST_FILES} files of tests; name some of them")
    return found


def _file(path: Path, shown: str) -> VerificationFile:
    version = file_version(path)
    if path.suffix == ".toml":
        if version is None:
            raise ConfigError("there is no such file", path=path)
        calls = CallsFile(path, Values({}), own=False).read()
        for problem in calls.problems:
            raise problem
        return VerificationFile(path, shown, saved_cases(calls, shown), version)
    from mcphost.host.recordings.reading import read_recording  # late: saved calls do without

    try:
        recording = read_recording(path)
    except NotDone as error:
        raise UsageError(str(error)) from None
    return VerificationFile(path, shown, recorded_cases(recording, shown), version, recording)


def _calls_file(path: Path, host: Host) -> CallsFile:
    own = path.absolute() == users_path(os.environ).with_name(CALLS_FILE).absolute()
    return host.saved_calls.file_at(path, own=own)  # which masks the values of references


def _nothing(options: Namespace, files: Sequence[VerificationFile], cases: Sequence[VerificationCase]) -> str:
    """Say why there is nothing to test, and what to do."""
    if options.k and any(file.cases for file in files):
        return f"no case has {show_name(options.k)} in its name; leave -k out to see all names"
    if cases and isinstance(cases[0], SavedCase):
        return f"no call in {cases[0].group} expects anything; add expect = {{}} to one, which may then not fail"
    if cases:
        return f"nothing in {cases[0].group} can be tried: {cases[0].skipped}"
    where = f" in {', '.join(file.shown for file in files) or show_line(options.files[0])}" if options.files else ""
    record = f"mcphost record FILE{SUFFIX} -- COMMAND records a server's answers"
    return f"there is nothing to test{where}; {record}, and expect = {{}} in a [[call]] of {CALLS_FILE} tests that call"


# Servers.


def _servers(options: Namespace, cases: Sequence[VerificationCase]) -> tuple[Selection, dict[str, str]]:
    """The servers to run, and the server of each name in the cases. Raises ConfigError, UnknownName, UsageError."""
    names = list(dict.fromkeys(case.server for case in cases if not case.skipped))
    if options.against is not None and len(names) > 1:
        named = ", ".join(map(show_line, names))
        raise UsageError(f"--against is one server, and these tests are of {named}; name files of one server")
    arguments = names if options.against is None else [options.against]
    if options.against is None and (strange := next(filter(is_ad_hoc, names), None)):
        raise UsageError(f"the recording is of {show_line(strange)}; name the server to test with --against")
    try:
        selected = select(load_config(options, arguments), arguments)
    except UnknownName as error:
        if options.against is not None:
            raise
        raise UnknownName(f"{error}; --against SERVER tests another one") from None
    for broken in selected.broken.values():
        raise broken
    against = selected.names[0]
    return selected, {name: name if options.against is None else against for name in names}


def _opened_first(selected: Selection, run: VerificationRun) -> tuple[Selection, frozenset[str]]:
    """The servers as the first case of each needs them, and the kinds of requests that recordings answer."""
    made, answers = dict(selected.config.servers), frozenset[str]()
    for case, server in reversed(run.tried):
        made[server] = selected.config.servers[server]
        if isinstance(case, RecordedCase):
            made[server] = as_recorded(made[server], case.recorded)
            if "sampling" in as_dict(case.recorded.client.get("capabilities")):
                answers |= {SAMPLING, WRITING}
    return replace(selected, config=selected.config.model_copy(update={"servers": made})), answers


# Consent.


class PlanApprover:
    """Shows all planned calls at the terminal, and asks once whether they may run."""

    def __init__(self) -> None:
        self.lines: Sequence[str] = ()
        self.calls: Mapping[tuple[str, str, str], int] = {}
        self._single = TerminalApprover()
        self._allowed: bool | None = None

    async def ask(self, question: Question) -> Answer:
        """Ask about a single call that was not planned so, or whose tool changed since it was allowed."""
        if not isinstance(question, ToolCallQuestion):
            return Answer(allow=False, reason="this cannot be asked on a terminal", by="policy")
        planned = (question.server, question.tool.name, canonical(question.arguments)) in self.calls
        if not planned or question.approval.differences:
            return await self._single.ask(question)
        if self._allowed is None:
            say(*self.lines)
            number = sum(self.calls.values())
            self._allowed = await confirmed(f"Run {'this call' if number == 1 else f'these {number} calls'}? [y/N] ")
        return Answer(allow=self._allowed)


def _announce(host: Host, run: VerificationRun, approver: PlanApprover | None, options: Namespace) -> None:
    """Say which tools will be called. Raises Declined where a rule is missing and no one can be asked."""
    uses = host.verification.planned(run.tried)
    for server in dict.fromkeys(use.server for use in uses):
        tools = ", ".join(_often(use) for use in uses if use.server == server)
        remark(f"calls on {server}, {show_line(host.servers[server].config.identity, 400)}: {tools}")
    if approver is not None:
        approver.calls = Counter(_planned_calls(host, run))
        approver.lines = tuple(_plan_lines(host, approver.calls))
        return
    asks = [use for use in uses if use.decision is PolicyDecision.ASK]
    if asks and not options.yes:
        is_configured = options.against is None or not is_ad_hoc(options.against)
        named = ", ".join(f"{each.server}:{show_line(each.tool, 64)}" for each in asks)
        hint = nobody_hint(asks[0].server, asks[0].tool, configured=is_configured)
        raise Declined(f"{named} would be asked about, and nothing was called: {hint}", by="policy")


def _often(use: PlannedUse) -> str:
    times = f" ({use.times} times)" if use.times > 1 else ""
    return f"{show_line(use.tool, 64)}{times}{', which a rule denies' * (use.decision is PolicyDecision.DENY)}"


def _planned_calls(host: Host, run: VerificationRun) -> Iterator[tuple[str, str, str]]:
    for case, server in run.tried:
        if case.uses is not None and host.servers[server].ready:
            yield server, case.uses.tool, canonical(case.uses.arguments)


def _plan_lines(host: Host, calls: Mapping[tuple[str, str, str], int]) -> Iterator[str]:
    """Everything that would be sent, safe for a terminal."""
    width, _ = terminal_size()
    for server in dict.fromkeys(server for server, _, _ in calls):
        yield from labelled("server", server, width)
        yield from labelled("sent to", show_line(host.servers[server].config.identity, NO_CUT), width)
        claims = {each.tool.name: ", ".join(each.tool.claims) for each in host.catalog.tools(server)}
        for (where, tool, arguments), times in calls.items():
            if where == server:
                often = f" × {times}" if times > 1 else ""
                said = f" (it says: {claims[tool]})" if claims.get(tool) else ""
                words = f"{show_name(tool)}{said}{often} {show_line(arguments, NO_CUT)}"
                yield from labelled("call", words, width)


# The run.


async def _verify(
    host: Host, run: VerificationRun, approver: PlanApprover | None, broken: BrokenServers, options: Namespace
) -> Outcome:
    await asyncio.gather(host.servers.ready(list({server for _, server in run.tried})), host.tool_calls.prepare())
    run.calls = {file.shown: _calls_file(file.path, host) for file in run.files if file.recording is None}
    for words in _other_revisions(host, run):
        remark(words)
    _announce(host, run, approver, options)
    try:
        await _run_cases(host, run, broken, options)
        remarks = await _update(host, run, options) if options.update else []
    except asyncio.CancelledError:  # by a signal: what ran is reported
        answer(_end(run, [f"interrupted: {len(run.reports)} of {len(run.cases)} ran"], options))
        raise
    return Outcome(_end(run, remarks, options), run.code)


def _other_revisions(host: Host, run: VerificationRun) -> Iterator[str]:
    """Sentences about servers that now speak another revision than recorded, which may explain differences."""
    recorded = {(server, case.recorded.revision) for case, server in run.tried if isinstance(case, RecordedCase)}
    for server, revision in sorted(recorded):
        session = host.servers[server].session
        if revision and session is not None and session.revision.version != revision:
            yield f"{server} speaks {session.revision.version} now, and {show_line(revision, 40)} when it was recorded"


async def _run_cases(host: Host, run: VerificationRun, broken: BrokenServers, options: Namespace) -> None:
    status, group = StatusLine(), ""
    for number, (case, server) in enumerate(run.cases, 1):
        status.show(f"{number} of {len(run.cases)}: {case.name}", last=True)
        try:
            report = await _run_case(host, run, case, server, broken, options)
        finally:
            status.clear()
        run.reports.append(report)
        if options.json:
            answer(json_text(_as_object(report, server)))
        else:
            heading = f"{case.group}\n" if case.group != group else ""
            answer(with_coloured_states(f"{heading}{''.join(_lines(report, options))}"))
        group = case.group


async def _run_case(
    host: Host,
    run: VerificationRun,
    case: VerificationCase,
    server: str,
    broken: BrokenServers,
    options: Namespace,
) -> CaseReport:
    if not server:
        return CaseReport(case, "skipped", (case.skipped,))
    service = host.verification
    try:
        report = await service.run(
            case,
            server,
            run.rules,
            entry=run.entries[server],
            timeout=options.timeout,
            file=run.calls.get(case.group),
        )
    except Declined as error:
        run.declined = True
        return CaseReport(case, "error", (service.mask(str(error)),))
    if report.state == "error" and not host.servers[server].ready:
        gone = failure(host, server, broken)
        return report._replace(words=(str(gone),), answer=report.answer._replace(error=gone))
    return report


def _lines(report: CaseReport, options: Namespace) -> Iterator[str]:
    seconds = report.answer.seconds
    took = "" if seconds is None else f"  {duration_text(seconds)}"
    skipped = f"  skipped: {report.words[0]}" if report.state == "skipped" else ""
    yield f"{_MARKS[report.state]}  {show_line(report.case.name)}{took}{skipped}\n"
    if report.state != "skipped":
        yield from (f"     {show_line(words, NO_CUT)}\n" for words in report.words)
    if options.verbose:
        yield from (f"     hidden by {show_line(each.words, NO_CUT)}\n" for each in report.found.hidden)


def _as_object(report: CaseReport, server: str) -> dict[str, Any]:
    seconds, found = report.answer.seconds, report.found
    return {
        "file": report.case.group,
        "case": report.case.name,
        "server": server,
        "outcome": report.state,
        "seconds": None if seconds is None else round(seconds, 3),
        "words": list(report.words),
        "differences": [_difference(each) for each in found.differences],
        "hidden": dict(found.counts),
    }


def _difference(each: AnswerDifference) -> dict[str, Any]:
    values = {"expected": each.expected, "got": each.got}
    present = {name: value for name, value in values.items() if value is not ABSENT}
    small = {name: value for name, value in present.items() if len(json.dumps(value)) <= MOST_JSON}
    return {"path": path_words(each.path), **small}


def _end(run: VerificationRun, remarks: Sequence[str], options: Namespace) -> str:
    """Write the reports, say what is to be said, and return the summary for stdout."""
    for words in (*remarks, *write_reports(options, [_reported(each) for each in run.reports], "mcphost test", RULES)):
        remark(words)
    if options.json:
        return ""
    states = Counter(each.state for each in run.reports)
    counts = ", ".join(
        f"{states[state]} {state}" for state in ("passed", "failed", "error", "skipped") if states[state]
    )
    if run.updated:
        counts += f" ({len(run.updated)} replaced)"
    seconds = sum(each.answer.seconds or 0.0 for each in run.reports)
    hidden: Counter[str] = Counter()
    for each in run.reports:
        hidden.update(each.found.counts)
    note = ", ".join(f"{number} by {name}" for name, number in hidden.items())
    more = "" if options.verbose else "; -v shows them"
    return f"{counts or 'nothing ran'} in {duration_text(seconds)}\n" + (f"hidden: {note}{more}\n" if note else "")


def _reported(report: CaseReport) -> ReportedCase:
    case, words = report.case, "\n".join(report.words)
    rule = {"failed": "answer-differs", "error": "not-answered"}.get(report.state, "")
    return ReportedCase(case.group, case.name, report.state, words, report.answer.seconds, rule, case.group, case.line)


# Updates.


def _key(case: VerificationCase) -> str:
    return f"{case.group}\n{case.name}"


async def _update(host: Host, run: VerificationRun, options: Namespace) -> list[str]:
    """Replace the expected answers that differ, if the user says so; the sentences to report."""
    failed = [each for each in run.reports if each.state == "failed"]
    remarks = [f"{each.case.name} is not updated: {why}" for each in failed if (why := why_not(each))]
    for file in run.files:
        reports = [each for each in failed if each.case.group == file.shown and not why_not(each)]
        if not reports:
            continue
        what = "1 answer" if len(reports) == 1 else f"{len(reports)} answers"
        if not options.yes and not has_terminal():
            run.declined = True
            remarks.append(f"{file.shown} is not updated: there is no terminal to ask on; add --yes")
        elif options.yes or await confirmed(f"Replace {what} in {file.shown}? [y/N] "):
            try:
                await asyncio.to_thread(_write, file, reports, run, host)
            except McphostError as error:
                remarks.append(f"{file.shown} is not updated: {error}")
            else:
                run.updated |= {_key(each.case) for each in reports}
                remarks.append(f"replaced {what} in {file.shown}")
    return remarks


def _write(file: VerificationFile, reports: Sequence[CaseReport], run: VerificationRun, host: Host) -> None:
    mask = host.verification.mask
    if file.recording is not None:
        update_recording(file.path, reports, mask, file.version)
        return
    for each in reports:
        update_call(run.calls[file.shown], each, mask)
