"""Servers of other projects, installed once and started for real."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.npm import installed, node_runs
from tests.whole.peers import NPM_SERVERS, sdk_runs


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The folder with the npm servers."""
    return installed("node-servers", NPM_SERVERS)


@pytest.fixture
def five_servers(node_modules: Path, tmp_path: Path) -> Path:
    """A configuration of five servers of other projects: three from npm, two from PyPI."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "hello.txt").write_text("hello from a file\n")
    subprocess.run(["git", "init", "-q", str(files)], check=True)
    scripts = Path(sys.executable).parent
    npm = node_modules / "@modelcontextprotocol"
    config = tmp_path / "five.toml"
    config.write_text(
        _entry("everything", *node_runs(npm / "server-everything/dist/index.js", "stdio"))
        + _entry("filesystem", *node_runs(npm / "server-filesystem/dist/index.js", str(files)))
        + _entry("memory", *node_runs(npm / "server-memory/dist/index.js"), env=f'MEMORY_FILE_PATH = "{tmp_path}/m"')
        + _entry("time", *sdk_runs(scripts / "mcp-server-time", "--local-timezone", "UTC"))
        + _entry("git", *sdk_runs(scripts / "mcp-server-git", "--repository", str(files)))
    )
    return config


def _entry(name: str, command: str, *args: str, env: str = "") -> str:
    shown = ", ".join(f'"{arg}"' for arg in args)
    quiet = "capabilities = { roots = false, elicitation = [], sampling = false }"  # they would ask as they start
    return f'[servers.{name}]\ncommand = "{command}"\nargs = [{shown}]\nenv = {{ {env} }}\n{quiet}\n\n'
