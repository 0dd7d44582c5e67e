"""The action for GitHub: its inputs reach the commands as words, and one summary has all results."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from mcphost.cli.parser import parse
from mcphost.cli.report_formats import ReportedCase, junit

FOLDER = Path(__file__).parents[1] / ".github" / "actions" / "mcphost-check"
ACTION: dict[str, Any] = yaml.safe_load((FOLDER / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{ ([\w.-]+) \}\}")


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check", FOLDER / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CHECK = load()


class Runner:
    """The environment of a runner, and a mcphost whose reports are given."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.summary, self.output = folder / "summary.md", folder / "output"
        files = {"GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_OUTPUT": str(self.output)}
        defaults = {CHECK.variable(name): str(given["default"]) for name, given in ACTION["inputs"].items()}
        given = {CHECK.variable(name.replace("_", "-")): value for name, value in inputs.items()}
        self.env = {**files, "RUNNER_TEMP": str(folder), **defaults, **given}
        self.commands: list[list[str]] = []
        self.reports: Mapping[str, tuple[int, list[ReportedCase] | None]] = {}

    def mcphost(self, words: Sequence[str]) -> int:
        self.commands.append([word for word in words if not word.startswith(("--junit=", "--sarif="))])
        code, cases = self.reports.get(words[0], (0, []))
        if cases is not None:
            report = next(word for word in words if word.startswith("--junit=")).partition("=")[2]
            Path(report).write_text(junit(cases, words[0], warnings_fail=words[0] == "lock"))
        return code

    def run(self) -> int:
        code: int = CHECK.main(self.env, self.mcphost)
        return code


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mcphost.lock").write_text("version = 1\n")
    return Runner(tmp_path)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step["name"]))
def test_no_script_of_the_action_holds_an_expression(step: dict[str, Any]) -> None:
    assert step["shell"] == "bash"
    assert "${{" not in step["run"]


def test_every_input_is_a_variable_of_a_step_and_every_output_is_set(runner: Runner) -> None:
    variables = {name: str(value) for step in STEPS for name, value in step["env"].items()}
    used = {EXPRESSION.fullmatch(value)[1]: name for name, value in variables.items() if "${{" in value}  # type: ignore[index]
    assert used.pop("inputs.package") == "PACKAGE"
    assert used == {f"inputs.{name}": CHECK.variable(name) for name in ACTION["inputs"] if name != "package"}
    runner.run()
    written = dict(line.split("=", 1) for line in runner.output.read_text().splitlines())
    assert written.keys() == ACTION["outputs"].keys()
    assert all(each["value"] == f"${{{{ steps.check.outputs.{name} }}}}" for name, each in ACTION["outputs"].items())


def test_without_inputs_the_lock_and_the_rules_are_checked(runner: Runner) -> None:
    assert runner.run() == 0
    assert runner.commands == [["lock", "--check", "--file=mcphost.lock"], ["check", "--strict"]]
    assert "passed=true" in runner.output.read_text()
    assert "no tests are named" in runner.summary.read_text()


def test_inputs_are_words_that_the_commands_take(tmp_path: Path, runner: Runner) -> None:
    hostile = "stdio:x; $(touch y) `z` \"'"
    servers = f"git\n\n  {hostile}\n"
    runner = Runner(
        tmp_path, servers=servers, config="a b.toml", tests="t/\nx.mcp.jsonl", against="git", allow_calls="true"
    )
    assert runner.run() == 0
    lock, strict, test = runner.commands
    assert lock == ["lock", "--check", "--file=mcphost.lock", "--config=a b.toml", "git", hostile]
    assert strict == ["check", "--strict", "--config=a b.toml", "git", hostile]
    assert test == ["test", "--config=a b.toml", "--against=git", "--yes", "t/", "x.mcp.jsonl"]
    assert [parse([*each, "--junit=j", "--sarif=s"]).run for each in runner.commands] == [
        "lock.run_lock", "servers.run_check", "verification.run_test",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "inputs", [{"servers": "--config=x"}, {"tests": "a\n-k"}, {"strict": "maybe"}, {"fail_on": "sometimes"}]
)
def test_an_input_that_cannot_be_meant_is_refused(tmp_path: Path, runner: Runner, inputs: dict[str, str]) -> None:
    with pytest.raises(CHECK.InputError):
        Runner(tmp_path, **inputs).run()


def test_the_summary_has_what_each_command_found(runner: Runner) -> None:
    changed = ReportedCase("git", "git_log", "failed", "path is now <b>required")
    review = ReportedCase("git", "git_show", "warning", "the description differs")
    should = ReportedCase("git", "LIST-4", "warning", "no name")
    runner.reports = {"lock": (1, [changed, review]), "check": (3, [should])}
    assert runner.run() == 1
    text = runner.summary.read_text()
    assert r"| ❌ | lock: git | git\_log | path is now &lt;b&gt;required |" in text
    assert r"| ⚠️ | lock: git | git\_show | the description differs |" in text
    assert "| ⚠️ | strict: git | LIST-4 | no name |" in text
    assert "exit code 3; the log says why" in text
    assert "passed=false" in runner.output.read_text()


@pytest.mark.parametrize(
    ("fail_on", "outcome", "code"),
    [("review", "warning", 1), ("breaking", "warning", 0), ("breaking", "failed", 1), ("never", "failed", 0)],
)
def test_the_user_chooses_what_fails_the_step(
    tmp_path: Path, runner: Runner, fail_on: str, outcome: Any, code: int
) -> None:
    runner = Runner(tmp_path, fail_on=fail_on)
    runner.reports = {"lock": (1, [ReportedCase("git", "log", outcome, "it changed")])}
    assert runner.run() == code


def test_a_server_gives_the_runner_no_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho ::set-output name=passed::true\nexit 7\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    assert CHECK.run_mcphost(["lock"]) == 7
    stopped, printed, ended = filter(None, capsysbinary.readouterr().out.decode().splitlines())
    assert stopped.startswith("::stop-commands::")
    assert printed == "::set-output name=passed::true"
    assert ended == f"::{stopped.removeprefix('::stop-commands::')}::"
