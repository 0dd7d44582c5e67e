"""``mcphost history``: the table, the objects, and what is said without calls."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from mcphost.cli import main
from mcphost.places import state_path
from tests.conftest import SERVERS
from tests.host.history.histories import SECRET, run

ECHO = f"stdio:{shlex.join([sys.executable, '-S', '-E', str(SERVERS / 'echo.py')])}"


@pytest.fixture
def state(isolated: Path) -> Path:
    folder = state_path({"MCPHOST_STATE_DIR": str(isolated / "state")})
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(autouse=True)
def in_state(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(state))


def keep(state: Path, *calls: dict[str, Any]) -> None:
    async def add() -> None:
        async with run(state / "history.sqlite") as before:
            for call in calls:
                before.add(**call)

    asyncio.run(add())


def test_the_last_calls_are_a_table(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(state, {"arguments": {"a": 1}}, {"server": "t"}, {"arguments": {"a": SECRET}, "declined": True})
    assert main(["history", "s"]) == 0
    heading, declined, done = capsys.readouterr().out.splitlines()
    assert heading.split() == ["TIME", "SERVER", "TOOL", "ARGUMENTS", "STATE", "DURATION"]
    assert declined.split()[2:] == ["s", "act", '{"a":', '"•••"}', "declined", "0", "ms"]
    assert "done" in done
    assert main(["history", "--limit", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_each_call_is_an_object_with_its_result(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(state, {"arguments": {"a": 1}, "result": {"content": [], "structuredContent": 3}}, {"declined": True})
    assert main(["history", "--json"]) == 0
    declined, done = map(json.loads, capsys.readouterr().out.splitlines())
    assert (done["server"], done["tool"], done["arguments"], done["state"]) == ("s", "act", {"a": 1}, "done")
    assert (done["result"], done["sent"], done["sentTo"]) == ({"content": [], "structuredContent": 3}, True, "run s")
    assert (declined["state"], declined["result"], declined["sent"]) == ("declined", None, False)


def test_without_calls_a_remark_says_so(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = state.parent / "config.toml"
    config.write_text("[ui]\nhistory = false\n")
    assert main(["history", "s", "--config", str(config)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "no call to s is kept" in said.err
    assert "ui.history is false" in said.err
    assert list(state.iterdir()) == []


@pytest.mark.slow
def test_a_call_of_the_command_line_is_kept(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", ECHO, "echo", "text=hello", "--yes"]) == 0
    assert main(["history", "--json"]) == 0
    call = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (call["arguments"], call["state"]) == ({"text": "hello"}, "done")


def test_a_file_that_cannot_be_read_is_an_error(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (state / "history.sqlite").mkdir()
    assert main(["history"]) == 2
    assert "is not a regular file; move it away" in capsys.readouterr().err
