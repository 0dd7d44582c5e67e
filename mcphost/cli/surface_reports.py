"""Findings about surfaces as lines of text, as cases of a report, and as objects for ``--json``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from mcphost.cli.report_formats import CaseOutcome, ReportedCase, write_reports
from mcphost.host.comparison.findings import RULES, SurfaceFinding, counted, findings_text
from mcphost.host.comparison.severity import BREAKING, NOTE, REVIEW, ChangeSeverity
from mcphost.protocol.display import show_line

_OUTCOMES: Final[dict[ChangeSeverity, CaseOutcome]] = {BREAKING: "failed", REVIEW: "warning", NOTE: "note"}


class ServerFindings(NamedTuple):
    """The findings about one server, without secrets. ``title`` is its name in reports."""

    title: str
    findings: Sequence[SurfaceFinding]
    same: str
    """A sentence for no finding."""

    @property
    def text(self) -> str:
        name = show_line(self.title)
        if not self.findings:
            return f"{name}: {self.same}\n"
        inner = findings_text(self.findings).splitlines()
        return "".join(f"{line}\n" for line in (f"{name}: {counted(self.findings)}", *(f"  {each}" for each in inner)))

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [each.as_object() for each in self.findings]


def cases_of(
    compared: Iterable[ServerFindings], file: str = "", line: Callable[[str, SurfaceFinding], int] = lambda *_: 0
) -> Iterator[ReportedCase]:
    """The findings as cases of a report about ``file``; a server without any is a case that passed."""
    for each in compared:
        if not each.findings:
            yield ReportedCase(each.title, "surface", "passed", each.same)
        for found in each.findings:
            name = f"{found.item or 'server'} {found.field}".strip()
            outcome = _OUTCOMES[found.severity]
            where = file, line(each.title, found)
            yield ReportedCase(each.title, name, outcome, found.words, None, found.rule, *where)


def write_surface_reports(options: Namespace, cases: Sequence[ReportedCase], suite: str) -> list[str]:
    """As `write_reports`; in JUnit, which knows no warnings, a finding for review fails as the command does."""
    return write_reports(options, cases, suite, RULES, warnings_fail=True)
