"""Input of a real terminal while a tool call waits for an answer: only a person's keys answer it, and always can."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random, SystemRandom

import pytest

from mcphost.tui.textual_private.terminal_reader import ASK_ALTERNATE_KEYS
from tests.conftest import SERVERS
from tests.terminal import Terminal, mcphost
from tests.tui.stage import calls_in
from tests.tui.terminal_bytes import BROKEN, foreign_input
from tests.whole.app import GUARD, QUESTION, agree, find

COLOR = b"\x1b]4;1;rgb:aaaa/aaaa/aaaa\x07"
LEAVES_IN = 10.0
"""Seconds that leaving may take on a busy machine. Elsewhere it takes one, half of it to see if a paste goes on."""


@contextmanager
def asked(folder: Path) -> Iterator[Terminal]:
    """A terminal with the question of a first call open, and calls that a server records."""
    config = folder / "config.toml"
    config.write_text(
        f'[servers.echo]\ncommand = "{sys.executable}"\n'
        f'args = ["-S", "-E", "{SERVERS / "echo.py"}", "--record", "{folder / "record"}"]\n'
    )
    with mcphost("--config", str(config), rows=40, env={"MCPHOST_STATE_DIR": str(folder / "state")}) as terminal:
        terminal.wait_for("1 ready")
        find(terminal, "echo back")
        terminal.press_until(["enter"], "ctrl+r run")
        terminal.press("hi")
        terminal.press_until(["ctrl+r"], QUESTION)
        terminal.rest(GUARD)
        yield terminal


def unanswered(terminal: Terminal, folder: Path) -> bool:
    stored = list((folder / "state").glob("approvals*"))
    return QUESTION in terminal.text and calls_in(folder / "record") == [] and stored == []


def leave(terminal: Terminal, keys: bytes = b"\x11") -> None:
    begun = time.monotonic()
    terminal.send(keys)
    assert terminal.wait_exit() == 0
    assert time.monotonic() - begun < LEAVES_IN


@pytest.mark.hostile("P09")
def test_input_that_no_user_typed_answers_no_question(tmp_path: Path) -> None:
    seed = SystemRandom().randrange(1 << 32)
    with asked(tmp_path) as terminal:
        for pieces in foreign_input(Random(seed), 300):
            for piece in pieces:
                terminal.rest(0.005)
                terminal.send(piece)
        terminal.rest(GUARD)
        assert unanswered(terminal, tmp_path), seed
        agree(terminal, "● done")
        leave(terminal)


def test_no_byte_ends_the_program_and_late_reports_run_no_call(tmp_path: Path) -> None:
    with asked(tmp_path) as terminal:
        assert ASK_ALTERNATE_KEYS.encode() in terminal.raw
        for data in (*BROKEN, b"\x1b[M#\x98\x2a", b"\x1b[?2048;1$y\x1b[48;40;120;0;0t\x1b[<35;10;5M", COLOR[:9]):
            terminal.send(data)
            terminal.rest(0.15)
        terminal.send(COLOR[9:])
        terminal.send(b"\x1b[200~some notes \x1b[0my more\x1b[201~")
        terminal.rest(0.15)
        assert unanswered(terminal, tmp_path)
        leave(terminal, b"\x1b[1081;5u")


@pytest.mark.parametrize("keys", [b"\x11", b"\x03\x03"])
@pytest.mark.parametrize("begun", [b"\x1b[200~hello", COLOR[:-1], b"\x1b[1"])
def test_ctrl_q_and_ctrl_c_leave_whatever_the_terminal_has_begun(begun: bytes, keys: bytes, tmp_path: Path) -> None:
    with asked(tmp_path) as terminal:
        terminal.send(begun)
        terminal.rest(0.15)
        leave(terminal, keys)
