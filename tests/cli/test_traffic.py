"""``--traffic FILE``: all that passes in a run, with and without a screen, and in no file that is not for it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Mcphost, echo, entry
from tests.terminal import mcphost as on_terminal

pytestmark = pytest.mark.slow

CANARY = "canary-5f1c7a"
READING = f"stdio:{echo().removeprefix('stdio:').replace('echo.py', 'offers.py')}"


def methods(file: Path) -> list[str]:
    return [line["method"] for line in map(json.loads, file.read_text().splitlines()) if line.get("method")]


@pytest.mark.requirement("LOG-04", "SEC-09")
@pytest.mark.parametrize(
    ("words", "method"),
    [
        (["check", echo()], "initialize"),
        (["list", "tools", echo()], "tools/list"),
        (["list", "resources", READING], "resources/list"),
        (["call", echo(), "echo", "text=x", "--yes"], "tools/call"),
        (["read", READING, "text://a"], "resources/read"),
        (["prompt", READING, "no-such"], "initialize"),
        (["complete", READING, "prompt:no-such", "a", "b"], "initialize"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_every_command_that_opens_a_server_writes_its_traffic(
    mcphost: Mcphost, tmp_path: Path, words: list[str], method: str, first: bool
) -> None:
    file, option = tmp_path / "own.jsonl", ["--traffic", str(tmp_path / "own.jsonl")]
    mcphost(*option, *words) if first else mcphost(*words, *option)
    assert method in methods(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09")
def test_the_file_goes_on_over_runs_and_holds_no_secret(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", CANARY)
    config, file = tmp_path / "own.toml", tmp_path / "own.jsonl"
    config.write_text(entry("echo", more='env.API_KEY = "${WORD}"'))
    file.touch(0o644)
    for _ in range(2):
        words = ["call", "echo", "echo", f"text={CANARY}", "--yes", "--config", str(config), "--traffic", str(file)]
        assert mcphost(*words).code == 0
    assert methods(file).count("initialize") == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert CANARY not in file.read_text()


PLANTED: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.symlink_to("target"), "it is a link"),
    (Path.mkdir, "it is not a regular file of yours"),
    (os.mkfifo, "it is not a regular file of yours"),
    (lambda path: path.write_text("# my notes\n"), "it holds something else"),
    (lambda path: path.write_text('{"jsonrpc": "2.0"}\n'), "it holds something else"),
]


@pytest.mark.parametrize(("plant", "why"), PLANTED)
def test_what_is_no_traffic_file_is_refused_and_left_as_it_is(
    mcphost: Mcphost, tmp_path: Path, plant: Callable[[Path], object], why: str
) -> None:
    target, file = tmp_path / "target", tmp_path / "own.jsonl"
    target.write_text("mine")
    plant(file)
    before = file.lstat()
    said = mcphost("check", echo(), "--traffic", str(file))
    assert (said.code, said.out) == (2, "")
    assert said.err == f"mcphost: {file}: cannot take the traffic: {why}; name another file\n"
    assert (file.lstat().st_mode, file.lstat().st_size) == (before.st_mode, before.st_size)
    assert target.read_text() == "mine"


def test_a_place_without_room_is_a_sentence(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = mcphost("check", echo(), "--traffic", str(tmp_path / "file" / "own.jsonl"))
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "cannot take the traffic: Not a directory" in said.err


def test_a_command_that_opens_no_server_does_not_take_it(mcphost: Mcphost, tmp_path: Path) -> None:
    said = mcphost("--traffic", str(tmp_path / "own.jsonl"), "config", "path")
    assert (said.code, said.err) == (2, "mcphost: --traffic: this command connects to no server\n")
    assert not (tmp_path / "own.jsonl").exists()


@pytest.mark.slow
def test_the_screen_writes_it_too(tmp_path: Path) -> None:
    config, file = tmp_path / "own.toml", tmp_path / "own.jsonl"
    config.write_text(entry("echo"))
    with on_terminal("--config", str(config), "--traffic", str(file)) as terminal:
        terminal.wait_for("Says back")
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0
    assert methods(file)[:2] == ["server/discover", "initialize"]
