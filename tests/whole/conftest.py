"""Servers of other projects, installed once and started for real."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.npm import node_runs
from tests.whole.peers import NPM_SERVERS, everything, filesystem, sdk_runs


@pytest.fixture
def five_servers(tmp_path: Path) -> Path:
    """A configuration of five servers of other projects: three from npm, two from PyPI."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "hello.txt").write_text("hello from a file\n")
    subprocess.run(["git", "init", "-q", str(files)], check=True)
    scripts = Path(sys.executable).parent
    config = tmp_path / "five.toml"
    config.write_text(
        _entry("everything", *everything("stdio", 0))
        + _entry("filesystem", *filesystem(files))
        + _entry("memory", *node_runs(NPM_SERVERS.format("memory")), env=f'MEMORY_FILE_PATH = "{tmp_path}/m"')
        + _entry("time", *sdk_runs(scripts / "mcp-server-time", "--local-timezone", "UTC"))
        + _entry("git", *sdk_runs(scripts / "mcp-server-git", "--repository", str(files)))
    )
    return config


def _entry(name: str, command: str, *args: str, env: str = "") -> str:
    shown = ", ".join(f'"{arg}"' for arg in args)
    quiet = "capabilities = { roots = false, elicitation = [], sampling = false }"  # they would ask as they start
    return f'[servers.{name}]\ncommand = "{command}"\nargs = [{shown}]\nenv = {{ {env} }}\n{quiet}\n\n'
