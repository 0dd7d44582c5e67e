"""Writes findings as JUnit XML, SARIF, annotations of GitHub and Markdown; the texts in them may be hostile."""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path, PurePath
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

from mcphost import __version__
from mcphost.cli.output import StatusLine
from mcphost.config.files import read_head, require_folder
from mcphost.config.state import replace_file
from mcphost.errors import ConfigError, UsageError
from mcphost.protocol.display import show, show_line

CaseOutcome = Literal["passed", "failed", "warning", "note", "skipped", "error"]

CHARACTERS: Final = 10_000
"""Characters of the words of a case."""

ROWS: Final = 200
"""Rows of a summary: GitHub refuses more than 1 MB, and people stop reading earlier."""

REPORT_MODE: Final = 0o644
"""Other users collect reports, such as the runner of a CI."""

_HEAD_BYTES: Final = 400
"""Bytes at the start of a file by which a report is recognized."""

_REPORT: Final = re.compile(
    rb'\s*(<\?xml[^>]*>\s*<testsuites?[ >/]|\{\s*"(\$schema"\s*:\s*"[^"]*sarif|resourceSpans"\s*:)|\Z)'
)
_SARIF_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final[Mapping[CaseOutcome, str]] = {
    "failed": "error", "error": "error", "warning": "warning", "note": "note",
}  # fmt: skip
"""Of SARIF; other outcomes are not findings."""
_MARKS: Final[Mapping[CaseOutcome, str]] = {
    "failed": "❌", "error": "❌", "warning": "⚠️", "note": "ℹ️", "skipped": "⏭️", "passed": "✅",
}  # fmt: skip
_NOT_IN_XML: Final = re.compile("[\ufffe\uffff]")
_MARKDOWN: Final = re.compile(r"[\\`*_\[\]|~@!$]|:(?=//)|(?<=www)\.")


class ReportedCase(NamedTuple):
    """A row of a report: ``group`` and ``name`` say what was checked, ``rule`` by which rule."""

    group: str
    name: str
    outcome: CaseOutcome
    words: str = ""
    seconds: float | None = None
    rule: str = ""
    file: str = ""
    """The file that the finding is about, relative to the project; GitHub shows no SARIF finding without one."""
    line: int = 0


def junit(cases: Sequence[ReportedCase], suite: str, *, warnings_fail: bool = False) -> str:
    """JUnit XML: a suite for each group. Notes pass, and warnings do unless ``warnings_fail``; their words are output.

    Both have a property with their outcome, since JUnit knows neither.
    """
    from xml.etree import ElementTree  # late: only with --junit

    failing: tuple[CaseOutcome, ...] = ("failed", "warning") if warnings_fail else ("failed",)
    root = ElementTree.Element("testsuites", {"name": _xml_line(suite), **_counts(cases, failing)})
    for group in dict.fromkeys(case.group for case in cases):
        members = [case for case in cases if case.group == group]
        parent = ElementTree.SubElement(
            root, "testsuite", {"name": _xml_line(group) or suite, **_counts(members, failing)}
        )
        named = Counter[str]()
        for case in members:
            # GitLab drops cases of the same name.
            named[case.name] += 1
            name = case.name if named[case.name] == 1 else f"{case.name} ({named[case.name]})"
            facts = {"classname": _xml_line(group) or suite, "name": _xml_line(name), "time": _seconds(case)}
            if case.file:
                facts["file"] = _xml_line(case.file)
            element = ElementTree.SubElement(parent, "testcase", facts)
            words = _xml(show(case.words, limit=CHARACTERS))
            if case.outcome in ("warning", "note"):
                properties = ElementTree.SubElement(element, "properties")
                ElementTree.SubElement(properties, "property", {"name": "outcome", "value": case.outcome})
            if case.outcome in failing or case.outcome == "error":
                about = {"message": _xml_line(case.words, 400), "type": _xml_line(case.rule) or case.outcome}
                tag = "error" if case.outcome == "error" else "failure"
                ElementTree.SubElement(element, tag, about).text = words
            elif case.outcome == "skipped":
                ElementTree.SubElement(element, "skipped", {"message": _xml_line(case.words, 400)})
            elif case.words:
                ElementTree.SubElement(element, "system-out").text = words
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _counts(cases: Sequence[ReportedCase], failing: Sequence[CaseOutcome]) -> dict[str, str]:
    found = Counter(case.outcome for case in cases)
    seconds = sum(case.seconds or 0.0 for case in cases)
    return {
        "tests": str(len(cases)),
        "failures": str(sum(found[outcome] for outcome in failing)),
        "errors": str(found["error"]),
        "skipped": str(found["skipped"]),
        "time": f"{seconds:.3f}",
    }


def _seconds(case: ReportedCase) -> str:
    return f"{case.seconds or 0.0:.3f}"


def _xml(shown: str) -> str:
    """``shown`` without the two characters that `show` keeps and XML forbids."""
    return _NOT_IN_XML.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", shown)


def _xml_line(text: str, limit: int = 200) -> str:
    return _xml(show_line(text, limit))


def sarif(cases: Sequence[ReportedCase], rules: Mapping[str, str], suite: str = "mcphost") -> str:
    """SARIF 2.1.0 with the findings among the cases; ``rules`` has the description of each rule by its id.

    Findings of another ``suite`` do not replace these where GitHub keeps them.
    The fingerprint of a finding is made of its rule, group and name, so that it outlives other words and other lines.
    """
    findings = [case for case in cases if case.outcome in _LEVELS]
    known = {**rules, **{case.rule: case.rule for case in findings if case.rule and case.rule not in rules}}
    places, seen, results = {rule: place for place, rule in enumerate(known)}, Counter[tuple[str, ...]](), []
    for case in findings:
        key = case.rule, case.group, case.name
        seen[key] += 1
        results.append({
            **({"ruleId": show_line(case.rule), "ruleIndex": places[case.rule]} if case.rule else {}),
            "level": _LEVELS[case.outcome],
            "message": {"text": show(f"{_titled(case)}: {case.words}", limit=CHARACTERS)},
            "locations": [_location(case)],
            "partialFingerprints": {"mcphost/v1": _fingerprint(*key, str(seen[key]))},
        })  # fmt: skip
    described = [{"id": show_line(rule), "shortDescription": {"text": show(about)}} for rule, about in known.items()]
    driver = {"name": "mcphost", "version": __version__, "rules": described}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{show_line(suite)}/"},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    log = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return f"{json.dumps(log, ensure_ascii=False, indent=2)}\n"


def _location(case: ReportedCase) -> dict[str, Any]:
    logical = {"logicalLocations": [{"fullyQualifiedName": show_line(f"{case.group}/{case.name}")}]}
    if not case.file:
        return logical
    region = {"region": {"startLine": case.line}} if case.line > 0 else {}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(case.file)}, **region}, **logical}


def _uri(file: str) -> str:
    path = PurePath(file)
    try:
        name = path.as_posix().encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        name = path.as_posix().encode("utf-8", "replace")
    return f"file://{quote(name)}" if path.is_absolute() else quote(name)


def _fingerprint(*parts: str) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()


def _titled(case: ReportedCase) -> str:
    return f"{case.group}: {case.name}" if case.group else case.name


def annotation_commands(cases: Sequence[ReportedCase]) -> str:
    """The findings as workflow commands of GitHub, one a line."""
    commands: Mapping[CaseOutcome, str] = {"failed": "error", "error": "error", "warning": "warning", "note": "notice"}
    lines = []
    for case in cases:
        if case.outcome in commands:
            where = {"file": show_line(case.file), "line": str(case.line) if case.line > 0 else ""} if case.file else {}
            facts = {**where, "title": show_line(_titled(case))}
            properties = ",".join(f"{key}={_property(value)}" for key, value in facts.items() if value)
            words = _data(show(case.words or case.outcome, limit=CHARACTERS))
            lines.append(f"::{commands[case.outcome]} {properties}::{words}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def markdown_summary(cases: Sequence[ReportedCase], title: str) -> str:
    """A heading, the number of cases by outcome, and a table of those that did not pass, the worst first.

    Those that were skipped for the same reason share a row.
    """
    found = Counter(case.outcome for case in cases)
    counts = ", ".join(f"{found[outcome]} {outcome}" for outcome in reversed(tuple(_MARKS)) if found[outcome])
    marks = list(_MARKS)
    rows = sorted(_rows(cases), key=lambda case: marks.index(case.outcome))
    lines = [f"### {_markdown(title)}", "", counts or "nothing was checked", ""]
    if rows:
        lines += ["| | where | name | result |", "|---|---|---|---|", *map(_row, rows[:ROWS]), ""]
    if len(rows) > ROWS:
        lines += [f"… and {len(rows) - ROWS} more", ""]
    return "\n".join(lines)


def _rows(cases: Sequence[ReportedCase]) -> Iterator[ReportedCase]:
    skipped = Counter((case.group, case.words) for case in cases if case.outcome == "skipped")
    for case in cases:
        if case.outcome == "skipped":
            count = skipped.pop((case.group, case.words), 0)
            if count:
                yield case if count == 1 else case._replace(name=f"{count} cases")
        elif case.outcome != "passed":
            yield case


def _row(case: ReportedCase) -> str:
    cells = _markdown(case.group), _markdown(case.name), _markdown(case.words or case.outcome)
    return f"| {_MARKS[case.outcome]} | {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    """``text`` on one line, with neither markup nor links."""
    return _MARKDOWN.sub(r"\\\g<0>", escape(show_line(text, 400), quote=False))


def claim_report(path: str | None) -> None:
    """Raise ConfigError where `write_report` could not write this file, before anything is done for it."""
    if path is None:
        return
    file = Path(path)
    require_folder(file)
    try:
        head = read_head(file, _HEAD_BYTES)
    except FileNotFoundError:
        return
    if not _REPORT.match(head):
        raise ConfigError("holds something else than a report, so it is not replaced; name another file", path=file)


def write_report(path: str, text: str) -> None:
    """Write a report, or replace one. Raises ConfigError."""
    claim_report(path)
    replace_file(Path(path), text.encode("utf-8", "replace"), mode=REPORT_MODE)


def claim_reports(options: Namespace) -> None:
    """`claim_report` for the files of ``--junit`` and ``--sarif``."""
    if options.junit is not None and options.junit == options.sarif:
        raise UsageError("--junit and --sarif name the same file")
    claim_report(options.junit)
    claim_report(options.sarif)


def write_reports(
    options: Namespace,
    cases: Sequence[ReportedCase],
    suite: str,
    rules: Mapping[str, str],
    env: Mapping[str, str] = os.environ,
    *,
    warnings_fail: bool = False,
) -> list[str]:
    """Write the files of ``--junit`` and ``--sarif``, and return a remark for each. Raises ConfigError.

    ``warnings_fail``: the command fails after a warning, and so JUnit has a failure, too. On a runner of GitHub,
    without ``--json``, the annotations go to stderr.
    """
    remarks = []
    for path in filter(None, (options.junit, options.sarif)):
        as_junit = path == options.junit
        text = junit(cases, suite, warnings_fail=warnings_fail) if as_junit else sarif(cases, rules, suite)
        write_report(path, text)
        remarks.append(f"the report is in {path}")
    if env.get("GITHUB_ACTIONS") == "true" and not options.json and sys.stderr is not None:
        StatusLine.take_away()
        sys.stderr.write(annotation_commands(cases))
        sys.stderr.flush()
    return remarks
