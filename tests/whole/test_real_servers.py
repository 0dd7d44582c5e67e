"""mcphost as a whole process, on a terminal and without one, against servers of other projects."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.terminal import mcphost
from tests.warm_start import run
from tests.whole.app import agree, child_of, children, find, open_tool

CALLS = [
    ("everything", "echo", ["message=hi there"], "hi there"),
    ("filesystem", "list_allowed_directories", [], "files"),
    ("memory", "read_graph", [], "entities"),
    ("time", "get_current_time", ["timezone=UTC"], "UTC"),
    ("git", "git_status", ["repo_path={files}"], "branch"),
]


def output(config: Path, *arguments: str) -> str:
    done = run("--config", str(config), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.requirement("TRANS-01", "TRANS-STDIO-01", "HOST-01")
def test_check_finds_five_foreign_servers_ready(five_servers: Path) -> None:
    reports = [json.loads(line) for line in output(five_servers, "check", "--json").splitlines()]
    assert len(reports) == 5
    assert all(report["tools"] > 0 for report in reports)


@pytest.mark.parametrize(("server", "tool", "arguments", "words"), CALLS)
def test_a_tool_of_each_foreign_server_is_called_without_a_screen(
    five_servers: Path, server: str, tool: str, arguments: list[str], words: str
) -> None:
    filled = [argument.format(files=five_servers.parent / "files") for argument in arguments]
    assert words in output(five_servers, "call", server, tool, *filled, "--yes")


@pytest.mark.requirement("TOOLS-13", "TOOLS-14", "TOOLS-29")
def test_the_everything_server_is_called_on_screen_behind_a_dialog(five_servers: Path) -> None:
    with mcphost("--config", str(five_servers), columns=140, rows=44) as terminal:
        terminal.wait_for("5 ready")
        open_tool(terminal, "everything echo")
        terminal.wait_for("message")
        terminal.press("hello you", "ctrl+r")
        terminal.wait_for("Run", "not allowed before", "hello you")
        agree(terminal, "Echo: hello you")
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0


def test_a_tool_of_each_foreign_server_is_called_on_screen(five_servers: Path) -> None:
    files = str(five_servers.parent / "files")
    calls = [
        ("everything get-sum", ["2", "enter", "3", "ctrl+r"], "The sum of 2 and 3 is 5"),
        ("filesystem list_allowed", [], "Allowed directories"),
        ("memory read_graph", [], "entities"),
        ("time get_current", ["UTC", "ctrl+r"], "day_of_week"),
        ("git git_status", [files, "ctrl+r"], "On branch"),
    ]
    with mcphost("--config", str(five_servers), columns=140, rows=44) as terminal:
        terminal.wait_for("5 ready")
        for words, filling, answer in calls:
            find(terminal, words)
            terminal.press("enter")
            if filling:
                terminal.wait_for("ctrl+r run")
                terminal.press(*filling)
            terminal.wait_for("not allowed before")
            agree(terminal, answer)
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0


@pytest.mark.requirement("CANC-07", "PROG-05")
def test_a_long_operation_moves_its_bar_and_escape_cancels_it(five_servers: Path) -> None:
    with mcphost("--config", str(five_servers), columns=140, rows=44) as terminal:
        terminal.wait_for("5 ready")
        open_tool(terminal, "trigger-long-running")
        terminal.wait_for("duration")
        terminal.press("ctrl+r")
        terminal.wait_for("not allowed before")
        agree(terminal, "◐ running")
        terminal.wait_for("2 of 5")
        terminal.press("escape")
        terminal.wait_for("cancelled")
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0


@pytest.mark.requirement("HOST-05", "LIFE-27", "TRANS-STDIO-10")
def test_a_killed_server_comes_back_and_disturbs_no_other(five_servers: Path) -> None:
    with mcphost("--config", str(five_servers), columns=140, rows=44) as terminal:
        terminal.wait_for("5 ready")
        os.kill(child_of(terminal.process.pid, "mcp-server-time"), signal.SIGKILL)
        terminal.wait_for("SIGKILL")
        terminal.wait_for("5 ready")
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0
    assert not children(terminal.process.pid)
