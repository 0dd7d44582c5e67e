"""Who types a command that gets its words through a pipe is still asked: at the terminal, if there is one."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.commands.test_chat import ECHO, OK, model
from tests.cli.conftest import entry, start
from tests.cli.test_answers import ASKS, PAGE
from tests.terminal import Terminal

pytestmark = pytest.mark.slow


def shell(words: list[str], before: str = "", after: str = "") -> list[str]:
    """A shell that runs mcphost with these words, with its streams put elsewhere."""
    return ["sh", "-c", f"{before} {shlex.join([sys.executable, '-m', 'mcphost', *words])} {after}"]


@pytest.mark.parametrize(
    ("after", "typed", "sent", "code"),
    [("", "y", "loud", 0), ("2>log", "no, whisper", "says: no, whisper", 4), (">out", "y", "loud", 0)],
)
def test_somebody_is_asked_though_the_words_come_through_a_pipe(
    tmp_path: Path, after: str, typed: str, sent: str, code: int
) -> None:
    with model(tmp_path, ECHO, OK) as (words, web):
        with Terminal(shell([*words, "say it"], "echo some notes |", after), cwd=tmp_path) as terminal:
            terminal.wait_for('"text": "loud"', "or why not]")
            terminal.press(typed, "enter")
            assert terminal.wait_exit() == code
        first, last = (visit.message["messages"][-1] for visit in (web.visits[0], web.visits[-1]))
    assert "some notes" in first["content"][1]["text"]
    assert sent in last["content"]


def test_the_arguments_of_a_call_come_from_a_file_and_the_yes_from_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "args").write_text('{"text": "from a file"}')
    (tmp_path / "c.toml").write_text(entry("echo"))
    words = ["--config", "c.toml", "call", "echo", "echo", "--args", "-"]
    with Terminal(shell(words, after="<args"), cwd=tmp_path) as terminal:
        terminal.wait_for('Run "echo" on echo? [y/N]', '"text": "from a file"')
        terminal.press("y", "enter")
        terminal.wait_until(lambda screen: screen.rstrip().endswith("from a file"), "the answer")
        assert terminal.wait_exit() == 0


def test_what_a_server_asks_is_asked_at_the_terminal_too(tmp_path: Path) -> None:
    (tmp_path / "args").write_text(json.dumps({"data": {"elicitations": [PAGE["params"]]}}))
    words = ["call", ASKS, "demand", "--yes", "--args", "-"]
    with Terminal(shell(words, "cat args |"), columns=100, rows=40, cwd=tmp_path) as terminal:
        terminal.wait_for("Open it?")
        terminal.press("y", "enter")
        terminal.wait_for("Press Enter once you are done")
        terminal.press("enter")
        assert terminal.wait_exit() == 0
        assert '"visited"' in terminal.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "<args >out 2>log"),  # no stream is a terminal: nobody watches
        ("setsid -w", "<args"),  # the terminal belongs to others
        ("set -m; exec 3<args;", "<&3 & wait $!"),  # in the background, where reading would stop it
    ],
)
def test_nobody_is_asked_where_nobody_could_answer(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "args").write_text('{"text": "x"}')
    (tmp_path / "c.toml").write_text(entry("echo"))
    words = ["--config", "c.toml", "call", "echo", "echo", "--args", "-", "--json"]
    with Terminal(shell(words, before, after), cwd=tmp_path) as terminal:
        assert terminal.wait_exit() == 4
        assert "[y/N]" not in terminal.text


def test_without_any_terminal_a_call_is_declined(tmp_path: Path) -> None:
    (tmp_path / "args").write_text('{"text": "x"}')
    (tmp_path / "c.toml").write_text(entry("echo"))
    words = ["--config", str(tmp_path / "c.toml"), "call", "echo", "echo", "--args", "-"]
    with (tmp_path / "args").open("rb") as args:
        process = start(words, stdin=args, start_new_session=True)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, b"there is no terminal to ask on" in err) == (4, True)
