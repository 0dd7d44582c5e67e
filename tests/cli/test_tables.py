"""Tables fit the terminal, and a pipe gets all of them; foreign text has a margin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import entry, start
from tests.terminal import Terminal

pytestmark = pytest.mark.slow

TOOLS = 11
LONG = "/no/such/program/" + "of-a-long-name" * 8


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "own.toml"
    offers = entry("offers").replace("echo.py", "offers.py")
    path.write_text(f'{entry("echo")}{offers}[servers.gone]\ncommand = "{LONG}"\n')
    return str(path)


def shown(config: str, columns: int, *words: str) -> list[str]:
    """The lines that a command leaves on a terminal of this width, whatever the environment says of it."""
    command = [sys.executable, "-m", "mcphost", "--config", config, *words]
    with Terminal(command, columns=columns, rows=60, env={"COLUMNS": "500"}) as terminal:
        terminal.wait_exit()
        return [line for line in terminal.text.splitlines() if line.strip()]


def printed(config: str, *words: str) -> str:
    process = start(["--config", config, *words], stdin=subprocess.DEVNULL)
    return process.communicate(timeout=60)[0].decode()


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_no_row_of_a_table_wraps_on_a_terminal(config: str, columns: int) -> None:
    lines = shown(config, columns, "list", "tools", "echo")
    assert lines[0].split() == ["SERVER", "TOOL", "DESCRIPTION"]
    rows = [line for line in lines if line.startswith("echo ")]
    assert len(rows) == len(lines) - 1 >= TOOLS
    assert any(line.endswith("…") for line in rows) is (columns < 120)


def test_a_pipe_gets_every_cell_whole(config: str) -> None:
    assert "…" not in printed(config, "list", "tools", "echo")
    assert LONG in printed(config, "check", "gone")


@pytest.mark.parametrize("columns", [60, 80])
def test_a_reason_that_is_cut_follows_the_table_in_full(config: str, columns: int) -> None:
    lines = shown(config, columns, "check", "echo", "gone")
    row = next(at for at, line in enumerate(lines) if line.startswith("✖ failed"))
    assert lines[row].endswith("…")
    assert lines[row + 1].startswith("mcphost: gone: ")
    assert all(line.startswith(" " * len("mcphost: ")) for line in lines[row + 2 :])
    assert LONG in "".join(line[len("mcphost: ") :] for line in lines[row + 1 :])


@pytest.mark.parametrize(
    ("words", "margin"),
    [
        (["read", "offers", "memo:///readme.md"], "│ "),
        (["prompt", "offers", "review", "language=Rust"], "│ "),
        (["call", "echo", "echo", "text=hello", "--yes"], "│ hello"),
    ],
)
def test_a_servers_text_has_a_margin_on_a_terminal_only(config: str, words: list[str], margin: str) -> None:
    own = ("mcphost: ", "user:", "assistant:", "[")
    lines = [line for line in shown(config, 100, *words) if not line.startswith(own)]
    assert lines
    assert all(line.startswith(margin.rstrip()) for line in lines)
    assert "│" not in printed(config, *words)
