"""The scripts in real shells, each at a terminal of its own."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcphost.cli.completion.known_names import REMEMBERED
from tests.executables import write_executable
from tests.terminal import Terminal

pytestmark = pytest.mark.slow

SHELLS: Mapping[str, tuple[list[str], str]] = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(mcphost completion bash)"; PS1="re""ady> "'),
    "zsh": (
        ["zsh", "-f", "-i"],
        'autoload -U compinit; compinit -u -D; eval "$(mcphost completion zsh)"; PROMPT="re""ady> "',
    ),
    "fish": (
        ["fish", "--no-config", "-i"],
        "mcphost completion fish | source; function fish_prompt; echo 're''ady> '; end",
    ),
}
"""Starts a shell without the user's settings, and loads the script; what is typed is not yet the prompt."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    write_executable(tmp_path / "bin" / "mcphost", [sys.executable, "-m", "mcphost"])
    (tmp_path / "own.toml").write_text('[servers.lighthouse]\ncommand = "x"\n')
    (tmp_path / "state").mkdir(mode=0o700)
    offered = {"tools": {"light_up": ["colour"], "a;touch ran": []}}
    (tmp_path / "state" / REMEMBERED).write_text(json.dumps({"lighthouse": offered}))
    return {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "MCPHOST_CONFIG": str(tmp_path / "own.toml"),
        "MCPHOST_STATE_DIR": str(tmp_path / "state"),
    }


@pytest.mark.parametrize("shell", SHELLS)
def test_a_line_is_completed_from_the_command_to_the_argument(
    shell: str, environment: dict[str, str], tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command, load = SHELLS[shell]
    (tmp_path / "a_picture.png").touch()
    with Terminal(command, env=environment, cwd=tmp_path) as terminal:
        terminal.press(f"{load}\r")
        terminal.wait_for("ready>")
        terminal.press("mcphost cal\t")
        terminal.wait_for("mcphost call")
        terminal.press("lighth\t")
        terminal.wait_for("mcphost call lighthouse")
        terminal.press("\t")
        terminal.wait_for("mcphost call lighthouse light_up")
        terminal.press("col\t")
        terminal.wait_for("light_up colour=")
        terminal.press("red --out\t")
        terminal.wait_for("colour=red --output")
        terminal.press("a_pic\t")
        terminal.wait_for("--output a_picture.png")
        terminal.press("ctrl+u", "mcphost chat --allow lighthouse:li\t")
        terminal.wait_for("--allow lighthouse:light_up")
    assert not (tmp_path / "ran").exists()
