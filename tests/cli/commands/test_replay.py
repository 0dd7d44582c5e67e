"""``mcphost replay``: a recording as a server, on the streams of a process and at an address."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mcphost.host.recordings.recording import RecordedExchange, RecordedSession
from tests.cli.conftest import Mcphost, entry, start
from tests.host.recordings.recorded_lines import written


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "git.mcp.jsonl"
    introduction = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "git"}}
    tool = {"name": "log", "inputSchema": {"type": "object"}}
    call = RecordedExchange(
        "tools/call",
        {"name": "log", "arguments": {"n": 1}},
        2.0,
        1.0,
        result={"content": [{"type": "text", "text": "x"}]},
    )
    opening = RecordedExchange("initialize", {"capabilities": {}}, 0.0, 0.1, result=introduction)
    listing = RecordedExchange("tools/list", {}, 1.0, 0.1, result={"tools": [tool]})
    path.write_bytes(written(RecordedSession("git", exchanges=(opening, listing, call))))
    return path


def message(key: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": key, "method": method, "params": params}).encode() + b"\n"


OPENING = message(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})


@pytest.mark.parametrize(
    ("arguments", "strict", "code", "said"),
    [
        ({"n": 1}, ["--strict"], 0, "git: served 1, missed 0, differing answers 0"),
        ({"n": 2}, ["--strict"], 1, "Nearest: log {n: 1}; it differs in n."),
    ],
)
def test_a_recording_is_served_on_the_streams(
    arguments: dict[str, int], strict: list[str], code: int, said: str, recording: Path
) -> None:
    program = start(["replay", str(recording), *strict], stdin=subprocess.PIPE)
    out, err = program.communicate(OPENING + message(2, "tools/call", name="log", arguments=arguments), timeout=30)
    answers = [json.loads(line) for line in out.splitlines()]
    assert [each["id"] for each in answers] == [1, 2]
    assert answers[0]["result"]["serverInfo"] == {"name": "git"}
    assert program.returncode == code
    assert said in err.decode()


@pytest.mark.parametrize(("policy", "said"), [('allow = ["live:*"]', "hello"), ("", "mcphost allow")])
def test_a_server_of_the_configuration_answers_the_rest_with_consent(
    policy: str, said: str, recording: Path, isolated: Path
) -> None:
    config = isolated / "own.toml"
    config.write_text(f"{entry('live')}[policy]\n{policy}\n")
    words = ["replay", str(recording), "--on-miss", "live:live", "--config", str(config)]
    program = start(words, stdin=subprocess.PIPE)
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(OPENING + message(2, "tools/call", name="echo", arguments={"text": "hello"}))
    program.stdin.flush()
    answers = [json.loads(program.stdout.readline()) for _ in range(2)]
    assert said in answers[1]["result"]["content"][0]["text"]
    assert "served 0, missed 1" in program.communicate(timeout=30)[1].decode()
    assert program.returncode == 0


def test_a_recording_is_served_at_an_address(recording: Path, mcphost: Mcphost) -> None:
    program = start(["replay", str(recording), "--http", "--strict"])
    assert program.stderr is not None
    address = re.search(r"http://127.0.0.1:\d+/mcp", program.stderr.readline().decode())
    assert address
    assert mcphost("call", address[0], "log", "n:=1", "--yes").out == "x\n"
    program.send_signal(signal.SIGTERM)
    assert program.wait(30) == 0
    assert "missed 0" in program.stderr.read().decode()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.mcp.jsonl"], "there is no such file"),
        (["FILE", "--server", "docs"], "holds no server 'docs'; it holds git"),
        (["FILE", "--ignore", "date"], "'date' is not a JSON path"),
        (["FILE", "--on-miss", "live:"], "is neither nearest, error nor live:SERVER"),
        (["FILE", "--on-miss", "live:nobody"], "no server"),
        (["FILE", "--speed", "-1"], "is not a number of 0 or more"),
        (["FILE", "--http", "0.0.0.0:80"], "on this machine only"),
    ],
)
def test_what_cannot_be_replayed_is_explained(words: list[str], said: str, recording: Path, mcphost: Mcphost) -> None:
    done = mcphost("replay", *[str(recording) if word == "FILE" else word for word in words])
    assert done.code == 2
    assert said in done.err
