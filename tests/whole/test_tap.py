"""``mcphost tap`` before servers of other projects: both sides receive what they do without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

TAP = (sys.executable, "-m", "mcphost", "tap", "--")
RECORD = 'tee "$0" | "$@"'
"""Runs a server in a shell, and keeps what it is sent."""

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "agent é\u2028", "version": "1"}}
CALLS: dict[str, list[tuple[str, dict[str, object]]]] = {
    "everything": [("echo", {"message": "héllo \u2028"}), ("get-sum", {"a": 2, "b": 3}), ("get-tiny-image", {})],
    "filesystem": [("list_directory", {"path": "FILES"}), ("read_text_file", {"path": "FILES/hello.txt"})],
    "git": [("git_status", {"repo_path": "FILES"}), ("git_log", {"repo_path": "FILES"})],
}


@pytest.mark.parametrize("server", CALLS)
def test_both_directions_are_the_same_with_a_tap(five_servers: Path, server: str, tmp_path: Path) -> None:
    entry = tomllib.loads(five_servers.read_text())["servers"][server]
    command, files = [entry["command"], *entry["args"]], str(five_servers.parent / "files")
    assert digests(tmp_path, command, server, files) == digests(tmp_path, command, server, files, TAP)


def digests(folder: Path, command: Sequence[str], server: str, files: str, before: Sequence[str] = ()) -> list[str]:
    """Of what the server and the agent receive in one session."""
    record = folder / "sent"
    env = {**os.environ, "MCPHOST_STATE_DIR": str(folder / "state")}
    words = [*before, "sh", "-c", RECORD, str(record), *command]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said = b""
        for message in messages(server, files):
            process.stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
            process.stdin.flush()
            answer = {} if "id" in message else message
            while answer.get("id") != message.get("id"):
                said += (line := process.stdout.readline())
                answer = json.loads(line)
        process.stdin.close()
        said += process.stdout.read()
    return [sha256(record.read_bytes()).hexdigest(), sha256(said).hexdigest()]


def messages(server: str, files: str) -> Iterator[dict[str, Any]]:
    yield {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
    yield {"jsonrpc": "2.0", "method": "notifications/initialized"}
    yield {"jsonrpc": "2.0", "id": "list", "method": "tools/list"}
    for number, (tool, arguments) in enumerate(CALLS[server], 1):
        filled = {
            key: value.format(files=files) if isinstance(value, str) else value for key, value in arguments.items()
        }
        yield {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": filled}}
