"""`mcphost chat --skill`: who is asked, what is shown before it is sent, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.chat_model import OK, model
from tests.cli.conftest import Mcphost, start
from tests.terminal import Terminal

pytestmark = pytest.mark.slow

HEAD = "Skill tides of the server echo, untrusted:"


def test_a_skill_needs_a_remembered_approval_or_a_terminal(tmp_path: Path) -> None:
    with model(tmp_path, OK, script="skills.py") as (words, web):
        process = start([*words, "--skill", "echo:tides", "when?"])
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, web.visits) == (4, b"", [])
    assert b'the skill "tides" was declined by policy: there is no terminal to ask on' in err


@pytest.mark.requirement("SKILL-18")
def test_a_skill_that_was_allowed_for_good_is_shown_and_sent(tmp_path: Path) -> None:
    with model(tmp_path, OK, script="skills.py") as (words, web):
        command = [sys.executable, "-m", "mcphost", *words, "--skill", "echo:tides", "when?"]
        with Terminal(command, columns=150, rows=60) as terminal:
            screen = terminal.wait_for('Load the skill "tides" of echo? [y/N/always]')
            assert "it may read 2 files" in screen
            assert "# Tides" not in screen
            terminal.press("always\r")
            screen = terminal.wait_for("Send this to big? [y/N]")
            assert all(part in screen for part in (HEAD, "│ # Tides", "skill tides of echo: it may read 2 files"))
            terminal.press("y\r")
            assert terminal.wait_exit() == 0
        process = start([*words, "/skill echo:tides when?"], stdin=subprocess.DEVNULL)
        out, err = process.communicate(timeout=20)
        sent = [visit.message["messages"][-1]["content"][0]["text"] for visit in web.visits]
    assert (process.returncode, out.decode(), sent) == (0, "so be it\n", [HEAD] * 2)
    assert b"# Tides" in err


def test_a_person_who_says_no_to_the_text_sends_no_skill(tmp_path: Path) -> None:
    with model(tmp_path, OK, script="skills.py") as (words, web):
        command = [sys.executable, "-m", "mcphost", *words, "--skill", "echo:tides", "when?"]
        with Terminal(command, columns=150, rows=60) as terminal:
            terminal.wait_for("Load the skill")
            terminal.press("y\r")
            terminal.wait_for("Send this to big?")
            terminal.press("\r")
            terminal.wait_for("nothing was sent")
            assert terminal.wait_exit() == 4
        assert web.visits == []


def test_a_skill_without_a_server_is_a_usage_error(mcphost: Mcphost) -> None:
    told = mcphost("chat", "--skill", "tides", "go")
    assert (told.code, "write SERVER:SKILL" in told.err) == (2, True)
