"""``mcphost record``, and what ``tap``, ``gate`` and ``serve`` write where they are given a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import mcphost.cli
from mcphost.cli.parser import parse
from mcphost.host.recordings.reading import read_recording
from mcphost.host.traffic.claim import claim
from mcphost.host.traffic.spool import LONGEST, Spool
from tests.conftest import SERVERS

PYTHON = [sys.executable, "-S", "-E"]
LONG = "x" * (LONGEST + 1)
SENT: list[Mapping[str, Any]] = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": LONG}}},
]


def recorded(folder: Path, *words: str, messages: list[Mapping[str, Any]] = SENT) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "MCPHOST_STATE_DIR": str(folder / "state"), "XDG_RUNTIME_DIR": ""}
    command = [sys.executable, "-m", "mcphost", "record", *words, "--", *PYTHON, str(SERVERS / "echo.py")]
    sent = b"".join(json.dumps(each).encode() + b"\n" for each in messages)
    return subprocess.run(command, input=sent, capture_output=True, env=env, cwd=folder, timeout=60, check=False)


def test_a_record_holds_all_that_passed_and_says_so(tmp_path: Path) -> None:
    done = recorded(tmp_path, "git", "--name", "git")
    assert done.returncode == 0
    assert done.stderr.startswith(b"mcphost record: all messages of git go to git.mcp.jsonl")
    recording = read_recording(tmp_path / "git.mcp.jsonl")
    assert recording.facts is not None
    assert (recording.facts.recorded_by, recording.facts.seen) == ("record", "agent")
    assert recording.facts.servers["git"].endswith("echo.py")
    (session,) = recording.sessions
    assert session.exchanges[-1].result == {"content": [{"type": "text", "text": LONG}]}
    assert recording.problems == ()
    assert (tmp_path / "git.mcp.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_record_does_not_touch_what_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = recorded(tmp_path, "notes.txt", messages=[])
    assert done.returncode == 2
    assert b"cannot take the traffic: it holds something else" in done.stderr
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_record_starts_without_the_parser_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Namespace] = []

    def run(options: Namespace) -> int:
        taken.append(options)
        return 0

    monkeypatch.setattr(mcphost.cli, "_command", lambda name: run)
    words = ["record", "git", "--name", "n", "--", "cat", "--into"]
    assert mcphost.cli._run_between(words) == 0
    parsed = vars(parse(words))
    assert {name: parsed[name] for name in vars(taken[0])} == vars(taken[0])
    for left in (["record", "git", "--redact", "x", "--", "cat"], ["record", "--help"], ["record", "--", "cat"]):
        assert mcphost.cli._run_between(left) is None


def test_lines_of_a_gate_are_marked_and_go_where_they_went(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "gate.jsonl", "git", str)
    for source in ("agent", "gate>server", "server", "gate>agent"):
        spool.add(source, 1.0, b'{"id":1}', 8, 0)
    spool.flush()
    lines = [json.loads(line) for line in (tmp_path / "gate.jsonl").read_text().splitlines()]
    assert [(each["direction"], each.get("injected", False)) for each in lines] == [
        ("out", False),
        ("out", True),
        ("in", False),
        ("in", True),
    ]


def test_a_spool_begins_with_its_first_line_and_masks_what_was_named(tmp_path: Path) -> None:
    path = tmp_path / "tap.jsonl"
    claim(path)
    spool = Spool(path, "git", str, first=b'{"time": "x"}\n', redact=lambda text, cut: f"{text[-3:]}{cut}")
    spool.add("agent", 1.0, b"{" + b"x" * LONGEST, LONGEST + 1, 0)
    spool.flush()
    spool.add("agent", 1.0, b"{}", 2, 0)
    spool.flush()
    first, *lines = map(json.loads, path.read_text().splitlines())
    assert first == {"time": "x"}
    assert [(each["text"], each.get("cut", False)) for each in lines] == [("xxxTrue", True), ("{}False", False)]
