"""A terminal that closes under the app: everything ends, whatever was being painted."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import IN_BACKGROUND
from tests.conftest import SERVERS
from tests.terminal import Terminal
from tests.whole.app import children, find

PATIENCE = 40


@pytest.mark.hostile("S05")
@pytest.mark.requirement("LIFE-23", "TRANS-STDIO-15")
@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("hangup", [signal.SIG_DFL, signal.SIG_IGN, None], ids=["sent", "ignored", "never-sent"])
def test_every_process_ends_when_the_terminal_closes(
    tmp_path: Path, busy: bool, hangup: signal.Handlers | None
) -> None:
    config, record = tmp_path / "config.toml", tmp_path / "record"
    config.write_text(
        f'[servers.echo]\ncommand = "{sys.executable}"\nargs = ["{SERVERS / "echo.py"}", "--record", "{record}"]\n'
        '[policy]\ndefault = "allow"\n'
    )
    words = [*(IN_BACKGROUND if hangup is signal.SIG_IGN else ()), sys.executable, "-m", "mcphost"]
    terminal = Terminal([*words, "--config", str(config)], rows=40, controls=hangup is not None)
    terminal.wait_for("1 ready")
    assert terminal.controls is (hangup is not None)
    (server,) = children(terminal.process.pid)
    if busy:
        find(terminal, "log")
        terminal.press("enter")
        terminal.wait_for("ctrl+r run")
        terminal.press("ctrl+u", *"100000", "enter", *"words", "ctrl+r")
    terminal.hang_up()
    try:
        terminal.process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        terminal.process.kill()
        terminal.process.wait()
        pytest.fail("mcphost outlived its terminal")
    assert not Path(f"/proc/{server}").exists()
    assert b"EOF" in record.read_bytes()  # it was told to end, and not killed
