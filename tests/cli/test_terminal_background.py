"""The terminal's background: what it answers, what COLORFGBG says, and a terminal that says nothing."""

from __future__ import annotations

import os
import pty
import select
import termios
import threading
from collections.abc import Iterator, Mapping

import pytest

from mcphost.cli import terminal_background
from mcphost.cli.terminal_background import QUERY, background_query, is_light

ATTRIBUTES = b"\x1b[?62;22c"


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    master, slave = pty.openpty()
    yield master, slave
    os.close(master)
    os.close(slave)


def answering(master: int, answer: bytes) -> threading.Thread:
    """A terminal that answers once the whole query has come."""

    def work() -> None:
        query = b""
        while QUERY not in query:
            query += os.read(master, 100)
        os.write(master, answer)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("answer", "light"),
    [
        (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\", True),
        (b"\x1b]11;rgb:fd/f6/e3\x07", True),
        (b"\x1b]11;rgba:fdfd/f6f6/e3e3/ffff\x1b\\", True),
        (b"\x1b]11;rgb:0000/0000/0000\x1b\\", False),
        (b"\x1b]11;rgb:0000/2b2b/3636\x1b\\", False),
        (b"", False),
        (b"\x1b]11;rgb:no/such/color\x1b\\", False),
        (b"\x1b]4;rgb:ffff/ffff/ffff\x1b\\", False),
    ],
)
def test_a_background_is_light_when_it_is_closer_to_white(answer: bytes, light: bool) -> None:
    assert is_light(answer) is light


@pytest.mark.parametrize(("color", "light"), [(b"ffff/ffff/ffff", True), (b"1010/1515/1c1c", False)])
def test_the_terminal_is_asked_and_its_settings_come_back(
    terminal: tuple[int, int], color: bytes, light: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal_background, "LOCAL_SECONDS", 30.0)
    master, slave = terminal
    before = termios.tcgetattr(slave)
    thread = answering(master, b"\x1b]11;rgb:" + color + b"\x1b\\" + ATTRIBUTES)
    with background_query(slave, slave, {}) as has_light_background:
        assert has_light_background() is light
    thread.join(30)
    assert termios.tcgetattr(slave) == before


def test_a_terminal_without_an_answer_for_colours_is_not_waited_for(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal_background, "LOCAL_SECONDS", 3600.0)
    master, slave = terminal
    answering(master, ATTRIBUTES)
    with background_query(slave, slave, {}) as has_light_background:
        assert has_light_background() is False


def test_a_terminal_that_says_nothing_is_taken_for_a_dark_one(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal_background, "LOCAL_SECONDS", 0.0)
    with background_query(terminal[1], terminal[1], {}) as has_light_background:
        assert has_light_background() is False


@pytest.mark.parametrize(("value", "light"), [("0;15", True), ("15;0", False), ("0;default;7", True), ("12;8", False)])
def test_colorfgbg_answers_without_a_query(terminal: tuple[int, int], value: str, light: bool) -> None:
    environ: Mapping[str, str] = {"COLORFGBG": value}
    with background_query(terminal[1], terminal[1], environ) as has_light_background:
        assert has_light_background() is light
    os.set_blocking(terminal[0], False)
    with pytest.raises(BlockingIOError):
        os.read(terminal[0], 1)


def test_a_late_answer_is_not_left_for_the_screen(terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen would take its question mark for a key, and open the help."""
    monkeypatch.setattr(terminal_background, "LOCAL_SECONDS", 0.0)
    master, slave = terminal
    thread = answering(master, b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\" + ATTRIBUTES)
    with background_query(slave, slave, {}) as has_light_background:
        thread.join(30)
        assert has_light_background() is True
    assert select.select([slave], [], [], 0)[0] == []


@pytest.mark.parametrize("cut", [1, 2, 9, 23, 24, 26, 27, 30])
def test_an_answer_that_has_begun_is_read_to_its_end(
    cut: int, terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal_background, "LOCAL_SECONDS", 0.0)
    master, slave = terminal
    answer = b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\" + ATTRIBUTES
    rest = threading.Timer(0.05, os.write, (master, answer[cut:]))
    with background_query(slave, slave, {}) as has_light_background:
        os.write(master, answer[:cut])
        rest.start()
        assert has_light_background() is True
    rest.join(30)
    assert select.select([slave], [], [], 0)[0] == []
