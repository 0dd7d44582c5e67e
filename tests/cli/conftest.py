"""The command line as tests use it: in process for what it prints, as a process for how it ends."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcphost.cli import main

IN_BACKGROUND = ("sh", "-c", "trap '' INT QUIT HUP; exec \"$@\"", "sh")
"""Put before a command: it starts as a shell's job in the background does, under nohup."""

ECHO = Path(__file__).parents[1] / "servers" / "echo.py"


@dataclass(frozen=True)
class Said:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str


Mcphost = Callable[..., Said]


@pytest.fixture
def mcphost(capsys: pytest.CaptureFixture[str]) -> Mcphost:
    """`mcphost("call", …)`: run a command in this process."""

    def run(*words: str) -> Said:
        capsys.readouterr()
        code = main(words)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run


def echo(*options: object) -> str:
    """The SERVER argument for the scripted server."""
    return f"stdio:{shlex.join([sys.executable, '-S', '-E', str(ECHO), *map(str, options)])}"


def hostile(mode: str) -> str:
    """The SERVER argument for a server that breaks a rule."""
    return f"stdio:{shlex.join([sys.executable, '-S', '-E', str(ECHO.with_name('hostile.py')), *mode.split()])}"


def entry(name: str, *options: object, more: str = "", program: Path = ECHO) -> str:
    """The scripted server as an entry of a configuration file."""
    args = ", ".join(f'"{word}"' for word in ("-S", "-E", str(program), *map(str, options)))
    return f'[servers.{name}]\ncommand = "{sys.executable}"\nargs = [{args}]\n{more}\n'


def start(words: Sequence[str], **more: object) -> subprocess.Popen[bytes]:
    """`python -m mcphost …` as a process with pipes, without a terminal."""
    return start_program(mcphost_command(*words), **more)


def mcphost_command(*words: str) -> list[str]:
    return [sys.executable, "-m", "mcphost", *words]


def start_program(words: Sequence[str], **more: object) -> subprocess.Popen[bytes]:
    """A process with pipes, without a terminal."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    process: subprocess.Popen[bytes] = subprocess.Popen(words, **pipes)  # type: ignore[call-overload]
    _started.append(process)
    return process


_started: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def no_program_left() -> Iterator[None]:
    """What a failed test started is ended."""
    yield
    while _started:
        with _started.pop() as process:
            if process.poll() is None:
                process.kill()
