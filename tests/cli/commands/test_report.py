"""`mcphost report`: it is shown first, written once the user agrees, and works where nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.host.crash_files import CrashFiles
from tests.cli.conftest import Mcphost, entry
from tests.terminal import mcphost as on_terminal


def test_it_has_versions_findings_names_and_logs(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(entry("echo"))
    said = mcphost("report", "-", "--config", "own.toml")
    assert (said.code, said.err) == (0, "")
    for words in ("mcphost 0.1.0", "pydantic 2.", "✓ ok       server echo", "servers.echo.command = ", "## Last crash"):
        assert words in said.out


def test_without_a_terminal_and_without_yes_nothing_is_written(mcphost: Mcphost, tmp_path: Path) -> None:
    said = mcphost("report", "out.txt", "--no-start")
    assert said.code == 2
    assert "there is no terminal to ask on" in said.err
    assert "## Diagnosis" in said.out
    assert not (tmp_path / "out.txt").exists()


def test_a_file_that_is_there_is_not_replaced(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("mine")
    said = mcphost("report", "out.txt", "--no-start", "--yes")
    assert (said.code, said.out) == (2, "")
    assert (tmp_path / "out.txt").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize(("key", "written"), [("y\r", True), ("\r", False)])
def test_at_a_terminal_it_is_written_after_a_yes_alone(tmp_path: Path, key: str, written: bool) -> None:
    with on_terminal("report", str(tmp_path / "out.txt"), "--no-start") as terminal:
        terminal.wait_for("[y/N]", "Last crash")
        terminal.press(key)
        assert terminal.wait_exit() == (0 if written else 4)
    assert (tmp_path / "out.txt").exists() is written


@pytest.mark.parametrize("content", ["a = ", "[polcy]\nx = 'planted-broken-01234567'\n", "x = 1\n"])
def test_a_broken_configuration_is_reported_without_a_value(mcphost: Mcphost, tmp_path: Path, content: str) -> None:
    (tmp_path / "own.toml").write_text(content)
    said = mcphost("report", "-", "--config", "own.toml")
    assert said.code == 0
    assert "✗ problem  configuration" in said.out
    assert "planted" not in said.out


def test_the_last_crash_is_in_it(mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(tmp_path / "state"))
    with pytest.raises(ZeroDivisionError) as caught:
        print(1 / 0)
    assert CrashFiles(tmp_path / "state").save(caught.value)
    assert "builtins.ZeroDivisionError" in mcphost("report", "-", "--no-start").out


def test_what_a_server_wrote_reaches_a_report_as_harmless_text(mcphost: Mcphost, tmp_path: Path) -> None:
    script = "import sys, time; sys.stderr.write('\\x1b[2J## Diagnosis\\n'); sys.exit(3)"
    (tmp_path / "own.toml").write_text(
        f'[servers.bad]\ncommand = "python3"\nargs = ["-c", {script!r}]\n'.replace("\\x1b", "\\\\x1b")
    )
    said = mcphost("report", "-", "--config", "own.toml")
    assert "\x1b" not in said.out
    assert said.out.count("\n## Diagnosis") == 1


def test_a_configured_path_is_masked_as_a_whole(mcphost: Mcphost, tmp_path: Path) -> None:
    folder = tmp_path / "first user" / "peer"
    folder.mkdir(parents=True)
    text = f'[servers.a]\ncommand = "no-such-program"\nargs = ["{folder}/", "--dir={tmp_path}"]\ncwd = "{folder}"\n'
    (tmp_path / "own.toml").write_text(text)
    said = mcphost("report", "-", "--no-start", "--config", str(tmp_path / "own.toml")).out
    assert str(folder) not in said
    assert str(tmp_path) not in said
    assert "••• user" not in said
    assert "•••/own.toml" in said


def test_the_words_of_a_path_are_masked_in_no_other_path(mcphost: Mcphost, tmp_path: Path) -> None:
    folder = tmp_path / "first user"
    folder.mkdir()
    config = folder / "own.toml"
    config.write_text(f'[servers.a]\ncommand = "no-such-program"\ncwd = "{folder}/peer"\nargs = ["{folder}/o"]\n')
    said = mcphost("report", "-", "--no-start", "--config", str(config)).out
    assert f"{config}: 1 servers" in said
    assert f"{folder}/peer" not in said
