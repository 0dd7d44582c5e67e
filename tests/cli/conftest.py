"""The command line as tests use it: in process for what it prints, as a process for how it ends."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcphost.cli import main
from mcphost.config import KEYRING_SERVICE
from tests.auth.keychains import Shelf
from tests.cli.adding_program import add as add_servers
from tests.warm_start import Fork, may_fork

IN_BACKGROUND = ("sh", "-c", "trap '' INT QUIT HUP; exec \"$@\"", "sh")
"""Put before a command: it starts as a shell's job in the background does, under nohup."""

GITHUB = {"command": "npx", "args": ["-y", "server", "--api-key", "s3cret-arg"], "env": {"TOKEN": "s3cret-env"}}
"""A found server with two secrets."""

ECHO = Path(__file__).parents[1] / "servers" / "echo.py"


@dataclass(frozen=True)
class Said:
    """The output of a command and its exit code."""

    code: int
    out: str
    err: str


Mcphost = Callable[..., Said]
Add = Callable[..., Said]


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


def start(words: Sequence[str], **more: Any) -> subprocess.Popen[bytes]:
    """`python -m mcphost …` as a process with pipes, without a terminal: a fork, where there is one."""
    command = mcphost_command(*words)
    fork = may_fork(command, more.get("env") or os.environ)
    return start_program(command, Fork if fork else subprocess.Popen, **more)


def start_fresh(words: Sequence[str], **more: Any) -> subprocess.Popen[bytes]:
    """The same, for what is about the process itself."""
    return start_program(mcphost_command(*words), **more)


def mcphost_command(*words: str) -> list[str]:
    return [sys.executable, "-m", "mcphost", *words]


def start_program(
    words: Sequence[str], kind: type[subprocess.Popen[bytes]] = subprocess.Popen, **more: Any
) -> subprocess.Popen[bytes]:
    """A process with pipes, without a terminal."""
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    process = kind(words, **pipes)
    _started.append(process)
    return process


_started: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def no_program_left() -> Iterator[None]:
    """End programs that a failed test started."""
    yield
    while _started:
        with _started.pop() as process:
            if process.poll() is None:
                process.kill()


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """The keychain of this test."""
    made = Shelf()
    monkeypatch.delenv("MCPHOST_KEYCHAIN")
    monkeypatch.setattr("mcphost.auth.storage.keychain.best_backend", lambda: made)
    return made


@pytest.fixture
def add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Add:
    """`add({"github": {…}}, "--yes")`: add these servers of another program's file."""

    def run(servers: dict[str, Any], *words: str) -> Said:
        (tmp_path / "there.json").write_text(json.dumps(servers, indent=1))
        capsys.readouterr()
        code = add_servers(tmp_path / "there.json", words)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run


@pytest.fixture
def servers_toml(isolated: Path) -> Path:
    return isolated / "config" / "mcphost" / "servers.toml"


def items(shelf: Shelf) -> dict[str, str]:
    return {name.removeprefix(f"{KEYRING_SERVICE} "): secret for name, secret in shelf.items.items()}
