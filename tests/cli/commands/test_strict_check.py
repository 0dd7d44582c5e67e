"""``mcphost check --strict``, against the scripted servers."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mcphost.host.server_rules import sessions
from tests.cli.conftest import Mcphost, echo, hostile


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted servers answer at once, or break off."""
    monkeypatch.setattr(sessions, "SECONDS", 3.0)


def test_a_broken_must_is_named_with_its_section_and_fails(mcphost: Mcphost, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    server = hostile("one-bad-tool --kind null-schema")
    said = mcphost("check", "--strict", server, "--era", "legacy", "--junit", str(report))
    assert said.code == 1, said.err
    assert "✖ STOOL-09  MUST" in said.out
    assert "seen: bad: inputSchema is None" in said.out
    assert "by:   schema: Tool" in said.out
    failed = ElementTree.parse(report).findall(".//failure")
    assert {each.get("type") for each in failed} >= {"STOOL-09"}


def test_rows_are_listed_as_json_with_reasons_and_a_call(mcphost: Mcphost) -> None:
    said = mcphost(
        "check", "--strict", echo(), "--era", "legacy", "--call", 'echo {"text": "a"}', "--yes", "--rules", "--json"
    )
    assert said.code == 0, said.out[-600:] + said.err
    assert "will call echo on stdio" in said.err
    found = json.loads(said.out)
    rows = {row["rule"]: row for row in found["findings"]}
    assert len(rows) > 700
    assert rows["STOOL-26"]["outcome"] == "passed"
    assert rows["SHDR-02"]["reason"] == "about http"
    assert found["failed"] == 0


def test_an_era_that_is_asked_for_and_not_spoken_fails(mcphost: Mcphost) -> None:
    said = mcphost("check", "--strict", echo(), "--era", "modern")
    assert said.code == 1, said.err
    assert "not opened: server/discover: error -32601" in said.out


def test_options_of_the_strict_check_need_it(mcphost: Mcphost) -> None:
    said = mcphost("check", echo(), "--rules")
    assert said.code == 2
    assert "--rules belongs to --strict; add it" in said.err


def test_a_call_without_what_the_tool_needs_is_refused(mcphost: Mcphost) -> None:
    said = mcphost("check", "--strict", echo(), "--era", "legacy", "--call", "echo", "--yes")
    assert said.code == 2
    assert "--call echo: text: is required" in said.err


def test_arguments_of_a_call_that_are_not_json_are_refused(mcphost: Mcphost) -> None:
    said = mcphost("check", "--strict", echo(), "--call", "echo {text")
    assert said.code == 2
    assert "--call echo: the arguments are not JSON" in said.err
