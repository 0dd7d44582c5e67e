"""Programs of Python without the seconds that their imports take: forks of an interpreter that has made them.

`Fork` is a `Popen` of `python -m mcphost`. Its process is a child of this one, with the streams, the terminal, the
folder, the environment and the signals of a fresh process, and it ends as one does. Only the command line in ``/proc``
and the set of imported modules are others. Another process takes its place where a variable differs that is read once,
see `may_fork`.

`relayed` is the command line of any other program, for whoever starts it; all workers share its interpreter.
"""

from __future__ import annotations

import atexit
import hashlib
import inspect
import json
import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.warm_interpreter import CLONE, LENGTH

MCPHOST: Final = (sys.executable, "-m", "mcphost")

CAN_FORK: Final = sys.platform == "linux" and platform.machine() in CLONE

READ_AT_THE_START: Final = re.compile(r"PYTHON.*|LANG|LC_.*|LD_.*|TEXTUAL_.*|ESCDELAY|TERM_PROGRAM")
"""Variables that the interpreter, or a module that it imports, reads once."""

WORTH_IT: Final = 3
"""Processes of one set of such variables after which an interpreter is kept for it."""

INTERPRETER: Final = Path(__file__).with_name("warm_interpreter.py")
RELAY: Final = Path(__file__).with_name("warm_relay.py")

IMPORTED: Final = (
    "mcphost.cli.commands.call",
    "mcphost.cli.commands.catalog",
    "mcphost.cli.commands.chat",
    "mcphost.cli.commands.screen",
    "mcphost.cli.commands.servers",
    "mcphost.cli.parser",
    "mcphost.host.host",
    "mcphost.tui.app",
    "mcphost.tui.chat.pane",
    "mcphost.tui.consent.tool_call",
    "mcphost.tui.prompts.pane",
    "mcphost.tui.resources.pane",
    "mcphost.tui.tools.workbench",
    "mcphost.tui.traffic.pane",
)
"""The modules that take most of the time of a start of mcphost."""

_wanted: Counter[frozenset[tuple[str, str]]] = Counter()
_kept: dict[frozenset[tuple[str, str]], socket.socket] = {}


def may_fork(words: Sequence[str], env: Mapping[str, str]) -> bool:
    """True if ``words`` run mcphost, in an environment for which it is worthwhile to keep an interpreter."""
    if tuple(words[:3]) != MCPHOST or not CAN_FORK or env.get("PYTHONUNBUFFERED"):
        return False
    settings = _settings(env)
    _wanted[settings] += 1
    return _wanted[settings] > WORTH_IT


def run(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run mcphost to its end, by a fork if there may be one, without input; what it writes is kept as text."""
    command = [*MCPHOST, *words]
    kind = Fork if may_fork(command, os.environ) else subprocess.Popen
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    with kind(command, **pipes) as process:
        try:
            out, err = process.communicate(timeout=60)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out.decode(), err.decode())


class Fork(subprocess.Popen[bytes]):
    """``terminal``: the path of the controlling terminal, and of its three streams."""

    def __init__(self, words: Sequence[str], *, terminal: str | None = None, **more: Any) -> None:
        self._terminal = terminal
        super().__init__(words, **more)

    def _execute_child(self, *args: Any) -> None:
        """Replaces the part of `Popen` that runs a program, once its pipes are made."""
        given = _PARAMETERS.bind(self, *args).arguments
        pipes = [given[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")]
        mask = os.umask(0o77)
        os.umask(mask)
        env = dict(os.environ if given["env"] is None else given["env"])
        order = {
            "words": [os.fspath(word) for word in given["args"]],
            "env": env,
            "folder": os.fspath(given["cwd"] or os.getcwd()),
            "mask": mask,
            "session": given["start_new_session"],
            "terminal": self._terminal,
        }
        streams = [pipe if pipe >= 0 else number for number, pipe in enumerate((pipes[0], pipes[3], pipes[5]))]
        self.pid = _fork(_settings(env), json.dumps(order).encode(), streams)
        self._child_created = True
        own: Any = self
        own._close_pipe_fds(*pipes)


_PARAMETERS: Final = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]


def _settings(env: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in env.items() if READ_AT_THE_START.fullmatch(name))


def _fork(settings: frozenset[tuple[str, str]], order: bytes, streams: Sequence[int]) -> int:
    """Return the process of a new child."""
    if settings not in _kept:
        _kept[settings] = _start(settings)
    interpreter = _kept[settings]
    socket.send_fds(interpreter, [LENGTH.pack(len(order))], streams)
    interpreter.sendall(order)
    answer = interpreter.recv(LENGTH.size, socket.MSG_WAITALL)
    assert len(answer) == LENGTH.size, "the warm interpreter has ended"
    return int(LENGTH.unpack(answer)[0])


def _start(settings: frozenset[tuple[str, str]]) -> socket.socket:
    ours, theirs = socket.socketpair()
    env = {name: value for name, value in os.environ.items() if not READ_AT_THE_START.fullmatch(name)}
    process = subprocess.Popen(
        [sys.executable, str(INTERPRETER), str(theirs.fileno()), *IMPORTED],
        env=env | dict(settings),
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd="/",
    )
    theirs.close()
    atexit.register(_end, ours, process)
    return ours


def _end(interpreter: socket.socket, process: subprocess.Popen[bytes]) -> None:
    interpreter.close()
    process.wait()


def relayed(python: str, modules: Sequence[str], *words: str) -> list[str]:
    """The command line of `python WORDS…`, a script or ``-m MODULE``, where ``modules`` are imported already."""
    if not CAN_FORK:
        return [python, *words]
    return [sys.executable, "-S", "-E", str(RELAY), shared_interpreter(python, modules), *words]


@cache
def shared_interpreter(python: str, modules: Sequence[str]) -> str:
    """The name of an interpreter that lives until the last worker has ended."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    name = f"mcphost-tests-{run}-{hashlib.sha256(repr((python, modules)).encode()).hexdigest()[:16]}"
    connection = socket.socket(socket.AF_UNIX)
    process: subprocess.Popen[bytes] | None = None
    while True:
        try:
            connection.connect(f"\0{name}")
        except ConnectionRefusedError:  # it has not been started, or does not listen yet
            assert process is None or not process.poll(), f"the warm interpreter {python} has ended"
            process = process or _start_shared(python, name, modules)
            time.sleep(0.01)
        else:
            atexit.register(_leave, connection, process)
            return name


def _start_shared(python: str, name: str, modules: Sequence[str]) -> subprocess.Popen[bytes]:
    env = {name: value for name, value in os.environ.items() if not READ_AT_THE_START.fullmatch(name)}
    env |= {"LANG": "C.UTF-8"}
    return subprocess.Popen(
        [python, str(INTERPRETER), name, *modules],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _leave(connection: socket.socket, process: subprocess.Popen[bytes] | None) -> None:
    """Let the interpreter end, unless another worker uses it."""
    connection.close()
    if process is not None:
        process.poll()
