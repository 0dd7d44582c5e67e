"""The traffic of calls to a modern server over HTTP, as a run writes it down."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.host.traffic.book import read_traffic
from tests.cli.conftest import Mcphost, hostile
from tests.secret_search import secrets_in
from tests.whole.peers import free_port, listening, sdk_runs

ROUNDS = Path(__file__).parents[1] / "servers" / "sdk_modern.py"


@pytest.mark.slow
@pytest.mark.requirement("HDR-10", "MRTR-15")
def test_headers_agree_with_the_body_in_each_round(mcphost: Mcphost, tmp_path: Path) -> None:
    port, file = free_port(), tmp_path / "traffic.jsonl"
    answers = tmp_path / "answers.toml"
    answers.write_text('[[answer]]\nkind = "form"\ncontent = { city = "Rome" }\n[[answer]]\nkind = "roots"\n')
    with listening(sdk_runs(ROUNDS, "streamable-http", str(port)), port):
        url = f"http://127.0.0.1:{port}/mcp"
        said = mcphost("call", url, "wait_a_while", "--yes", "--traffic", str(file), "--answers", str(answers))
    assert (said.code, said.out) == (0, "ready\n"), said.err
    book = read_traffic(file)
    messages = book.since(0)
    calls = [message for message in messages if message.method == "tools/call" and message.sent]
    assert [call.round for call in calls] == [1, 2, 3]
    assert [message.status for message in messages if message.method == "tools/call" and not message.sent] == [
        ("input_required",),
        ("input_required",),
        ("ok",),
    ]
    assert messages[1].probe
    for message in messages:
        if message.sent and not message.note:
            assert book.mirrors(message), message.raw()
            assert all(mirror.agrees for mirror in book.mirrors(message)), message.raw()
    assert all(call.facts.state is not None for call in calls[1:])
    lines = file.read_text("utf-8").splitlines()
    states = [line.partition("requestState")[2] for line in lines if "requestState" in line]
    assert len(states) == 4
    assert all("bytes, sha256" in state[:60] for state in states)


@pytest.mark.requirement("MRTR-15")
@pytest.mark.parametrize(("kind", "code"), [("complete", 0), ("refused", 1), ("exits", 3)])
def test_a_request_state_is_in_no_output_or_file(
    mcphost: Mcphost, isolated: Path, tmp_path: Path, kind: str, code: int
) -> None:
    file = tmp_path / "traffic.jsonl"
    server = hostile(f"modern-state --kind {kind}")
    said = mcphost("call", server, "act", "--yes", "--traffic", str(file), "--root", str(isolated))
    assert said.code == code, said.err
    assert file.read_text().count("requestState") >= 6
    assert "canary-state" not in said.out + said.err
    assert secrets_in(tmp_path) == secrets_in(isolated) == []
