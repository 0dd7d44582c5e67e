"""`mcphost tasks`: listed, stopped, collected."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from mcphost.protocol.models.tasks import Task
from tests.cli.conftest import ECHO, Mcphost, echo

WORKING, DONE = ({"left": left, "token": None, "status": "working"} for left in (100_000, 0))


def errands(*options: object) -> str:
    command = [sys.executable, "-S", "-E", str(ECHO.with_name("errands.py")), *map(str, options)]
    return f"stdio:{shlex.join(command)}"


@pytest.fixture
def kept(tmp_path: Path) -> str:
    """A server that keeps a task that works, and one that is done."""
    file = tmp_path / "tasks"
    file.write_text(json.dumps({"task-1": WORKING, "task-2": DONE}))
    return errands("--keep", file, "--record", tmp_path / "wire")


@pytest.mark.requirement("TASK-09", "PAGE-02")
def test_the_tasks_of_a_server_are_listed(mcphost: Mcphost, kept: str) -> None:
    said = mcphost("tasks", kept)
    heading, first, second = said.out.splitlines()
    assert (said.code, heading.split()[:2]) == (0, ["STATE", "TASK"])
    assert first.split()[:2] + first.split()[-5:] == ["working", "task-1", "5", "min", "100000", "to", "go"]
    assert second.split()[:2] == ["completed", "task-2"]
    as_json = json.loads(mcphost("tasks", kept, "--json").out)
    assert [task["taskId"] for task in as_json["tasks"]] == ["task-1", "task-2"]
    assert as_json["tasks"][0]["pollInterval"] == 10


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (("--cancel", "task-1"), 0, "cancelled: 0 to go\n", ""),
        (("--cancel", "task-9"), 1, "", "mcphost: stdio: no such task task-9 (-32602)\n"),
        (("--result", "task-2"), 0, "found\n", ""),
        (("--result", "task-9"), 1, "", "mcphost: stdio: no such task task-9 (-32602)\n"),
    ],
)
def test_a_task_is_stopped_or_brings_its_result_by_its_id(
    mcphost: Mcphost, kept: str, words: tuple[str, ...], code: int, out: str, err: str
) -> None:
    said = mcphost("tasks", kept, *words)
    assert (said.code, said.out) == (code, out)
    assert said.err.startswith(err)
    if code == 0:
        result = json.loads(mcphost("tasks", kept, *words, "--json").out)
        assert result.get("status", result.get("content")) in ("cancelled", [{"type": "text", "text": "found"}])


@pytest.mark.parametrize(
    ("server", "words", "needed"),
    [
        (echo(), (), "tasks.list"),
        (errands("--declare", "cancel"), (), "tasks.list"),
        (errands("--declare", "list"), ("--cancel", "x"), "tasks.cancel"),
        (errands("--protocol", "2025-06-18"), ("--result", "x"), "tasks"),
    ],
)
@pytest.mark.requirement("TASK-01")
def test_what_a_server_did_not_declare_is_not_asked_of_it(
    mcphost: Mcphost, server: str, words: tuple[str, ...], needed: str
) -> None:
    said = mcphost("tasks", server, *words)
    assert (said.code, said.out) == (2, "")
    assert f"the server does not offer {needed}, which tasks/" in said.err


def test_both_at_once_is_a_mistake_and_no_tasks_are_none(mcphost: Mcphost) -> None:
    assert mcphost("tasks", "x", "--cancel", "1", "--result", "1").code == 2
    none = mcphost("tasks", errands())
    assert (none.code, none.out, none.err) == (0, "", "mcphost: stdio has no tasks\n")


@pytest.mark.hostile("T01")
def test_an_id_is_printed_marked_and_sent_as_it_is(mcphost: Mcphost, tmp_path: Path) -> None:
    """A task's id is text from outside, and no command to the terminal."""
    odd, file, record = "a\x1b[2J\nb", tmp_path / "tasks", tmp_path / "wire"
    file.write_text(json.dumps({odd: DONE}))
    server = errands("--keep", file, "--record", record)
    said = mcphost("tasks", server)
    assert "a␛[2J⏎b" in said.out
    assert "\x1b" not in said.out
    assert mcphost("tasks", server, "--result", odd).out == "found\n"
    assert json.dumps({"taskId": odd}, separators=(",", ":")) in record.read_text()


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9" * 10_000, "soon", ""])
def test_a_time_that_no_clock_shows_is_none(time: str) -> None:
    assert Task.read({"taskId": "t", "status": "working", "createdAt": time}).created is None


def modern(tmp_path: Path, *options: str) -> str:
    """A server without a handshake whose calls become tasks."""
    script, keep = str(ECHO.with_name("modern_errands.py")), str(tmp_path / "kept")
    return f"stdio:{shlex.join([sys.executable, '-S', '-E', script, '--keep', keep, *options])}"


def test_a_call_says_that_it_waits_for_a_task(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"kind": "form", "content": {"city": "Bergen"}}]')
    said = mcphost("call", modern(tmp_path), "travel", "--yes", "--answers", str(tmp_path / "a.json"))
    assert (said.code, said.out) == (0, "to Bergen\n")
    assert "mcphost: stdio answers travel later: waiting for its task (" in said.err
    heading, row = mcphost("tasks", modern(tmp_path)).out.splitlines()
    assert heading.split()[:3] == ["STATE", "TASK", "TOOL"]
    assert row.split()[:3] == ["completed", "task-1", "travel"]


def test_a_task_that_its_server_keeps_for_no_time_is_said_so(mcphost: Mcphost, tmp_path: Path) -> None:
    said = mcphost("call", modern(tmp_path, "--ttl", "-1"), "research", "--yes")
    assert "the task did not end before the server dropped it" in said.err
    assert "-0.001" not in said.err
