"""``mcphost agents`` asks the running screen for the agents that are connected to it."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcphost.cli import main
from mcphost.serving import link

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Python has no Unix sockets there")

AGENT = {
    "session": 1, "role": "gate", "server": "git", "agent": "claude-code", "given": "claude-code", "claimed": "",
    "pid": 4711, "program": "/usr/bin/node", "folder": "/home/ada/app", "identity": "uvx mcp-server-git",
    "since": 1_790_000_000.0, "calls": 3, "waiting": 1, "messages": 20, "dropped": 0, "declining": False,
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # A path from the root may be too long for a socket.
    monkeypatch.setattr("mcphost.cli.commands.agents.socket_path", lambda env: Path("agents.sock"))


@contextmanager
def screen(answer: bytes) -> Iterator[list[link.FromGate]]:
    """A screen that gives this answer to one program; yields what that said."""
    said: list[link.FromGate] = []

    def take() -> None:
        connection, _ = listening.accept()
        with connection, connection.makefile("rb") as lines:
            said.append(link.read_from_gate(lines.readline()))
            connection.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("agents.sock")
        listening.listen()
        thread = threading.Thread(target=take)
        thread.start()
        yield said
        thread.join()


def listed(*agents: Mapping[str, Any]) -> bytes:
    return link.AgentList(agents=[dict(each) for each in agents]).line()


def test_the_agents_of_the_screen_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with screen(listed(AGENT)) as said:
        assert main(["agents"]) == 0
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split() == ["AGENT", "SERVER", "PROGRAM", "PID", "FOLDER", "SINCE", "CALLS", "WAITING"]
    assert row.split()[:5] == ["claude-code", "git", "node", "4711", "/home/ada/app"]
    assert row.split()[-2:] == ["3", "1"]
    assert isinstance(said[0], link.Hello)
    assert said[0].role == "list"


def test_programs_get_the_whole_list(capsys: pytest.CaptureFixture[str]) -> None:
    with screen(listed(AGENT, {**AGENT, "session": 2})):
        assert main(["agents", "--json"]) == 0
    assert [json.loads(line)["session"] for line in capsys.readouterr().out.splitlines()] == [1, 2]


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (listed(), 0, "no agent is connected"),
        (b"", 3, "screen does not run"),
        (link.HelloRefused(reason="full").line(), 3, "refused to list the agents: full"),
        (b"{}\n", 3, "cannot be read"),
        (link.Welcome().line(), 3, "did not answer with its agents"),
    ],
)
def test_other_answers_are_explained(answer: bytes, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with screen(answer):
        assert main(["agents"]) == code
    assert said in " ".join(capsys.readouterr().err.split())


def test_without_a_screen_there_is_nothing_to_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents"]) == 3
    assert "start mcphost in a terminal" in " ".join(capsys.readouterr().err.split())


def test_a_served_agent_is_listed_with_its_servers(capsys: pytest.CaptureFixture[str]) -> None:
    served = {**AGENT, "role": "serve", "server": "mcphost", "servers": {"git": "git@claude-code", "files": "files"}}
    with screen(listed(served)):
        assert main(["agents"]) == 0
    assert "claude-code  git, files  node" in capsys.readouterr().out
