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
from mcphost.cli.commands.tap import SUFFIX
from mcphost.cli.observing import observer_of
from mcphost.cli.parser import parse
from mcphost.host.recordings import recording
from mcphost.host.recordings.reading import read_recording
from mcphost.host.traffic.claim import claim
from mcphost.host.traffic.spool import LONGEST, Spool
from mcphost.shim import Shim
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
    assert SUFFIX == recording.SUFFIX
    done = recorded(tmp_path, "git", "--name", "git")
    assert done.returncode == 0
    assert done.stderr.startswith(b"mcphost record: all messages of git go to git.mcp.jsonl")
    found = read_recording(tmp_path / "git.mcp.jsonl")
    assert found.facts is not None
    assert (found.facts.recorded_by, found.facts.seen) == ("record", "agent")
    assert "echo.py" in found.facts.servers["git"]
    (session,) = found.sessions
    assert session.exchanges[-1].result == {"content": [{"type": "text", "text": LONG}]}
    assert found.problems == ()
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


CANARIES = {
    "variable": "canary-variable-01234567",
    "address": "canary-address-01234567",
    "option": "canary-option-01234567",
    "parameter": "canary-parameter-01234567",
    "password": "canary-password-01234567",
    "header": "canary-header-01234567",
    "token": "canary-token-01234567",
    "named": "canary-named-01234567",
}
COMMAND = [
    "server",
    f"--api-key={CANARIES['option']}",
    f"https://user:{CANARIES['password']}@docs.example/mcp?token={CANARIES['parameter']}",
    CANARIES["named"],
]


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09", "LOG-04")
@pytest.mark.parametrize("into", ["own.mcp.jsonl", None])
@pytest.mark.parametrize("role", ["tap", "gate"])
def test_no_record_holds_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str, into: str | None) -> None:
    """In an argument, an answer, an error, a notification, stderr, the command and its variables."""
    monkeypatch.setenv("OWN_TOKEN", CANARIES["variable"])
    monkeypatch.setenv("DATABASE", f"postgres://user:{CANARIES['address']}@db/x")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    file = into and str(tmp_path / into)
    options = Namespace(
        into=file, redact=["canary-named-[0-9]+"], config=None, state=str(tmp_path / "state"), agent=None
    )
    observer = observer_of(role, "git", Shim(COMMAND), options, headers=(f"Bearer {CANARIES['header']}",))
    observer.open()
    known = [canary for name, canary in CANARIES.items() if name != "token"]
    told = {"told": [*known, "\\".join(known), f"Bearer {CANARIES['token']}"], "authorization": CANARIES["token"]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": told}}
    notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": told}}
    answer = {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": json.dumps(told), "data": told}}
    for source, message in (("agent", call), ("gate>server", call), ("server", notice), ("server", answer)):
        observer.take(source, json.dumps(message).encode() + b"\n")
    observer.take("stderr", " ".join([*COMMAND, CANARIES["variable"], CANARIES["named"]]).encode() + b"\n")
    observer.close()
    (path,) = [Path(file)] if file else (tmp_path / "state" / "taps").iterdir()
    found = read_recording(path)
    assert [each.masked for each in found.sessions[0].exchanges] == [True]
    said = path.read_text() + repr(found)
    assert [name for name, canary in CANARIES.items() if canary in said] == []


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09", "LOG-04")
def test_serve_records_both_of_its_sides_and_no_secret(tmp_path: Path) -> None:
    """The agent says the secret before the server that knows it has started."""
    canary = CANARIES["variable"]
    config = tmp_path / "own.toml"
    config.write_text(
        f"""
[servers.echo]
command = "{sys.executable}"
args = ["-S", "-E", "{SERVERS / "echo.py"}"]
env = {{ API_KEY = "${{WORD}}" }}
tools.echo.approval = "allow"
"""
    )
    arguments = {"name": "echo", "arguments": {"text": f"{canary} {CANARIES['named']}"}}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": arguments}
    options = ["--config", str(config), "--into", "own.mcp.jsonl", "--redact", CANARIES["named"], "--as", "me"]
    env = {**os.environ, "WORD": canary, "MCPHOST_STATE_DIR": str(tmp_path / "state"), "XDG_RUNTIME_DIR": ""}
    with subprocess.Popen(
        [sys.executable, "-m", "mcphost", "serve", "echo", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
        cwd=tmp_path,
    ) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        for message in (SENT[0], call):
            serving.stdin.write(json.dumps(message).encode() + b"\n")
            serving.stdin.flush()
            serving.stdout.readline()
        serving.stdin.close()
        assert serving.wait(30) == 0
    found = read_recording(tmp_path / "own.mcp.jsonl")
    assert [(each.server, each.agent, each.exchanges[-1].method) for each in found.sessions] == [
        ("mcphost", "me", "tools/call"),
        ("echo", "", "tools/call"),
    ]
    said = (tmp_path / "own.mcp.jsonl").read_text() + repr(found)
    assert [name for name, each in CANARIES.items() if each in said] == []
