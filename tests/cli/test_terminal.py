"""A command with piped input still asks its user: at the terminal, if there is one."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import shlex
import sys
from pathlib import Path

import pytest

from mcphost.cli.terminal import hidden_line
from tests.cli.asking_server import ASKS, PAGE
from tests.cli.chat_model import ECHO, OK, model
from tests.cli.conftest import entry, start
from tests.terminal import Terminal

pytestmark = pytest.mark.slow


HIDDEN: list[tuple[bytes, bytes]] = [
    (b"abc\r", b"abc"),
    (b"abc\n", b"abc"),
    ("aé☃\r".encode(), "aé☃".encode()),
    ("aé☃\x7f\x7fb\r".encode(), b"ab"),
    (b"abc\bd\r", b"abd"),
    (b"abc\x15d\r", b"d"),
    (b"one two\x17three\r", b"one three"),
    (b"one two  \x17\x17\x17x\r", b"x"),
    (b"a\x1b[Db\x1b[1;5Cc\x1bOHd\x1b[3~e\r", b"abcde"),
    (b"a\x1bbc\x1b\x7fd\r", b"acd"),
    (b"a\x1b\x1b[Db\r", b"ab"),
    (b"a\x1b\r", b"a"),
    (b"a\x1b[\r", b"a"),
    (b"a\x1b]11;rgb:aa/bb/cc\x07b\x1b]4;1\x1b\\c\x1bP>|term\rx\x1b\\d\r", b"abcd"),
    (b"a\x1b[?62;22cb\x1b[106;1:3uc\r", b"abc"),
    (b"\x1b[200~pasted\x1b[201~\r", b"pasted"),
    (b"a\x1b[200~two\nlines\x1b[201~b\r", b"atwo\nlinesb"),
    (b"\x1b[200~col\x1b[31mour\x17\x15\x1b[201~\r", b"colour\x17\x15"),
    (b"a\x00b\x01\r", b"a\x00b\x01"),
    (b"\x04", b""),
    (b"a\x04\r", b"a\x04"),
]
"""Typed keys, and the line that they make."""


@pytest.mark.parametrize(("typed", "line"), HIDDEN)
@pytest.mark.parametrize("size", [1, 1000], ids=["byte by byte", "at once"])
async def test_a_hidden_line_is_what_was_meant(typed: bytes, line: bytes, size: int) -> None:
    ours, terminal = pty.openpty()
    try:
        reading = asyncio.create_task(hidden_line(terminal))
        await asyncio.sleep(0)  # the echo is off
        for at in range(0, len(typed), size):
            os.write(ours, typed[at : at + size])
            await asyncio.sleep(0)
        async with asyncio.timeout(20):
            assert (await reading).removesuffix(b"\n") == line
    finally:
        os.close(ours)
        os.close(terminal)


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


def test_arguments_from_a_pipe_leave_the_terminal_for_the_question(tmp_path: Path) -> None:
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
        ("", "<args >out 2>log"),  # no stream is a terminal
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
