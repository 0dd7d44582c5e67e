"""Signals while the event loop hears nothing."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import start_program
from tests.terminal import Terminal, mcphost
from tests.whole.app import children

pytestmark = pytest.mark.slow

BLOCKED = """
import sys, threading
import mcphost.cli.run as run
import mcphost.tui.app
from mcphost.cli import main

run.SHUTDOWN_SECONDS = {seconds}

def action_keys(self):
    self._driver.write("everything is blocked")
    threading.Event().wait()

mcphost.tui.app.McphostApp.action_keys = action_keys
sys.exit(main(["demo"]))
"""


@pytest.mark.parametrize(
    ("number", "seconds", "signals"),
    [
        (signal.SIGTERM, 0.5, 1),
        (signal.SIGINT, 0.5, 1),
        (signal.SIGHUP, 0.5, 1),  # a terminal that closes may send it twice, so that a second one ends nothing
        (signal.SIGQUIT, 0.5, 1),
        (signal.SIGTERM, 600, 5),
        (signal.SIGINT, 600, 5),
    ],
)
def test_a_blocked_event_loop_does_not_hold_up_the_end(number: signal.Signals, seconds: float, signals: int) -> None:
    with Terminal([sys.executable, "-c", BLOCKED.format(seconds=seconds)]) as terminal:
        terminal.wait_for("Ships in sight")
        (server,) = children(terminal.process.pid)
        terminal.press_until(["?"], "everything is blocked")
        for _ in range(signals):
            terminal.process.send_signal(number)
            terminal.rest(0.2 if signals > 1 else 0)
        assert terminal.wait_exit() == 128 + number
        terminal.wait_until(lambda _: not Path(f"/proc/{server}").exists(), "the end of the server")
        assert terminal.is_cooked
        assert terminal.raw.rindex(b"\x1b[?1049l") > terminal.raw.rindex(b"\x1b[?1049h")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_during_the_query_restores_the_terminal(number: signal.Signals) -> None:
    with mcphost("demo", env={"COLORFGBG": ""}) as terminal:
        terminal.wait_until(lambda _: b"\x1b]11;?" in terminal.raw, "the question")
        terminal.process.send_signal(number)
        assert terminal.wait_exit() == 128 + number
        assert terminal.is_cooked


def state(process: int) -> str:
    """Return the letter of its state in Linux; empty once it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def test_a_stopped_program_ends_on_request() -> None:
    with Terminal(["sh", "-i"], env={"PS1": "ready> ", "ENV": "", "COLORFGBG": ""}) as terminal:
        terminal.wait_for("ready>")
        terminal.press(f"{shlex.quote(sys.executable)} -m mcphost demo &\r")
        terminal.wait_until(lambda _: bool(children(terminal.process.pid)), "the start")
        (job,) = children(terminal.process.pid)
        terminal.wait_until(lambda _: state(job) == "T", "the stop")
        for number in (signal.SIGTERM, signal.SIGCONT):  # as the program timeout does
            os.kill(job, number)
        terminal.wait_until(lambda _: state(job) in ("Z", ""), "the end")
        terminal.press("jobs\r")
        terminal.wait_for("Done(143)")


FAILING_THREAD = """
import threading
import mcphost.cli.run as run

def fail():
    raise ValueError("sk-planted-secret")

async def work():
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()

run.run(work())
"""


def test_a_thread_that_fails_leaves_a_crash_file_and_no_value(tmp_path: Path) -> None:
    env = {**os.environ, "MCPHOST_STATE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FAILING_THREAD], env=env, capture_output=True, check=True, timeout=20)
    (crash,) = tmp_path.glob("crashes/*.txt")
    assert crash.read_text().endswith("in fail\nbuiltins.ValueError\n")
    assert (done.stdout, done.stderr) == (b"", b"")


STUBBORN = """
import atexit, sys, threading
import mcphost.cli.run as run

run.SHUTDOWN_SECONDS = run.EXIT_SECONDS = 0.2
atexit.register(threading.Event().wait)

async def work():
    print("begun", flush=True)
    threading.Event().wait()

run.run(work())
"""


def test_an_exit_function_that_never_ends_does_not_hold_up_the_end() -> None:
    process = start_program([sys.executable, "-c", STUBBORN])
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 143


AFTERWARDS = """
import asyncio, signal
import mcphost.cli.run as run

async def work():
    return 1

before = signal.getsignal(signal.SIGTERM)
for _ in range(2):
    assert run.run(work()) == 1
    assert signal.getsignal(signal.SIGTERM) is before
    assert signal.set_wakeup_fd(-1) == -1
"""


def test_what_handled_signals_before_handles_them_afterwards() -> None:
    subprocess.run([sys.executable, "-c", AFTERWARDS], check=True, timeout=20)
