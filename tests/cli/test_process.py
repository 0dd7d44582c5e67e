"""`python -m mcphost` as a process: exit codes, streams, signals, and that no server is left whatever ends it."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import mcphost
from tests.cli.conftest import IN_BACKGROUND, echo, entry, mcphost_command, start_program
from tests.cli.conftest import start_fresh as start
from tests.screen_text import says

pytestmark = pytest.mark.slow
SECONDS = 20.0


def run(*words: str) -> tuple[int, str, str]:
    process = start(words)
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (["--version"], 0, "mcphost 0", ""),
        (["check", echo()], 0, "● ready", ""),
        (["list", "tools", echo()], 0, "Says back", ""),
        (["call", echo(), "echo", "text=näh", "--yes"], 0, "näh\n", ""),
        (["call", echo(), "fail", "--yes"], 1, "it did not work\n", ""),
        (["config", "path"], 0, "/config.toml\n", "there is no such file yet"),
        (["config", "check"], 0, "", "no configuration"),
        ([], 2, "", "the screen needs a terminal"),
    ],
)
def test_a_command_answers_on_stdout_and_remarks_on_stderr(words: list[str], code: int, out: str, err: str) -> None:
    ended = run(*words)
    assert ended[0] == code, ended
    assert ended[1].startswith(out) or out in ended[1]
    assert err in ended[2]
    assert bool(ended[2]) == bool(err)


LOCALES = [
    {"LANG": "C"},
    {"LC_ALL": "C"},
    {"LC_ALL": "no such locale"},
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
]


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (["check", echo()], 0, "● ready", ""),
        (["call", echo(), "echo", r'text:="n\u00e4h"', "--yes"], 0, "näh\n", ""),
        (["call", echo(), "näh"], 2, "", "has no tool"),
    ],
    ids=["mark", "letter", "argument"],
)
def test_marks_and_foreign_letters_are_printed_in_any_locale(
    locale: dict[str, str], words: list[str], code: int, out: str, err: str
) -> None:
    # An editable installation in a folder of foreign letters is not found where Python reads its path as ASCII.
    here = {"PYTHONPATH": str(Path(mcphost.__file__).parents[1])}
    env = {name: value for name, value in os.environ.items() if name != "LANG"} | here | locale
    process = start(words, env=env)
    shown, said = process.communicate(timeout=SECONDS)
    assert process.returncode == code
    assert out in shown.decode()
    assert err in said.decode()
    assert bool(err) == bool(said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only where there is a disk that is always full")
def test_an_answer_that_cannot_be_written_is_said() -> None:
    with open("/dev/full", "wb") as full:
        process = start(["list", "tools", echo()], stdout=full)
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert err == b"mcphost: the answer could not be written to stdout: No space left on device\n"


def test_an_answer_to_a_closed_stdout_is_a_mistake() -> None:
    command = ["sh", "-c", '"$@" >&-', "sh", *mcphost_command("list", "tools", echo())]
    done = subprocess.run(command, capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (2, b"mcphost: the answer could not be written to stdout: it is closed\n")


def test_what_is_said_to_a_closed_stderr_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "mcphost.toml").write_text(entry("here"))
    command = ["sh", "-c", '"$@" 2>&-', "sh", *mcphost_command("config", "trust", "--yes")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stdout) == (0, b"")


class Witness:
    """A pipe that a server holds open by its --record option: what it received, and by EOF that it is dead."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self.seen = b""
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def wait_for(self, words: bytes) -> None:
        while words not in self.seen:
            assert self._read(), f"the server ended before it received {words!r}"

    def wait_for_death(self) -> None:
        while self._read():
            pass

    def close(self) -> None:
        os.close(self._reader)

    def _read(self) -> bytes:
        """More bytes; none once every holder has closed the pipe."""
        assert select.select([self._reader], [], [], SECONDS)[0], "the server still runs, or never did"
        data = os.read(self._reader, 65536)
        self.seen += data
        return data


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Witness]:
    witness = Witness(tmp_path / "witness")
    yield witness
    witness.close()


def sleeping_call(
    witness: Witness, *options: str, grace: float = 0.2, seconds: float = 60, prefix: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """mcphost in the middle of a call."""
    config = witness.path.with_suffix(".toml")
    config.write_text(
        entry("echo", "--record", witness.path, *options, more=f"limits = {{ exit_grace_sec = {grace} }}")
    )
    words = ["call", "echo", "sleep", f"seconds={seconds:g}", "--yes", "--config", str(config)]
    process = start_program([*prefix, *mcphost_command(*words)])
    witness.wait_for(b"tools/call")
    return process


@pytest.mark.hostile("S05")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only where /proc tells when a process started")
def test_what_a_killed_mcphost_left_running_is_named_by_the_next(witness: Witness, isolated: Path) -> None:
    """A server that honours neither the end of its stdin nor anything else."""
    process = sleeping_call(witness, "--ignore-eof")
    process.kill()
    process.communicate(timeout=SECONDS)
    (trace,) = isolated.rglob("running/*")
    try:
        code, out, err = run("call", echo(), "echo", "text=x", "--yes")
    finally:
        os.killpg(int(trace.name), signal.SIGKILL)
    assert (code, out) == (0, "x\n")
    assert f"the server echo (process {trace.name}) still runs" in err
    witness.wait_for_death()


@pytest.mark.parametrize(
    ("number", "options", "code"),
    [
        (signal.SIGINT, (), 130),
        (signal.SIGTERM, (), 143),
        (signal.SIGHUP, (), 129),
        (signal.SIGTERM, ("--ignore-eof",), 143),
        (signal.SIGKILL, (), -9),
    ],
)
def test_a_signal_in_a_call_ends_mcphost_and_its_server(
    witness: Witness, number: signal.Signals, options: tuple[str, ...], code: int
) -> None:
    process = sleeping_call(witness, *options)
    process.send_signal(number)
    out, err = process.communicate(timeout=SECONDS)
    witness.wait_for_death()
    assert (process.returncode, out, err) == (code, b"", b"")
    if number is not signal.SIGKILL:  # who can still speak says that the answer is no longer wanted
        assert b"notifications/cancelled" in witness.seen


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_call_for_which_a_shell_ignored_interrupts(
    witness: Witness, number: signal.Signals, code: int
) -> None:
    process = sleeping_call(witness, prefix=IN_BACKGROUND)
    process.send_signal(number)
    assert process.communicate(timeout=SECONDS) == (b"", b"")
    assert process.returncode == code
    witness.wait_for_death()


def test_a_hangup_that_nohup_ignored_ends_nothing(witness: Witness) -> None:
    process = sleeping_call(witness, seconds=0.5, prefix=IN_BACKGROUND)
    process.send_signal(signal.SIGHUP)
    assert process.communicate(timeout=SECONDS) == (b"done\n", b"")
    assert process.returncode == 0


@pytest.mark.parametrize("audit", ["on", "required"])
def test_kill_9_loses_no_record_of_a_call_that_was_sent(isolated: Path, tmp_path: Path, audit: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(entry("echo", "--kill-client", more=f'[policy]\naudit = "{audit}"'))
    for sent in range(1, 6):
        process = start(["call", "echo", "echo", f"text={sent}", "--yes", "--config", str(config)])
        process.communicate(timeout=SECONDS)
        assert process.returncode == -signal.SIGKILL
        (log,) = isolated.rglob("audit.jsonl")
        records = [json.loads(line) for line in log.read_text().splitlines()]
        assert [record["arguments"] for record in records] == [{"text": str(n)} for n in range(1, sent + 1)]


def test_a_second_signal_does_not_wait_for_servers(witness: Witness) -> None:
    process = sleeping_call(witness, "--ignore-eof", "--ignore-sigterm", grace=30)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGHUP)  # at once: the same event reported twice, not an impatient user
    witness.wait_for(b"EOF")
    with process:
        for _ in range(20):
            try:
                process.wait(0.2)
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    witness.wait_for_death()


def test_a_crash_ends_the_servers_and_shows_no_values(witness: Witness) -> None:
    program = (
        "import sys, mcphost.cli.commands.call as calling\n"
        "calling.result_text = lambda result: {}['hunter2']\n"
        "from mcphost.cli import main\n"
        "sys.exit(main())"
    )
    words = ["call", echo("--record", witness.path), "echo", "text=x", "--yes"]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=SECONDS)
    witness.wait_for_death()
    assert (done.returncode, done.stdout) == (70, "")
    assert done.stderr.count("\n") == 2
    assert "KeyError at mcphost/cli/commands/call.py:" in done.stderr
    assert "hunter2" not in done.stderr


def test_threads_and_exit_functions_end_before_the_process_does() -> None:
    program = (
        "import atexit, sys, threading\n"
        "atexit.register(print, 'exit function')\n"
        "threading.Thread(target=lambda: (threading.main_thread().join(), print('thread'))).start()\n"
        "from mcphost.cli import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "unheard-of"], capture_output=True, text=True, timeout=SECONDS
    )
    assert (done.returncode, done.stdout) == (2, "thread\nexit function\n")


def test_a_reader_that_leaves_is_no_error(witness: Witness) -> None:
    with start(["call", echo("--record", witness.path), "big", "bytes=3000000", "--yes"]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10) == b"x" * 10
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
    witness.wait_for_death()


@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_a_long_answer_goes_whole_into_a_nonblocking_pipe(monkeypatch: pytest.MonkeyPatch, unbuffered: str) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with (
        start(["call", echo(), "big", "bytes=1000000", "--yes"], stdout=writer) as process,
        open(reader, "rb") as out,
    ):
        os.close(writer)
        assert out.read() == b"x" * 1_000_000 + b"\n"
        assert process.stderr is not None
        assert process.stderr.read() == b""


class Terminal:
    """mcphost on a terminal of its own, with its answer on a pipe unless it is a screen."""

    def __init__(self, *words: str, prefix: Sequence[str] = (), **more: Any) -> None:
        self._master, slave = pty.openpty()
        if "stdout" in more:
            more["stdout"] = slave
        self.process = start_program([*prefix, *mcphost_command(*words)], stdin=slave, stderr=slave, **more)
        os.close(slave)
        self.seen = ""

    def wait_for(self, words: str) -> None:
        end = time.monotonic() + SECONDS
        while words not in self.seen:
            assert select.select([self._master], [], [], max(0.0, end - time.monotonic()))[0], self.seen
            self.seen += os.read(self._master, 65536).decode("utf-8", "replace")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> tuple[int, str]:
        out, _ = self.process.communicate(timeout=SECONDS)
        os.close(self._master)
        return self.process.returncode, (out or b"").decode()


@pytest.mark.hostile("P08", "T01")
@pytest.mark.parametrize(
    ("typed", "code", "out"),
    [
        ("y\n", 0, "{text}\n"),
        ("yes\n", 0, "{text}\n"),
        ("\n", 4, ""),
        ("n\n", 4, ""),
        ("\x04", 4, ""),
    ],
)
def test_on_a_terminal_a_call_is_asked_about_with_all_its_arguments(typed: str, code: int, out: str) -> None:
    """Text behind blanks or escapes is seen before the question."""
    text = f"harmless{' ' * 5000}\x1b[8mrm -rf /\u202e"
    terminal = Terminal("call", echo(), "echo", f"text={text}")
    terminal.wait_for("[y/N] ")
    assert r"harmless␣×5000\u001b[8mrm -rf /⟨U+202E⟩" in terminal.seen
    assert says(terminal.seen, "echo.py")
    terminal.type(typed)
    assert terminal.end() == (code, out.format(text=text))


def test_a_signal_while_asking_ends_it() -> None:
    terminal = Terminal("call", echo(), "echo", "text=x")
    terminal.wait_for("[y/N] ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == (130, "")


def test_an_interrupted_call_may_have_worked(witness: Witness) -> None:
    terminal = Terminal("call", echo("--record", witness.path), "sleep", "seconds=60", "--yes")
    witness.wait_for(b"tools/call")
    terminal.process.send_signal(signal.SIGINT)
    terminal.wait_for("sleep may have done part of")
    assert terminal.end() == (130, "")


def test_an_interrupt_ends_a_question_that_has_no_event_loop(tmp_path: Path) -> None:
    (tmp_path / "mcphost.toml").write_text(entry("here"))
    terminal = Terminal("config", "trust", cwd=tmp_path, prefix=IN_BACKGROUND)
    terminal.wait_for("[y/N] ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == (130, "")


@pytest.mark.hostile("P09")
def test_what_was_typed_before_the_question_is_no_answer() -> None:
    terminal = Terminal("call", echo("--delay", 0.3), "echo", "text=x")
    terminal.type("y\n")
    terminal.wait_for("[y/N] ")
    terminal.type("\n")
    assert terminal.end() == (4, "")


@pytest.mark.hostile("C01", "P09")
def test_what_was_typed_before_the_question_trusts_no_project(tmp_path: Path) -> None:
    (tmp_path / "mcphost.toml").write_text(entry("here"))
    terminal = Terminal("config", "trust", cwd=tmp_path)
    terminal.type("y\n")
    terminal.wait_for("[y/N] ")
    terminal.type("\n")
    assert terminal.end() == (4, "")


def test_progress_is_one_line_on_the_terminal_and_is_taken_away(tmp_path: Path) -> None:
    terminal = Terminal("call", echo(), "progress", "steps=3", "interval=0.15", "--yes")
    terminal.wait_for("\r\x1b[K")
    assert "progress  1/3 33% step 1" in terminal.seen
    assert "\n" not in terminal.seen
    assert terminal.end() == (0, "done\n")


@pytest.mark.hostile("P03")
def test_an_answer_at_the_terminal_is_remembered(tmp_path: Path, isolated: Path) -> None:
    """The next change of the tool is compared with this."""
    config = tmp_path / "own.toml"
    config.write_text(entry("echo"))
    terminal = Terminal("--config", str(config), "call", "echo", "echo", "text=x")
    terminal.wait_for("[y/N] ")
    terminal.type("y\n")
    assert terminal.end() == (0, "x\n")
    (approvals,) = isolated.rglob("approvals.toml")
    assert 'lifetime = "once"' in approvals.read_text()
    (audit,) = isolated.rglob("audit.jsonl")
    assert [json.loads(line)["event"] for line in audit.read_text().splitlines()] == ["decision", "outcome"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("prefix", [(), IN_BACKGROUND], ids=["foreground", "background"])
def test_a_signal_restores_the_terminal(
    witness: Witness, tmp_path: Path, number: signal.Signals, prefix: Sequence[str]
) -> None:
    config = tmp_path / "own.toml"
    config.write_text(entry("echo", "--record", witness.path))
    terminal = Terminal("--config", str(config), stdout=None, prefix=prefix)
    terminal.wait_for("\x1b[?1049h")
    witness.wait_for(b"tools/list")
    terminal.process.send_signal(number)
    terminal.wait_for("\x1b[?1049l")
    witness.wait_for_death()
    assert terminal.end() == (128 + number, "")
