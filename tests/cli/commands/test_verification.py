"""`mcphost test`: servers against recordings and saved calls."""

from __future__ import annotations

import json
import os
import signal
from argparse import Namespace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from mcphost.cli.commands.verification import PlanApprover, VerificationRun
from mcphost.cli.parser import parse
from mcphost.errors import RequestTimeout, ServerNotReady
from mcphost.host.consent.approvals import ApprovalStatus, ToolApproval
from mcphost.host.consent.questions import ToolCallQuestion
from mcphost.host.recordings.recording import RecordedExchange, RecordedSession, Recording
from mcphost.host.verification.answers import AnswerRules
from mcphost.host.verification.cases import CaseReport, CaseState, LiveAnswer, recorded_cases
from mcphost.protocol.models.tools import Tool
from mcphost.redaction import MASK
from tests.cli.conftest import Mcphost, echo, entry, start
from tests.host.recordings.recorded_lines import written

INITIALIZE = RecordedExchange(
    "initialize",
    {"protocolVersion": "2025-11-25", "clientInfo": {"name": "c"}, "capabilities": {}},
    seconds=0.0,
    result={"protocolVersion": "2025-11-25", "serverInfo": {"name": "echo"}, "capabilities": {"tools": {}}},
)


def call(tool: str, arguments: dict[str, Any], words: str, **more: Any) -> RecordedExchange:
    result = {"content": [{"type": "text", "text": words}], **more}
    return RecordedExchange("tools/call", {"name": tool, "arguments": arguments}, seconds=0.0, result=result)


def recording(path: Path, *exchanges: RecordedExchange, server: str = "a") -> Path:
    path.write_bytes(written(RecordedSession(server, exchanges=(INITIALIZE, *exchanges))))
    return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of a server, and a recording of it of which one answer differs."""
    file = tmp_path / "config.toml"
    file.write_text(entry("a"))
    monkeypatch.setenv("MCPHOST_CONFIG", str(file))
    monkeypatch.setenv("GITHUB_ACTIONS", "")
    monkeypatch.chdir(tmp_path)
    recording(
        tmp_path / "a.mcp.jsonl",
        call("echo", {"text": "2026-11-27T14:05:30Z"}, "2020-01-01T00:00:00Z"),
        call("add", {"a": 1, "b": 2}, "3", structuredContent={"sum": 4}),
    )
    return tmp_path


WORDS = "structuredContent.sum: expected 4, got 3"


def test_a_difference_has_its_place_and_a_red_exit(mcphost: Mcphost, project: Path) -> None:
    said = mcphost("test", "a.mcp.jsonl", "--yes", "-v", "--junit", "report.xml")
    assert said.code == 1
    lines = said.out.splitlines()
    assert [line[0] for line in lines] == [*"a✓ ✖ 1h"]
    assert f"     {WORDS}" in lines
    assert '     hidden by iso-time: content[0].text: "2020-01-01T00:00:00Z", now "2026-11-27T14:05:30Z"' in lines
    assert "hidden: 1 by iso-time" in lines
    assert said.err.startswith("mcphost: calls on a, ")
    assert said.err.splitlines()[0].endswith(": echo, add")
    suites = ElementTree.parse(project / "report.xml").getroot()
    assert suites.attrib["failures"] == "1"
    assert [each.attrib["message"] for each in suites.iter("failure")] == [WORDS]


def test_nothing_is_called_without_consent(mcphost: Mcphost, project: Path) -> None:
    said = mcphost("test", "a.mcp.jsonl")
    assert (said.code, said.out) == (4, "")
    assert "a:echo, a:add would be asked about, and nothing was called: there is no terminal to ask on" in said.err
    assert 'set [servers.a.tools."echo"] approval = "allow" in your configuration' in said.err


def test_rules_of_the_configuration_are_consent_enough(mcphost: Mcphost, project: Path) -> None:
    (project / "config.toml").write_text(entry("a", more="[servers.a.tools.add]\napproval = 'allow'"))
    said = mcphost("test", "a.mcp.jsonl", "-k", "add", "--json")
    found = json.loads(said.out)
    assert (said.code, found["case"], found["outcome"]) == (1, "2 tools/call add", "failed")
    assert found["differences"] == [{"path": "structuredContent.sum", "expected": 4, "got": 3}]
    (project / "config.toml").write_text(entry("a", more="[servers.a.tools.add]\napproval = 'deny'"))
    denied = mcphost("test", "a.mcp.jsonl", "-k", "add", "--yes")
    assert denied.code == 4
    assert "add, which a rule denies" in denied.err
    assert "add was declined by policy" in denied.out


def test_an_update_shows_the_difference_first_and_then_passes(mcphost: Mcphost, project: Path) -> None:
    said = mcphost("test", "a.mcp.jsonl", "--yes", "--update")
    assert said.code == 0
    assert WORDS in said.out
    assert "replaced 1 answer in a.mcp.jsonl" in said.err
    assert "(1 replaced) in " in said.out
    assert mcphost("test", "a.mcp.jsonl", "--yes", "--normalize", "iso-time").code == 0


def test_an_update_needs_a_yes(mcphost: Mcphost, project: Path) -> None:
    (project / "config.toml").write_text(entry("a", more="[servers.a.tools.add]\napproval = 'allow'"))
    before = (project / "a.mcp.jsonl").read_bytes()
    said = mcphost("test", "a.mcp.jsonl", "-k", "add", "--update")
    assert said.code == 4
    assert "a.mcp.jsonl is not updated: there is no terminal to ask on; add --yes" in said.err
    assert (project / "a.mcp.jsonl").read_bytes() == before


def test_another_server_and_a_folder_can_be_named(mcphost: Mcphost, project: Path) -> None:
    (project / "tests" / "deep").mkdir(parents=True)
    recording(project / "tests" / "deep" / "b.mcp.jsonl", call("echo", {"text": "hi"}, "hi"), server="elsewhere")
    (project / "tests" / "calls.toml").write_text(
        '[[call]]\nname = "c"\nserver = "elsewhere"\ntool = "fail"\nexpect = { is_error = true }\n'
    )
    said = mcphost("test", "tests", "--against", echo(), "--yes")
    assert (said.code, said.out.splitlines()[-1].partition(" in")[0]) == (0, "2 passed")
    unknown = mcphost("test", "tests", "--yes")
    assert unknown.code == 2
    assert "--against SERVER tests another one" in unknown.err


def test_github_gets_annotations_and_json_stays_json(
    mcphost: Mcphost, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    said = mcphost("test", "a.mcp.jsonl", "--yes", "-k", "add")
    assert f"::error file=a.mcp.jsonl,line=6,title=a.mcp.jsonl%3A 2 tools/call add::{WORDS}" in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "there is nothing to test; mcphost record FILE.mcp.jsonl -- COMMAND records a server's answers, and"),
        (["empty"], "there is nothing to test in empty; "),
        (["calls.toml"], "no call in calls.toml expects anything; add expect = {} to one"),
        (["a.mcp.jsonl", "-k", "nowhere"], 'no case has "nowhere" in its name; leave -k out to see all names'),
        (["a.mcp.jsonl", "--normalize", "uid"], "'uid' is not a normalizer; there are uuid, "),
        (["a.mcp.jsonl", "--ignore", "content"], "'content' is not a JSON path: begin with $"),
        (["gone.mcp.jsonl"], "gone.mcp.jsonl: there is no such file"),
        (["gone.toml"], "gone.toml: there is no such file"),
    ],
)
def test_what_cannot_be_tested_says_what_to_do(mcphost: Mcphost, project: Path, words: list[str], said: str) -> None:
    (project / "empty").mkdir()
    if words == ["calls.toml"]:
        (project / "calls.toml").write_text('[[call]]\nname = "c"\nserver = "a"\ntool = "echo"\n')
    found = mcphost("test", *words)
    assert said in found.err
    assert (found.code, found.out) == (2, "")


def test_a_server_that_does_not_start_fails_its_cases_alone(mcphost: Mcphost, project: Path) -> None:
    recording(project / "b.mcp.jsonl", call("echo", {"text": "hi"}, "hi"), server="b")
    with (project / "config.toml").open("a") as file:
        file.write("[servers.b]\ncommand = 'false'\n")
    said = mcphost("test", "a.mcp.jsonl", "b.mcp.jsonl", "--yes", "-k", "echo")
    assert said.code == 3
    assert "1 passed, 1 error" in said.out
    assert "b: " in said.out


def test_the_normalizers_are_listed(mcphost: Mcphost) -> None:
    said = mcphost("test", "--normalize", "help")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()[1:]][:2] == ["uuid", "iso-time"]


def test_a_secret_is_in_no_report(mcphost: Mcphost, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", "swordfish-canary")
    (project / "config.toml").write_text(entry("a", more='env = { WORD = "${WORD}", API_TOKEN = "${WORD}" }'))
    names = {"names": ["WORD", "API_TOKEN"]}
    recording(project / "c.mcp.jsonl", call("environment", names, "x", structuredContent={"values": {"WORD": "x"}}))
    (project / "calls.toml").write_text(
        '[[call]]\nname = "c"\nserver = "a"\ntool = "echo"\narguments = { text = "${WORD}" }\n'
        'expect = { text_matches = "nothing", structured = { a = 1 } }\n'
    )
    for words in (["-v"], ["--json"], ["--junit", "j.xml", "--sarif", "s.sarif"], ["--update"]):
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        said = mcphost("test", "c.mcp.jsonl", "calls.toml", "--yes", *words)
        assert MASK in said.out
        assert "swordfish" not in said.out + said.err
    for file in ("j.xml", "s.sarif", "c.mcp.jsonl", "calls.toml"):
        assert "swordfish" not in (project / file).read_text("utf-8")


def test_the_value_of_a_reference_is_in_no_report(
    mcphost: Mcphost, isolated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_TOKEN", "swordfish-canary")
    folder = isolated / "config" / "mcphost"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(entry("a"))
    (folder / "calls.toml").write_text(
        '[[call]]\nname = "c"\nserver = "a"\ntool = "echo"\narguments = { text = "${OWN_TOKEN}" }\n'
        'expect = { text_matches = "nothing" }\n'
        '[[call]]\nname = "d"\nserver = "gone"\ntool = "echo"\n'
    )
    said = mcphost("test", "--yes", "--json")
    assert said.code == 1
    assert f'matches nothing in \\"{MASK}\\"' in said.out
    assert "swordfish" not in said.out + said.err


def run_of(*ends: tuple[CaseState, Exception | None], declined: bool = False) -> VerificationRun:
    (case,) = recorded_cases_of(call("echo", {}, ""))
    reports = [CaseReport(case, state, answer=LiveAnswer(error=error)) for state, error in ends]  # type: ignore[arg-type]
    return VerificationRun([], [], AnswerRules(), {}, {}, reports, declined)


def recorded_cases_of(*exchanges: RecordedExchange) -> list[Any]:
    return list(recorded_cases(Recording("x", sessions=(RecordedSession("a", exchanges=exchanges),)), "x"))


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (run_of(("passed", None), ("skipped", None)), 0),
        (run_of(("passed", None), ("failed", None)), 1),
        (
            run_of(
                ("failed", RequestTimeout("tools/call", 1)),
            ),
            5,
        ),
        (run_of(("failed", RequestTimeout("tools/call", 1)), ("failed", None)), 1),
        (run_of(("failed", None), ("error", ServerNotReady("gone"))), 3),
        (run_of(("failed", None), declined=True), 4),
    ],
)
def test_the_exit_code_says_the_worst(run: VerificationRun, code: int) -> None:
    assert run.code == code


async def test_a_person_sees_all_calls_and_answers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def confirmed(prompt: str) -> bool:
        asked.append(prompt)
        return True

    monkeypatch.setattr("mcphost.cli.commands.verification.confirmed", confirmed)
    monkeypatch.setattr("mcphost.cli.approver.confirmed", confirmed)
    approver = PlanApprover()
    approver.calls = {("a", "echo", '{"text":"x"}'): 2}
    tool = Tool.read({"name": "echo", "inputSchema": {"type": "object"}})
    question = ToolCallQuestion(1, "a", tool, {"text": "x"}, "you", "program", ToolApproval(ApprovalStatus.NEW), "rule")
    assert (await approver.ask(question)).allow
    assert (await approver.ask(question)).allow
    other = ToolCallQuestion(2, "a", tool, {"text": "y"}, "you", "program", ToolApproval(ApprovalStatus.NEW), "rule")
    assert (await approver.ask(other)).allow
    assert asked == ["Run these 2 calls? [y/N] ", 'Run "echo" on a? [y/N] ']


def test_a_signal_reports_what_ran(project: Path) -> None:
    (project / "calls.toml").write_text(
        '[[call]]\nname = "quick"\nserver = "a"\ntool = "echo"\narguments = { text = "x" }\nexpect = {}\n'
        '[[call]]\nname = "slow"\nserver = "a"\ntool = "sleep"\narguments = { seconds = 600 }\nexpect = {}\n'
    )
    process = start(["test", "--yes", "--junit", "report.xml"])
    assert process.stdout is not None
    assert process.stdout.readline().endswith(b"calls.toml\n")
    assert process.stdout.readline().startswith("✓  quick".encode())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out.split(b" in ")[0]) == (130, b"1 passed")
    assert b"interrupted: 1 of 2 ran" in err
    assert ElementTree.parse(project / "report.xml").getroot().attrib["tests"] == "1"


def test_paths_of_files_may_hold_any_bytes() -> None:
    options: Namespace = parse(["test", os.fsdecode(b"\xff.mcp.jsonl")])
    assert options.files == [os.fsdecode(b"\xff.mcp.jsonl")]
