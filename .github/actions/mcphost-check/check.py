"""Runs the checks that the inputs of the action ask for, and writes one summary of them.

The inputs are variables of the environment, and become words of a command: no shell reads them.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from mcphost.cli.report_formats import CaseOutcome, ReportedCase, markdown_summary

FAIL_ON = ("review", "breaking", "never")

Run = Callable[[Sequence[str]], int]


class InputError(Exception):
    """An input of the action that cannot be used."""


class Check(NamedTuple):
    """A command of mcphost; ``skipped`` says why it does not run."""

    name: str
    words: tuple[str, ...] = ()
    skipped: str = ""


def checks(env: Mapping[str, str]) -> Iterator[Check]:
    """Yield the checks that the inputs ask for. Raises InputError."""
    config = option(env, "config")
    servers = lines(env, "servers")
    lock = env.get("CHECK_LOCK", "")
    if not lock:
        yield Check("lock", skipped="no lock is named")
    elif not Path(lock).exists():
        yield Check("lock", skipped=f"there is no {lock}; write it with: mcphost lock")
    else:
        yield Check("lock", ("lock", "--check", f"--file={lock}", *config, *servers))
    if is_true(env, "strict"):
        yield Check("strict", ("check", "--strict", *config, *servers))
    else:
        yield Check("strict", skipped="strict is false")
    if tests := lines(env, "tests"):
        yes = ["--yes"] if is_true(env, "allow-calls") else []
        yield Check("test", ("test", *config, *option(env, "against"), *yes, *tests))
    else:
        yield Check("test", skipped="no tests are named")


def variable(name: str) -> str:
    return f"CHECK_{name.upper().replace('-', '_')}"


def option(env: Mapping[str, str], name: str) -> list[str]:
    value = env.get(variable(name), "")
    return [f"--{name}={value}"] if value else []


def lines(env: Mapping[str, str], name: str) -> list[str]:
    """The lines of an input, none of which may be an option."""
    found = [line.strip() for line in env.get(variable(name), "").splitlines() if line.strip()]
    for line in found:
        if line.startswith("-"):
            raise InputError(f"{name}: {line} begins like an option")
    return found


def is_true(env: Mapping[str, str], name: str) -> bool:
    value = env.get(variable(name), "").lower()
    if value not in ("", "true", "false"):
        raise InputError(f"{name}: {value} is neither true nor false")
    return value == "true"


def cases_in(report: Path, name: str) -> list[ReportedCase]:
    """The cases of a JUnit file of mcphost."""
    found = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        outcome, words = outcome_of(case)
        group, title = case.get("classname", ""), case.get("name", "")
        found.append(ReportedCase(f"{name}: {group}", title, outcome, words))
    return found


def outcome_of(case: ElementTree.Element) -> tuple[CaseOutcome, str]:
    """The outcome of a case, and its words. JUnit has a warning as a failure or as a success, with a property."""
    known = case.find("properties/property[@name='outcome']")
    named = "" if known is None else known.get("value")
    found: list[tuple[CaseOutcome, str]] = [("failed", "failure"), ("error", "error"), ("skipped", "skipped")]
    for outcome, tag in found:
        if (element := case.find(tag)) is not None:
            return "warning" if named == "warning" else outcome, element.get("message", "")
    written = case.findtext("system-out", "")
    return "warning" if named == "warning" else "note" if named == "note" else "passed", written


def run_check(check: Check, reports: Path, run: Run) -> tuple[list[ReportedCase], int]:
    """Run a check; return its cases and its exit code."""
    if check.skipped:
        return [ReportedCase(check.name, "", "skipped", check.skipped)], 0
    junit, sarif = reports / f"{check.name}.xml", reports / "sarif" / f"{check.name}.sarif"
    code = run([*check.words, f"--junit={junit}", f"--sarif={sarif}"])
    cases = cases_in(junit, check.name) if junit.exists() else []
    if code > 1 or (code and not cases):
        cases.append(ReportedCase(check.name, check.words[0], "error", f"exit code {code}; the log says why"))
    return cases, code


def main(env: Mapping[str, str], run: Run) -> int:
    """Run all checks, write the summary and the outputs, and return the exit code."""
    fail_on = env.get("CHECK_FAIL_ON") or "review"
    if fail_on not in FAIL_ON:
        raise InputError(f"fail-on: {fail_on} is none of {', '.join(FAIL_ON)}")
    reports = Path(tempfile.mkdtemp(prefix="mcphost-reports-", dir=env["RUNNER_TEMP"]))
    (reports / "sarif").mkdir()
    cases: list[ReportedCase] = []
    passed = True
    for check in [*checks(env)]:
        found, code = run_check(check, reports, run)
        cases += found
        passed = passed and code == 0
    with open(env["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as summary:
        summary.write(markdown_summary(cases, "mcphost check"))
    with open(env["GITHUB_OUTPUT"], "a", encoding="utf-8") as output:
        output.write(f"passed={str(passed).lower()}\njunit={reports}/*.xml\nsarif={reports / 'sarif'}\n")
    broken = any(case.outcome in ("failed", "error") for case in cases)
    return int({"review": not passed, "breaking": broken, "never": False}[fail_on])


def run_mcphost(words: Sequence[str]) -> int:
    """Run mcphost. Its annotations are on stderr; stdout may quote a server, and gives the runner no commands."""
    done = subprocess.run([sys.executable, "-P", "-m", "mcphost", *words], stdout=subprocess.PIPE, check=False)
    token = secrets.token_hex(16)
    sys.stdout.buffer.write(b"::stop-commands::%b\n%b\n::%b::\n" % (token.encode(), done.stdout, token.encode()))
    sys.stdout.flush()
    return done.returncode


if __name__ == "__main__":
    try:
        sys.exit(main(os.environ, run_mcphost))
    except InputError as wrong:
        sys.exit(f"mcphost-check: {wrong}")
