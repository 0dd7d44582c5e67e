"""The terminal itself: its signals, its size, its modes, one that takes no output, and threads that fail."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from mcphost.posix import wakeup_pipe
from mcphost.tui.textual_private.driver import QUEUED_WRITES, TerminalWriter
from tests.cli.conftest import entry
from tests.terminal import Terminal, mcphost
from tests.whole.app import children

pytestmark = pytest.mark.slow
SHOWN = ("Ships in sight", "▸ ∑ all servers", "^p find")
"""Words at the top, at the left and in the last line of the demo."""

KITTY_ON, KITTY_OFF = b"\x1b[>25u", b"\x1b[<u"


def stopped(terminal: Terminal) -> None:
    """Read until the program is stopped."""
    terminal.wait_until(lambda _: os.waitpid(terminal.process.pid, os.WUNTRACED | os.WNOHANG)[0] != 0, "the stop")


def leave(terminal: Terminal) -> None:
    terminal.press("ctrl+q")
    assert terminal.wait_exit() == 0
    assert terminal.is_cooked
    modes_are_off(terminal)


def modes_are_off(terminal: Terminal) -> None:
    """Wait until each mode was switched off as often as on, or later: a program has written it before it is read."""
    with suppress(AssertionError):
        terminal.wait_until(lambda _: not wrong_modes(bytes(terminal.raw)), "the modes of a shell")
    assert wrong_modes(bytes(terminal.raw)) == []


def wrong_modes(raw: bytes) -> list[str]:
    """Return the modes that were left on, or off."""
    wrong = [] if raw.count(KITTY_ON) == raw.count(KITTY_OFF) else ["kitty's keys"]
    cooked = {b"7", b"25"}  # line wrap and the cursor
    for mode in cooked | set(re.findall(rb"\x1b\[\?(\d+)h", raw)):
        on, off = raw.rfind(b"\x1b[?%bh" % mode), raw.rfind(b"\x1b[?%bl" % mode)
        wrong += [f"mode {mode.decode()}"] * (off < 0 or (on > off) is not (mode in cooked))
    return wrong


@pytest.mark.parametrize("signals", [(signal.SIGSTOP, signal.SIGCONT), (signal.SIGCONT, signal.SIGCONT)])
def test_sigcont_without_a_suspension_only_draws_again(signals: tuple[signal.Signals]) -> None:
    with mcphost("demo") as terminal:
        terminal.wait_for(*SHOWN)
        terminal.blank()
        for number in signals:
            terminal.process.send_signal(number)
        terminal.wait_for(*SHOWN)
        leave(terminal)
        assert terminal.raw.count(KITTY_ON) == 1


def test_a_suspended_screen_restores_the_terminal_and_itself() -> None:
    with mcphost("demo") as terminal:
        terminal.wait_for(*SHOWN)
        for number in range(1, 3):
            terminal.process.send_signal(signal.SIGTSTP)
            terminal.process.send_signal(signal.SIGTSTP)
            stopped(terminal)
            terminal.blank()
            assert terminal.is_cooked
            modes_are_off(terminal)
            assert terminal.raw.count(KITTY_OFF) == number
            terminal.process.send_signal(signal.SIGCONT)
            terminal.wait_for(*SHOWN)
        leave(terminal)


def test_a_suspension_that_is_over_at_once_does_not_stop_the_program() -> None:
    with mcphost("demo") as terminal:
        terminal.wait_for(*SHOWN)
        terminal.process.send_signal(signal.SIGTSTP)
        terminal.process.send_signal(signal.SIGCONT)
        while terminal.process.poll() is None:  # a key that comes while it is suspended is not the program's
            terminal.press("ctrl+q")
            terminal.rest(0.5)
        assert terminal.wait_exit() == 0
        assert terminal.is_cooked
        modes_are_off(terminal)


def test_a_suspended_program_ends_when_it_is_asked_to() -> None:
    with mcphost("demo") as terminal:
        terminal.wait_for(*SHOWN)
        terminal.process.send_signal(signal.SIGTSTP)
        stopped(terminal)
        terminal.process.send_signal(signal.SIGTERM)
        terminal.process.send_signal(signal.SIGCONT)
        assert terminal.wait_exit() == 143
        modes_are_off(terminal)


def test_the_title_is_kept_and_comes_back_at_each_departure() -> None:
    push, pop, asks = b"\x1b[22;0t", b"\x1b[23;0t", "\x1b]0;? 1 · mcphost\x1b\\".encode()
    with mcphost("demo") as terminal:
        terminal.wait_for(*SHOWN)
        assert push not in terminal.raw
        terminal.press("\x1b[O", "t", "down", "enter")  # the focus leaves, and a tool without arguments asks
        terminal.wait_for("allow once")
        terminal.wait_until(lambda _: push + asks in terminal.raw, "the title")
        terminal.process.send_signal(signal.SIGTSTP)
        stopped(terminal)
        terminal.wait_until(lambda _: b"\x1b[?1049l" in terminal.raw, "the terminal's own screen")
        assert terminal.raw.count(pop) == 1
        assert terminal.raw.rindex(pop) < terminal.raw.rindex(b"\x1b[?1049l")
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_until(lambda _: terminal.raw.count(push + asks) == 2, "the title")
        terminal.press("\x1b[I")
        terminal.wait_until(lambda _: terminal.raw.count(pop) == 2, "the title from before")
        terminal.press("\x1b[O")
        terminal.wait_until(lambda _: terminal.raw.count(push) == 3, "the title")
        leave(terminal)
        assert terminal.raw.count(pop) == 3


@pytest.mark.parametrize("begins_in_background", [False, True])
def test_a_screen_sleeps_in_the_background_and_comes_back_with_fg(begins_in_background: bool) -> None:
    with Terminal(["sh", "-i"], env={"PS1": "ready> ", "ENV": ""}) as terminal:
        terminal.wait_for("ready>")
        terminal.press(f"{shlex.quote(sys.executable)} -m mcphost demo {'&' * begins_in_background}\r")
        if not begins_in_background:
            terminal.wait_for(*SHOWN)
            (job,) = children(terminal.process.pid)
            os.kill(job, signal.SIGTSTP)
            terminal.wait_for("ready>")
            terminal.press("bg; echo went on\r")
            terminal.wait_until(lambda text: text.count("went on") == 2, "the end of bg")
        terminal.press_until(["jobs\r"], "Stopped", again=["ready>"])
        terminal.blank()
        terminal.press("fg\r")
        terminal.wait_for(*SHOWN)
        terminal.blank()
        terminal.press("ctrl+q")
        terminal.wait_for("ready>")
        terminal.press("exit\r")
        assert terminal.wait_exit() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_terminal_that_takes_no_output_does_not_hold_up_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    config = tmp_path / "own.toml"
    config.write_text(entry("echo", "--tools", 100))
    with mcphost("--config", str(config)) as terminal:
        terminal.wait_for("1 ready", "tool-0031")
        (server,) = children(terminal.process.pid)
        terminal.freeze()
        terminal.press(*["down", "up"] * 100)
        terminal.process.send_signal(number)
        assert terminal.process.wait(20) == 128 + number
        terminal.wait_until(lambda _: not Path(f"/proc/{server}").exists(), "the end of the server")
        assert terminal.is_cooked


def test_a_terminal_that_takes_no_output_can_be_left() -> None:
    with mcphost("demo") as terminal:
        terminal.wait_for(*SHOWN)
        terminal.freeze()
        terminal.press(*["down", "up"] * 100, "ctrl+q")
        assert terminal.process.wait(20) == 0
        assert terminal.is_cooked


def test_what_a_terminal_missed_is_drawn_once_it_takes_output_again() -> None:
    with mcphost("demo") as terminal:
        terminal.wait_for(*SHOWN)
        terminal.freeze()
        terminal.press(*["down", "up"] * 40, "down", "?")
        terminal.blank()
        terminal.thaw()
        terminal.wait_for("Keys", "^p find")
        terminal.press("escape")
        terminal.wait_for(*SHOWN)
        leave(terminal)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_mode_on_in_a_terminal_that_lives(number: signal.Signals) -> None:
    with mcphost("demo") as terminal:
        terminal.wait_for(*SHOWN)
        terminal.press("\x1b[?2048;2$y")  # as a terminal that reports its size in-band: the mouse is set to pixels
        terminal.wait_until(lambda _: b"\x1b[?1016h" in terminal.raw, "the mouse in pixels")
        terminal.process.send_signal(number)
        assert terminal.wait_exit() == 128 + number
        assert terminal.is_cooked
        modes_are_off(terminal)


@pytest.mark.parametrize("env", [{"COLUMNS": "40", "LINES": "9"}, {"COLUMNS": "200"}])
def test_the_size_is_the_terminals_not_the_environments(env: dict[str, str]) -> None:
    with mcphost("demo", columns=100, rows=30, env=env) as terminal:
        for columns, rows in ((100, 30), (140, 40)):
            terminal.wait_for(*SHOWN)
            lines = terminal.wait_for("─" * (columns - 30)).splitlines()
            assert (columns, rows) == (max(map(len, lines)), len(lines))
            terminal.resize(140, 40)
        leave(terminal)


@pytest.mark.parametrize("env", [{"PYTHONIOENCODING": "iso-8859-1"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_the_screen_is_always_written_as_utf8(tmp_path: Path, env: dict[str, str]) -> None:
    errors = tmp_path / "errors"
    with Terminal(["sh", "-c", f'"$@" 2>{errors}', "sh", sys.executable, "-m", "mcphost", "demo"], env=env) as terminal:
        terminal.wait_for(*SHOWN)
        leave(terminal)
    assert errors.read_bytes() == b""


def test_a_hundred_changes_of_the_window_draw_nothing() -> None:
    with mcphost("demo") as terminal:
        terminal.wait_for(*SHOWN)
        start = len(terminal.raw)  # at least a whole frame
        terminal.press("\x1b[O\x1b[I" * 100)
        leave(terminal)
        assert len(terminal.raw) - start < start + 3000  # a late frame may come, but not a hundred


def test_a_writer_leaves_what_is_not_taken_and_says_so() -> None:
    reading, writing = wakeup_pipe()
    failed = list[Exception]()
    writer = TerminalWriter(writing, lambda: None, failed.append)
    writer.start()
    writer.write("taken")
    assert os.read(reading, 5) == b"taken"
    writer.write("x" * 1_000_000)
    writer.close()
    assert writer.lost
    writer.join(10)
    assert not writer.is_alive()
    assert failed == []
    os.close(reading)
    os.close(writing)


def test_a_writer_says_once_when_another_frame_can_be_drawn() -> None:
    reading, writing = wakeup_pipe()
    drained, is_drained = list[bool](), threading.Event()

    def note() -> None:
        drained.append(writer.is_behind)
        is_drained.set()

    writer = TerminalWriter(writing, note, list[Exception]().append)
    for _ in range(QUEUED_WRITES + 1):
        writer.write("a frame")
    assert writer.is_behind
    writer.skip()
    writer.skip()
    writer.start()
    assert is_drained.wait(30)
    writer.close()
    assert drained == [False]
    assert os.read(reading, 4096) == b"a frame" * (QUEUED_WRITES + 1)
    os.close(reading)
    os.close(writing)


FAILING = """
import sys, threading
import mcphost.tui.textual_private.driver as driver
from mcphost.cli import main

count = 0

def fails(name, work):
    def failing(*arguments):
        global count
        if threading.current_thread().name == name:
            count += 1
            if {first} < count <= {last}:
                raise ValueError("sk-planted-secret")
        return work(*arguments)
    return failing

driver.Driver.run_input_thread = fails({name!r}, driver.Driver.run_input_thread)
driver.os.write = fails({name!r}, driver.os.write)
sys.exit(main(["demo"]))
"""


@pytest.mark.parametrize(("name", "first"), [("textual-input", 0), ("terminal-output", 20)])
def test_a_failure_of_a_terminal_thread_is_reported_as_any_other(tmp_path: Path, name: str, first: int) -> None:
    program = FAILING.format(name=name, first=first, last=first + 2)
    with Terminal([sys.executable, "-c", program], env={"MCPHOST_STATE_DIR": str(tmp_path)}, columns=200) as terminal:
        terminal.wait_for("mcphost could not show something (ValueError at mcphost/tui/textual_private/driver.py")
        leave(terminal)
        assert b"sk-planted-secret" not in terminal.raw
    crashes = [each.read_text() for each in tmp_path.glob("crashes/*.txt")]
    assert len([each for each in crashes if each.endswith("builtins.ValueError\n")]) == 2


@pytest.mark.parametrize(("name", "first"), [("textual-input", 0), ("terminal-output", 20)])
def test_a_terminal_thread_that_fails_each_time_ends_the_program(tmp_path: Path, name: str, first: int) -> None:
    program = FAILING.format(name=name, first=first, last=10**9)
    with Terminal([sys.executable, "-c", program], env={"MCPHOST_STATE_DIR": str(tmp_path)}, columns=200) as terminal:
        assert terminal.wait_exit() == 70
        assert b"mcphost gives up: ValueError at mcphost/tui/textual_private/driver.py" in terminal.raw
        assert terminal.is_cooked
        modes_are_off(terminal)
    assert [*tmp_path.glob("crashes/*.txt")]
