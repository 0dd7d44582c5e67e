"""Other hosts' own programs read what ``mcphost export`` prints for them, and start the server that it names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.imports.made_fixtures import program_environment

ECHO = Path(__file__).parents[1] / "servers" / "echo.py"
COMMAND = [sys.executable, "-S", "-E", str(ECHO)]
ADDRESS = "http://127.0.0.1:9/mcp"
CONFIG = f"""\
[servers.echo]
command = {json.dumps(COMMAND[0])}
args = {json.dumps(COMMAND[1:])}
env = {{ MODE = "ro", TOKEN = "${{ECHO_TOKEN}}" }}
tool_timeout_sec = 90

[servers.web]
url = "{ADDRESS}"
transport = "http"
bearer_token_env_var = "WEB_TOKEN"
"""

large = pytest.mark.skipif(
    "MCPHOST_TEST_LARGE" not in os.environ,
    reason="its program is hundreds of megabytes from npm; it runs where MCPHOST_TEST_LARGE is set",
)


def listed(host: str, file: str, home: Path, *command: str) -> str:
    """Return a host program's list of the servers that were exported to its file."""
    environment = program_environment(command[0], home)
    config = home / "own.toml"
    config.write_text(CONFIG, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mcphost", "--config", str(config), "export", host],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    path = home / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(done.stdout, "utf-8")
    project = home / "project"
    project.mkdir()
    more = {"ECHO_TOKEN": "t", "WEB_TOKEN": "t"}
    said = subprocess.run(
        command, cwd=project, env={**environment, **more}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=100,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr
    # Gemini lists on stderr; Codex warns there of the folder.
    return re.sub(r"\x1b\[[0-9;]*m", "", said.stdout if "echo" in said.stdout else said.stderr)


@pytest.fixture
def own_home(tmp_path: Path) -> Path:
    home = tmp_path / "ada"
    home.mkdir()
    return home


def test_claude_code_starts_the_exported_server(own_home: Path) -> None:
    text = listed("claude-code", ".claude.json", own_home, "claude", "mcp", "list")
    assert re.search(r"^echo: .*echo\.py - \S+ Connected$", text, re.MULTILINE)
    assert f"web: {ADDRESS} (HTTP) - " in text


@large
def test_opencode_starts_the_exported_server(own_home: Path) -> None:
    text = listed("opencode", ".config/opencode/opencode.json", own_home, "opencode", "mcp", "list")
    assert re.search(r"echo +connected", text)
    assert ADDRESS in text


@large
def test_codex_reads_the_exported_servers(own_home: Path) -> None:
    text = listed("codex", ".codex/config.toml", own_home, "codex", "mcp", "list", "--json")
    servers = by_name(json.loads(text))
    assert servers["echo"]["transport"] | {"cwd": None} == {
        "type": "stdio", "command": COMMAND[0], "args": COMMAND[1:], "env": {"MODE": "ro"}, "env_vars": [], "cwd": None,
    }  # fmt: skip
    assert servers["echo"]["tool_timeout_sec"] == 90
    assert servers["web"]["transport"]["url"] == ADDRESS
    assert servers["web"]["transport"]["bearer_token_env_var"] == "WEB_TOKEN"


@large
def test_copilot_reads_the_exported_servers(own_home: Path) -> None:
    text = listed("copilot-cli", ".copilot/mcp-config.json", own_home, "copilot", "mcp", "list", "--json")
    servers = json.loads(text)["mcpServers"]
    assert (servers["echo"]["command"], servers["echo"]["args"]) == (COMMAND[0], COMMAND[1:])
    assert servers["echo"]["timeout"] == 90_000
    assert (servers["web"]["type"], servers["web"]["url"]) == ("http", ADDRESS)


def test_gemini_reads_the_exported_servers(own_home: Path) -> None:
    text = listed("gemini", ".gemini/settings.json", own_home, "gemini", "mcp", "list")
    assert re.search(r"echo: .*echo\.py \(stdio\)", text)
    assert f"web: {ADDRESS} (http)" in text


def by_name(servers: list[dict[str, Any]]) -> Mapping[str, dict[str, Any]]:
    return {server["name"]: server for server in servers}
