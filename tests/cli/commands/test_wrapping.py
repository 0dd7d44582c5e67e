"""``mcphost wrap`` shows what it writes into another host's file, asks, and lists what it wrote."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mcphost.cli import main
from mcphost.cli.commands.wrapping import wrap_command
from mcphost.errors import ConfigError

SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
CONTENT = json.dumps(
    {"mcpServers": {"git": {"command": "uvx", "args": ["mcp-git", "--token", SECRET]}, "docs": {"url": "https://d.example"}}},
    indent=2,
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("mcphost.cli.commands.wrapping.home_folder", lambda: None)
    path = folder / ".mcp.json"
    path.write_text(CONTENT)
    return path


def test_without_a_terminal_nothing_is_written(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wrap", "claude-code", "git"]) == 2
    shown = capsys.readouterr().err
    assert "there is no terminal to ask on" in shown
    assert '"uvx"' in shown
    assert file.read_text() == CONTENT


def test_secrets_are_masked_in_what_is_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(json.dumps(json.loads(CONTENT)))
    assert main(["wrap", "claude-code", "git", "--yes"]) == 0
    shown = capsys.readouterr().err
    assert "•••" in shown
    assert SECRET not in shown


def test_a_project_file_is_wrapped_listed_and_unwrapped(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wrap", "claude-code", "--tap", "--yes"]) == 0
    said = capsys.readouterr().err
    assert "read by" in said
    assert "restart it where it runs" in said
    assert "then open mcphost" in said
    assert main(["wrap", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {key: listed[key] for key in ("host", "server", "by", "state", "file")} == {
        "host": "claude-code", "server": "git", "by": "tap", "state": "wrapped", "file": os.path.realpath(file),
    }  # fmt: skip
    assert main(["unwrap", "claude-code", "git"]) == 0
    assert [path.name for path in file.parent.iterdir()] == [".mcp.json"]
    assert file.read_text() == CONTENT


def test_a_named_server_that_cannot_be_wrapped_fails(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wrap", "claude-code", "docs", "--yes"]) == 1
    assert "no headers of its own" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["wrap"], ["wrap", "nobody"], ["wrap", "claude-code", "nothing"], ["unwrap", "claude-code", "git"]]
)
def test_an_unknown_name_is_refused_with_those_that_exist(
    words: list[str], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "claude-code" in said or "it has git, docs" in said or "none of its servers is wrapped" in said


def test_an_entry_starts_the_script_that_runs(tmp_path: Path) -> None:
    script = tmp_path / "mcphost"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    env = {"MCPHOST_STATE_DIR": str(tmp_path / "state"), "MCPHOST_CONFIG": str(tmp_path / "c.toml")}
    assert wrap_command("gate", None, str(script), env).program == (str(script),)


def test_an_mcphost_in_a_cache_is_not_written_down(tmp_path: Path) -> None:
    script = tmp_path / ".cache" / "uv" / "archive-v0" / "x" / "bin" / "mcphost"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    env = {"MCPHOST_STATE_DIR": str(tmp_path / "state"), "MCPHOST_CONFIG": str(tmp_path / "c.toml")}
    with pytest.raises(ConfigError, match="install it first"):
        wrap_command("gate", None, str(script), env)


@pytest.mark.hostile("C04")
def test_escapes_in_a_file_are_shown_and_not_sent(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"command": "run\x1b[2J", "args": ["\u202e"]}
    file.write_text(json.dumps({"mcpServers": {"a\x1b[31m": entry}}, ensure_ascii=False))
    assert main(["wrap", "claude-code", "--yes"]) == 0
    assert main(["unwrap", "claude-code"]) == 0
    shown = "".join(capsys.readouterr())
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_modules_in_the_agents_folder_do_not_count(tmp_path: Path) -> None:
    env = {"MCPHOST_STATE_DIR": str(tmp_path / "state"), "MCPHOST_CONFIG": str(tmp_path / "c.toml")}
    assert wrap_command("gate", None, "/x/mcphost/__main__.py", env).program[1:] == ("-P", "-m", "mcphost")


@pytest.mark.parametrize(("content", "mode", "why"), [("{", 0o600, "not valid JSON"), (CONTENT, 0o400, "read-only")])
def test_a_named_file_that_cannot_be_edited_fails(
    content: str, mode: int, why: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(content)
    file.chmod(mode)
    assert main(["wrap", "claude-code", "--file", str(file), "--yes"]) == 1
    assert why in capsys.readouterr().err
    assert file.read_text() == content


def test_unwrap_without_a_host_names_those_that_are_wrapped(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["wrap", "claude-code", "git", "--yes"])
    assert main(["unwrap"]) == 2
    assert "wrapped are servers of claude-code" in capsys.readouterr().err
