"""``mcphost skill``: reads and verifies the files of skills on request; no model gets any."""

from __future__ import annotations

import asyncio
import base64
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcphost.cli.commands.call import when_ready, with_newline
from mcphost.cli.failures import BrokenServers, failure, left_out, listing_failure, unselected, worst_exit
from mcphost.cli.output import (
    ErrorReport,
    Exit,
    Outcome,
    StatusLine,
    answer,
    foreign,
    json_text,
    reports_on,
    with_coloured_states,
)
from mcphost.cli.preparation import run_with_answers, select_server, select_servers
from mcphost.cli.report_formats import CaseOutcome, ReportedCase, claim_reports, write_reports
from mcphost.cli.save_files import claim, write_bytes
from mcphost.composition import Selection
from mcphost.errors import CapabilityMissing, McphostError, ServerError, SkillRefused, UsageError
from mcphost.host.catalog import CatalogKind
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line, show_name, size_text
from mcphost.protocol.extensions import SKILLS_EXTENSION
from mcphost.protocol.models.skills import SkillFinding

if TYPE_CHECKING:
    from mcphost.host.host import Host
    from mcphost.host.skills.verification import VerifiedFile
    from mcphost.protocol.models.skills import Skill

READ: Final = "read"
VERIFIED, DIFFERS, NONCONFORMANT, DYNAMIC, UNREAD = "verified", "differs", "nonconformant", "dynamic", "not read"
"""States of a skill and of a file."""

CHARACTERS: Final = 400
"""Characters of a sentence about a skill."""

UNVOUCHED: Final = "its server vouches for none of its files, so that a change cannot be noticed"

DYNAMIC_CODE: Final = "dynamic-resources"
NAMESAKE_CODE: Final = "duplicate-name"
NOT_SERVED: Final = "not-served"
LEFT_OUT: Final = "left-out"
"""Findings that name no fault of an entry; see `mcphost.protocol.models.skills`."""

_MARKS: Final = {VERIFIED: "✓", DIFFERS: "✖", NONCONFORMANT: "✖", DYNAMIC: "-", UNREAD: "✖"}


def run_skill(options: Namespace) -> int:
    """Read one file of a skill, or verify all files of skills."""
    if options.action == READ:
        return _run_read(options)
    if len(options.names) > 2:
        raise UsageError("verify takes a server and a skill, and reads all files of the skill")
    if options.output is not None:
        raise UsageError("--output belongs to read; add --junit FILE for a report")
    claim_reports(options)
    options.servers = options.names[:1]
    chosen = select_servers(options)
    run = SkillVerification(options, chosen)
    return run_with_answers(options, chosen, None, run.work)


def _run_read(options: Namespace) -> int:
    if not 2 <= len(options.names) <= 3:
        raise UsageError("read takes a server, a skill, and maybe a path in its folder")
    if given := [name for name in ("require_digests", "junit", "sarif") if getattr(options, name)]:
        raise UsageError(f"--{given[0].replace('_', '-')} belongs to verify")
    claim(options.output)
    options.server, skill, *path = options.names
    chosen, name = select_server(options)
    how = {"output": options.output, "as_json": options.json}
    return run_with_answers(
        options, chosen, None, lambda host: read_skill(host, name, skill, "".join(path), chosen.broken, **how)
    )


async def read_skill(
    host: Host, server: str, named: str, path: str, broken: BrokenServers, *, output: str | None, as_json: bool
) -> Outcome:
    """Read and verify a file of a skill; print it, or write it to the file ``output``."""

    async def work() -> Outcome:
        file = await host.skills.read(server, named, path)
        remarks = [] if file.vouched else [f"{server}: {show_name(file.skill.label)} is dynamic: {UNVOUCHED}"]
        if output is not None:
            remarks.append(await asyncio.to_thread(write_bytes, output, file.content))
        text = json_text(_file_object(server, file)) if as_json else "" if output is not None else _text(file)
        return Outcome(text, Exit.DONE, tuple(remarks))

    return await when_ready(host, server, broken, work)


def _text(file: VerifiedFile) -> str:
    if file.text is not None:
        return foreign(file.text)
    facts = f"{show_line(file.path, CHARACTERS)} {show_line(file.mime_type or '', 80)}".strip()
    return with_newline(f"[{facts} {size_text(len(file.content))}]; --output FILE saves it")


def _file_object(server: str, file: VerifiedFile) -> dict[str, Any]:
    listed = file.skill.file(file.uri)
    content = {"blob": base64.b64encode(file.content).decode()} if file.text is None else {"text": file.text}
    return {
        "server": server,
        "skill": file.skill.uri,
        "uri": file.uri,
        "path": file.path,
        "mimeType": file.mime_type,
        "size": len(file.content),
        "digest": None if listed is None else listed.digest,
        "verified": file.vouched,
        **content,
    }


class CheckedFile(NamedTuple):
    """A file of a skill, and what its check found. ``words`` is a sentence, not safe to show."""

    path: str
    uri: str
    size: int | None
    digest: str | None
    state: str = UNREAD
    finding: str = ""
    words: str = ""

    def as_object(self) -> dict[str, Any]:
        facts = {"path": self.path, "uri": self.uri, "size": self.size, "digest": self.digest, "state": self.state}
        return {**facts, **({"finding": self.finding, "words": self.words} if self.words else {})}

    @property
    def line(self) -> str:
        words = f": {show_line(self.words, CHARACTERS)} ({show_line(self.finding, 80)})" if self.words else ""
        return f"   {_MARKS[self.state]}  {show_line(self.path, CHARACTERS)}{words}\n"


@dataclass(slots=True)
class SkillReport:
    """A skill, and what the check of its entry and its files found."""

    server: str
    skill: Skill
    title: str
    """Its name, or its path where several have the name; safe to show."""
    findings: Sequence[SkillFinding]
    requires_digests: bool
    files: list[CheckedFile] = field(default_factory=list)
    error: McphostError | None = None
    """Why not all was read."""

    @property
    def state(self) -> str:
        if any(each.refuses for each in self.findings):
            return NONCONFORMANT
        if any(each.state == DIFFERS for each in self.files):
            return DIFFERS
        if self.error is not None:
            return UNREAD
        return DYNAMIC if self.skill.dynamic else VERIFIED

    @property
    def fails(self) -> bool:
        return self.state in (DIFFERS, NONCONFORMANT) or (self.state == DYNAMIC and self.requires_digests)

    @property
    def text(self) -> str:
        number = len(self.skill.files)
        facts = f"{number} {'file' if number == 1 else 'files'}, {size_text(self.skill.size)}"
        about = UNVOUCHED if self.state == DYNAMIC else facts if self.state == VERIFIED else self.state
        lines = [f"{_MARKS[DIFFERS] if self.fails else _MARKS[self.state]}  {self.title}  {about}\n"]
        lines += (f"      {show_line(each.words, CHARACTERS)} ({each.code})\n" for each in self._shown)
        lines += (each.line for each in self.files)
        if self.error is not None:
            lines.append(f"      {show_line(str(self.error), CHARACTERS)}\n")
        return "".join(lines)

    def as_object(self) -> dict[str, Any]:
        found = [{"code": each.code, "words": each.words, "refuses": each.refuses} for each in self.findings]
        files = [each.as_object() for each in self.files]
        error = {} if self.error is None else {"error": str(self.error)}
        known = {"server": self.server, "uri": self.skill.uri, "name": self.skill.name, "state": self.state}
        return {**known, "findings": found, "files": files, **error}

    def cases(self) -> Iterator[ReportedCase]:
        """The skill as cases of a report: one for each finding and each file."""
        for finding in self.findings:
            fails = finding.refuses or (self.requires_digests and finding.code == DYNAMIC_CODE)
            outcome: CaseOutcome = "failed" if fails else "note"
            yield ReportedCase(self.server, f"{self.title} entry", outcome, finding.words, rule=finding.code)
        for file in self.files:
            outcome = "passed" if file.state == VERIFIED else "note" if file.state == DYNAMIC else "failed"
            yield ReportedCase(self.server, f"{self.title} {file.path}", outcome, file.words, rule=file.finding)
        if self.error is not None:
            yield ReportedCase(self.server, self.title, "error", str(self.error))

    @property
    def _shown(self) -> list[SkillFinding]:
        return [each for each in self.findings if each.code != DYNAMIC_CODE]


class SkillVerification:
    """Reads and checks every file of the skills that the command line names, and prints each skill once it is done."""

    def __init__(self, options: Namespace, chosen: Selection) -> None:
        self._options, self._chosen = options, chosen
        self._named = options.names[1] if len(options.names) > 1 else ""
        self._reports: list[SkillReport] = []
        self._cases: list[ReportedCase] = []
        self._failures: list[McphostError] = []
        self._errors: list[ErrorReport] = []
        self._remarks: list[str] = []

    async def work(self, host: Host) -> Outcome:
        names = self._chosen.names
        await host.servers.ready(list(names))
        for server in names:
            try:
                await self._verify_server(host, server)
            except McphostError as error:
                self._fail(server, error)
        for server, problem in unselected(self._chosen.broken, names):
            self._fail(server, problem)
        cases = [*self._cases, *(case for each in self._reports for case in each.cases())]
        reported = await asyncio.to_thread(write_reports, self._options, cases, "skills", {})
        text = "" if self._options.json else self._summary()
        return Outcome(text, self._code, (*self._remarks, *reported), tuple(self._errors))

    @property
    def _code(self) -> int:
        if self._failures:  # before what differs, since they may hide more of it
            return worst_exit(self._failures)
        return Exit.NEGATIVE if self._cases or any(each.fails for each in self._reports) else Exit.DONE

    def _fail(self, server: str, error: McphostError) -> None:
        self._failures.append(error)
        named = isinstance(error, CapabilityMissing)
        self._errors += [ErrorReport.from_error(error, f"{server}: {error}")] if named else reports_on(error)
        self._cases.append(ReportedCase(server, "skills", "error", str(error)))

    async def _verify_server(self, host: Host, server: str) -> None:
        """Raises why the skills are not known."""
        connection = host.servers[server]
        if not connection.ready:
            raise failure(host, server, self._chosen.broken)
        if not connection.has_skills:
            if self._options.names:
                raise CapabilityMissing("skills/list", SKILLS_EXTENSION)
            self._remarks.append(f"{server}: offers no skills")
            return
        for skill in await self._skills(host, server):
            found = _findings(host, server, skill)
            report = SkillReport(server, skill, _title(host, server, skill), found, self._options.require_digests)
            await self._verify(host, report)
            self._reports.append(report)
            self._print(report)
            if not connection.ready:
                raise failure(host, server, self._chosen.broken)

    async def _skills(self, host: Host, server: str) -> Sequence[Skill]:
        if self._named:
            return [await host.skills.find(server, self._named)]
        await host.servers[server].settled_list(CatalogKind.SKILLS)
        if failed := listing_failure(host, server, CatalogKind.SKILLS):
            raise failed
        skills = [each.skill for each in host.catalog.skills(server)]
        if not skills:
            self._remarks.append(f"{server}: lists no skills; one that is not listed can be named by its URI")
        for words in left_out(host, server, CatalogKind.SKILLS):
            self._remarks.append(words)
            self._cases.append(ReportedCase(server, "skills", "failed", words, rule=LEFT_OUT))
        return skills

    async def _verify(self, host: Host, report: SkillReport) -> None:
        """Read and check all files of a skill whose entry is sound."""
        if report.state == NONCONFORMANT:
            return
        skill, status = report.skill, StatusLine()
        listed = [CheckedFile(skill.path_of(each.uri), each.uri, each.size, each.digest) for each in skill.files]
        files = listed or [CheckedFile(skill.path_of(skill.uri), skill.uri, None, None)]
        for number, file in enumerate(files, 1):
            status.show(f"{report.server}: {report.title}, file {number} of {len(files)}", last=True)
            try:
                read = await host.skills.read_file(report.server, skill, file.path, origin="you", again=True)
            except SkillRefused as refused:
                file = file._replace(state=DIFFERS, finding=refused.finding, words=str(refused))
            except ServerError as error:
                file = file._replace(state=DIFFERS, finding=NOT_SERVED, words=f"The server answered: {error}")
            except McphostError as error:
                report.error = error
                self._failures.append(error)
                self._errors.append(ErrorReport.from_error(error, f"{report.server}: {report.title}: {error}"))
                return
            else:
                file = file._replace(state=VERIFIED if read.vouched else DYNAMIC)
            finally:
                status.clear()
            report.files.append(file)

    def _print(self, report: SkillReport) -> None:
        if self._options.json:
            answer(json_text(report.as_object()))
            return
        first = sum(each.server == report.server for each in self._reports) == 1
        heading = f"{show_line(report.server)}\n" if first else ""
        answer(with_coloured_states(f"{heading}{report.text}"))

    def _summary(self) -> str:
        if not self._reports:
            return ""
        found = Counter(each.state for each in self._reports)
        number = len(self._reports)
        counts = ", ".join(f"{found[state]} {state}" for state in _MARKS if found[state])
        return f"{number} {'skill' if number == 1 else 'skills'}: {counts}\n"


def _title(host: Host, server: str, skill: Skill) -> str:
    ambiguous = not skill.name or host.skills.namesakes(server, skill)
    return show_line(skill.path if ambiguous else skill.name, CHARACTERS)


def _findings(host: Host, server: str, skill: Skill) -> Sequence[SkillFinding]:
    """The findings of an entry, and that others have its name."""
    others = [show_name(each.uri) for each in host.skills.namesakes(server, skill)] if skill.name else []
    words = f"Another skill of this server has its name: {', '.join(others)}."
    return [*skill.findings, *([SkillFinding(NAMESAKE_CODE, words, refuses=False)] if others else [])]
