"""`mcphost tasks` and `call` at a modern server: what one run began, another lists, collects and cancels."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ECHO, Mcphost, mcphost_command, start_program


@pytest.fixture
def server(tmp_path: Path) -> str:
    script = ECHO.with_name("modern_errands.py")
    options = "--keep", tmp_path / "tasks", "--record", tmp_path / "wire"
    return f"stdio:{shlex.join(map(str, [sys.executable, '-S', '-E', script, *options]))}"


def wait_for(file: Path, words: str) -> None:
    """Wait until the file holds these words."""
    end = time.monotonic() + 30
    while not file.exists() or words not in file.read_text():
        assert time.monotonic() < end, f"{file.name} never held {words}"
        time.sleep(0.02)


def sent(folder: Path, method: str) -> int:
    return (folder / "wire").read_text().count(f'"{method}"')


@pytest.fixture
def began(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for a task that it began, and that is written down."""
    state = tmp_path / "state"
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(state))
    with start_program(mcphost_command("call", server, "research", "--yes")) as process:
        wait_for(state / "tasks.toml", "task-1")
        yield process
        process.kill()


@pytest.mark.requirement("XTASK-09")
def test_a_task_outlives_the_process_that_began_it(
    mcphost: Mcphost, server: str, began: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    began.kill()
    began.wait()
    said = mcphost("tasks", server)
    assert (said.code, said.out.splitlines()[1].split()[:2]) == (0, ["working", "task-1"])
    assert mcphost("call", server, "finish", "--yes").code == 0
    assert mcphost("tasks", server, "--result", "task-1").out == "found\n"
    (listed,) = json.loads(mcphost("tasks", server, "--json").out)["tasks"]
    assert (listed["status"], listed["pollIntervalMs"]) == ("completed", 20)
    assert sent(tmp_path, "tasks/cancel") == 0


@pytest.mark.requirement("XTASK-05")
def test_interrupting_the_wait_for_a_task_cancels_it(
    mcphost: Mcphost, server: str, began: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    began.send_signal(signal.SIGINT)
    assert began.wait() == 130
    assert sent(tmp_path, "tasks/cancel") == 1
    assert mcphost("tasks", server).out.splitlines()[1].split()[:2] == ["cancelled", "task-1"]


def test_a_task_is_cancelled_by_its_id(
    mcphost: Mcphost, server: str, began: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    began.kill()
    began.wait()
    said = mcphost("tasks", server, "--cancel", "task-1")
    assert (said.code, said.out) == (0, "cancelled: reading\n")
    said = mcphost("tasks", server, "--cancel", "task-9")
    assert (said.code, said.out) == (1, "")
    assert "no such task task-9" in said.err


@pytest.mark.requirement("EXT-03")
def test_a_tool_for_an_apps_user_interface_is_listed_as_such(mcphost: Mcphost, server: str) -> None:
    lines = {line.split()[1]: line for line in mcphost("list", "tools", server).out.splitlines()}
    assert "app only" in lines["refresh"]
    assert "app only" not in lines["panel"]
    assert mcphost("call", server, "panel", "--yes").out == "panel\n"


@pytest.mark.requirement("XTASK-06", "EXT-05", "MOD-35")
@pytest.mark.parametrize(
    ("words", "said_of_it"),
    [
        (("tasks", "errands"), "errands: mcphost does not use io.modelcontextprotocol/tasks with this server"),
        (("tasks", "errands", "--cancel", "task-1"), "errands: mcphost does not use io.modelcontextprotocol/tasks"),
        (("call", "errands", "survey", "--yes"), "no task, no survey (-32021)"),
    ],
)
def test_the_error_names_the_key_that_withholds_tasks(
    mcphost: Mcphost, tmp_path: Path, words: tuple[str, ...], said_of_it: str
) -> None:
    script, config = ECHO.with_name("modern_errands.py"), tmp_path / "mcphost.toml"
    args = json.dumps(["-S", "-E", str(script), "--keep", str(tmp_path / "tasks"), "--record", str(tmp_path / "wire")])
    command = f"[servers.errands]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n"
    config.write_text(f"{command}[servers.errands.capabilities]\nextensions = []\n")
    said = mcphost("--config", str(config), *words)
    assert (said.code, said.out) == (1 if words[0] == "call" else 2, "")
    assert said_of_it in said.err
    key = 'extensions = ["io.modelcontextprotocol/tasks"] into [servers.errands.capabilities]'
    assert f"To declare it, put {key}" in said.err
    assert sent(tmp_path, "tasks/cancel") == 0
