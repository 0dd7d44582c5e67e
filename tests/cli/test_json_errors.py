"""Errors with ``--json``: one object a line on stderr, with the exit code that the run ends with."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mcphost.host.tool_calls.sending import CallSending
from tests.cli.conftest import Mcphost, echo, entry, start


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "own.toml"
    path.write_text('[servers.odd]\nurl = "ftp://x"\n[servers.gone]\ncommand = "/no/such/program"\n' + entry("echo"))
    return str(path)


def errors(err: str) -> list[dict[str, Any]]:
    """Return the lines of stderr, each an object."""
    return [error for line in err.splitlines() if (error := json.loads(line).get("error"))]


CASES: list[tuple[list[str], str, int, dict[str, Any]]] = [
    (["call", "--json"], "usage", 2, {}),
    (["check", "--json", "--jsn"], "usage", 2, {}),
    (["tasks", "echo", "--output", "x", "--json"], "usage", 2, {}),
    (["call", "nobody", "echo", "--json"], "unknown_name", 2, {}),
    (["call", "odd", "echo", "--json"], "configuration", 2, {"line": 2}),
    (["call", "echo", "ecko", "--json"], "unknown_name", 2, {}),
    (
        ["call", "echo", "add", "--args", '{"a": 1}', "--yes", "--json"],
        "invalid_arguments",
        2,
        {"problems": [{"path": "b", "message": "is required"}]},
    ),
    (["call", "gone", "echo", "--json"], "not_connected", 3, {}),
    (["call", "echo", "echo", "text=x", "--json"], "declined", 4, {}),
    (["call", "echo", "sleep", "seconds=60", "--yes", "--timeout", "0.1", "--json"], "timed_out", 5, {}),
    (["list", "tools", "gone", "--json"], "not_connected", 3, {}),
    (["read", "echo", "x:/y", "--json"], "capability_missing", 2, {}),
]


@pytest.mark.parametrize(("words", "kind", "code", "details"), CASES, ids=[" ".join(case[0]) for case in CASES])
def test_an_error_is_an_object_with_its_kind_and_the_exit_code(
    mcphost: Mcphost, config: str, words: list[str], kind: str, code: int, details: dict[str, Any]
) -> None:
    said = mcphost("--config", config, *words)
    (error,) = [each for each in errors(said.err) if each["kind"] == kind]
    assert (said.code, error["exit_code"], said.out) == (code, code, "")
    assert error["message"]
    assert {name: error[name] for name in details} == details


def test_a_bug_in_mcphost_is_told_as_one(mcphost: Mcphost, config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(CallSending, "run", fail)
    said = mcphost("--config", config, "call", "echo", "echo", "text=x", "--yes", "--json")
    (error,) = errors(said.err)
    assert (said.code, error["exit_code"], error["kind"]) == (70, 70, "internal")
    assert "ZeroDivisionError" in error["message"]


def test_an_error_of_the_server_has_its_code(mcphost: Mcphost) -> None:
    said = mcphost("read", echo().replace("echo.py", "offers.py"), "memo:///nope", "--json")
    (error,) = errors(said.err)
    assert (said.code, error["kind"], error["code"]) == (1, "server_error", -32002)
    assert error["advice"].startswith("It may be gone")


def test_every_problem_of_a_configuration_is_an_object(mcphost: Mcphost, config: str) -> None:
    said = mcphost("--config", config, "list", "tools", "--json")
    assert sorted(each["kind"] for each in errors(said.err)) == ["configuration", "not_connected"]
    assert [json.loads(line)["server"] for line in said.out.splitlines()] == ["echo"]


def test_what_is_no_error_is_a_remark(mcphost: Mcphost) -> None:
    said = mcphost("list", "prompts", echo(), "--json")
    assert [json.loads(line) for line in said.err.splitlines()] == [{"remark": "stdio: offers no prompts"}]


def test_a_program_reads_nothing_but_objects_from_stderr(tmp_path: Path, config: str) -> None:
    process = start(["--config", config, "call", "gone", "x", "--json"], stdin=subprocess.DEVNULL, cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    (error,) = errors(err.decode())
    assert (process.returncode, out, error["kind"]) == (3, b"", "not_connected")


@pytest.mark.hostile("T01")
def test_words_of_others_in_an_error_are_escaped(mcphost: Mcphost) -> None:
    said = mcphost("call", echo(), "a\x1b[2J\nb", "--json")
    assert said.err.count("\n") == 1
    assert said.err.strip().isprintable()


def test_words_after_two_dashes_are_no_options(mcphost: Mcphost) -> None:
    assert mcphost("call", "nobody", "tool", "--", "--json").err.startswith("mcphost: ")
