"""Reports for CI keep hostile texts visible, and never as markup, commands or broken XML."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from mcphost.cli.report_formats import (
    ROWS,
    ReportedCase,
    annotation_commands,
    claim_report,
    junit,
    markdown_summary,
    sarif,
    write_report,
    write_reports,
)
from mcphost.errors import ConfigError

HOSTILE = "a\x1b[2J\x00\ud800\ufffe\u202e|<b>`%\r\n::error::x"

CASES = [
    ReportedCase(
        "git", "git_log", "failed", "the argument path is now required", 0.25, "tool-changed", "mcphost.lock", 4
    ),
    ReportedCase("git", "git_log", "warning", "the description differs", rule="words-changed"),
    ReportedCase("git", "git_show", "passed", seconds=1.0),
    ReportedCase("time", "now", "skipped", "it has no tool that is named"),
    ReportedCase("time", "later", "error", "no answer"),
    ReportedCase("time", "older", "note", "a new version"),
]


def findings(cases: list[ReportedCase]) -> list[dict[str, Any]]:
    (run,) = json.loads(sarif(cases, {}))["runs"]
    return list(run["results"])


def test_junit_has_a_suite_for_each_group_with_its_counts() -> None:
    root = ElementTree.fromstring(junit(CASES, "lock"))
    assert (root.tag, root.get("name"), root.get("tests")) == ("testsuites", "lock", "6")
    assert [
        [suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped", "time")] for suite in root
    ] == [["git", "3", "1", "0", "0", "1.250"], ["time", "3", "0", "1", "1", "0.000"]]


def test_junit_says_what_failed_and_keeps_warnings_as_output() -> None:
    cases = list(ElementTree.fromstring(junit(CASES, "lock")).iter("testcase"))
    assert [case.get("name") for case in cases[:3]] == ["git_log", "git_log (2)", "git_show"]
    assert (cases[0].get("classname"), cases[0].get("file"), cases[0].get("time")) == ("git", "mcphost.lock", "0.250")
    failure = cases[0].find("failure")
    assert failure is not None
    assert (failure.get("type"), failure.get("message")) == ("tool-changed", CASES[0].words)
    assert cases[1].findtext("system-out") == "the description differs"
    assert [[each.tag for each in case] for case in cases[1:]] == [
        ["properties", "system-out"], [], ["skipped"], ["error"], ["properties", "system-out"],
    ]  # fmt: skip


def test_junit_has_a_failure_where_a_warning_fails_the_command() -> None:
    root = ElementTree.fromstring(junit(CASES, "lock", warnings_fail=True))
    assert root.get("failures") == "2"
    review = list(root.iter("testcase"))[1]
    assert [each.tag for each in review] == ["properties", "failure"]
    assert [each.attrib for each in review.iter("property")] == [{"name": "outcome", "value": "warning"}]


@pytest.mark.hostile("T01", "T08")
@pytest.mark.parametrize("outcome", ["failed", "error", "skipped", "note", "passed"])
def test_junit_is_xml_whatever_the_texts_are(outcome: str) -> None:
    hostile = ReportedCase(HOSTILE, HOSTILE, outcome, HOSTILE, rule=HOSTILE, file=HOSTILE)  # type: ignore[arg-type]
    text = junit([hostile], HOSTILE)
    (case,) = ElementTree.fromstring(text).iter("testcase")
    assert "␛[2J␀\ufffd⟨U+FFFE⟩⟨U+202E⟩" in str(case.get("name"))


def test_sarif_has_the_members_that_its_schema_demands() -> None:
    log = json.loads(sarif(CASES, {"tool-changed": "A tool changed.", "unused": "Another."}, "lock"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run["automationDetails"] == {"id": "lock/"}
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["tool-changed", "unused", "words-changed"]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "error", "note"]
    for result in run["results"]:
        assert result["message"]["text"]
        assert "ruleId" not in result or rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert run["results"][0]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "mcphost.lock"},
        "region": {"startLine": 4},
    }


def test_the_fingerprint_of_a_finding_outlives_words_and_lines() -> None:
    before, moved = findings(CASES), findings([case._replace(words="else", line=9) for case in reversed(CASES)])
    assert {each["message"]["text"] for each in before}.isdisjoint(each["message"]["text"] for each in moved)
    prints = [each["partialFingerprints"]["mcphost/v1"] for each in before]
    assert sorted(prints) == sorted(each["partialFingerprints"]["mcphost/v1"] for each in moved)
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize(
    ("file", "uri"),
    [("a b/ö.lock", "a%20b/%C3%B6.lock"), ("/w/x.lock", "file:///w/x.lock"), ("a\udcff", "a%FF"), ("a\ud800", "a%3F")],
)
def test_a_file_becomes_a_reference_in_sarif(file: str, uri: str) -> None:
    (finding,) = findings([CASES[0]._replace(file=file)])
    assert finding["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": uri}


def test_annotations_name_the_place_of_each_finding() -> None:
    assert annotation_commands(CASES).splitlines() == [
        "::error file=mcphost.lock,line=4,title=git%3A git_log::the argument path is now required",
        "::warning title=git%3A git_log::the description differs",
        "::error title=time%3A later::no answer",
        "::notice title=time%3A older::a new version",
    ]


@pytest.mark.hostile("T01")
def test_a_hostile_text_gives_no_annotation_of_its_own() -> None:
    (line,) = annotation_commands(
        [ReportedCase("a,b:c", HOSTILE, "failed", HOSTILE, file=HOSTILE, line=1)]
    ).splitlines()
    properties = line.removeprefix("::error ").partition("::")[0]
    assert [each.partition("=")[0] for each in properties.split(",")] == ["file", "line", "title"]
    assert line.endswith("%25%0A::error::x")


@pytest.mark.hostile("T11")
def test_a_summary_holds_foreign_text_without_its_markup() -> None:
    text = "a|b <img src=x> [l](javascript:x) `c` *d* https://x.example www.y.example\nz"
    summary = markdown_summary([ReportedCase("g", text, "failed", text)], text)
    row = next(line for line in summary.splitlines() if line.startswith("| ❌"))
    assert row.replace(r"\|", "").count("|") == 5
    assert r"a\|b &lt;img src=x&gt; \[l\](javascript:x) \`c\` \*d\* https\://x.example www\.y.example⏎z" in row


def test_a_summary_lists_what_did_not_pass_up_to_a_limit() -> None:
    assert "1 passed, 1 skipped, 1 note, 1 warning, 1 error, 1 failed" in markdown_summary(CASES, "lock")
    rows = [line.split(" | ")[2] for line in markdown_summary(CASES, "lock").splitlines() if line.startswith("| ")]
    assert rows[1:] == [r"git\_log", "later", r"git\_log", "older", "now"]
    assert "… and 1 more" in markdown_summary([CASES[0]] * (ROWS + 1), "lock")
    assert "| time | 7 cases | it has no tool" in markdown_summary([CASES[3]] * 7, "lock")
    assert "nothing was checked" in markdown_summary([], "lock")


def test_a_report_replaces_a_report_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report"
    for text in (junit(CASES, "lock"), sarif(CASES, {}), junit([], "lock")):
        write_report(str(path), text)
        assert path.read_text() == text
    path.write_text('{"my": "work"}')
    with pytest.raises(ConfigError, match="is not replaced"):
        write_report(str(path), "")
    with pytest.raises(ConfigError, match=r"the folder .* does not exist"):
        claim_report(str(tmp_path / "no" / "report"))
    with pytest.raises(ConfigError, match="not a regular file"):
        claim_report(str(tmp_path))


def test_the_options_write_both_reports_and_the_runner_annotations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = Namespace(junit=str(tmp_path / "j.xml"), sarif=str(tmp_path / "s.json"), json=False)
    assert len(write_reports(options, CASES, "lock", {}, {"GITHUB_ACTIONS": "true"})) == 2
    assert (tmp_path / "j.xml").read_text() == junit(CASES, "lock")
    assert (tmp_path / "s.json").read_text() == sarif(CASES, {}, "lock")
    assert capsys.readouterr().err == annotation_commands(CASES)
    write_reports(Namespace(junit=None, sarif=None, json=True), CASES, "lock", {}, {"GITHUB_ACTIONS": "true"})
    assert capsys.readouterr().err == ""
