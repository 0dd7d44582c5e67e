"""Facts of the kernel about a process: the parent, the program and the folder. Blocks: use it in a thread."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from mcphost.host.agents.facts import AgentFacts

PS_SECONDS: Final = 5.0
"""Seconds for ``ps`` and ``lsof``, which read a few processes only."""

_INTERPRETERS: Final = ("node", "python", "bun", "deno", "ruby", "java", "electron")
"""Programs that run other programs: the name that those gave their process says more."""

MOST: Final = 4000
"""Characters of a path."""


class ProcessFacts(NamedTuple):
    """A process. Empty texts are not known; all of them are foreign."""

    pid: int | None = None
    program: str = ""
    folder: str = ""
    name: str = ""


def caller_of(pid: int) -> ProcessFacts:
    """The process that started the process ``pid``, as far as it can be known."""
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        return _of_proc(pid) if sys.platform == "linux" else _of_ps(pid)
    return ProcessFacts()


def agent_of(caller: ProcessFacts, given: str) -> AgentFacts:
    """The agent that runs as this process; ``given`` is its name of ``--as``."""
    label = given or caller.name or "unknown"
    return AgentFacts(label, pid=caller.pid, program=caller.program, folder=caller.folder, given=given)


def _of_proc(pid: int) -> ProcessFacts:
    stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    parent = int(stat.rpartition(")")[2].split()[1])  # the name before it may hold anything
    if parent <= 1:  # the agent is gone
        return ProcessFacts()
    program, folder, name = "", "", ""
    with suppress(OSError):
        name = Path(f"/proc/{parent}/comm").read_text("utf-8", "replace").rstrip("\n")
    with suppress(OSError):
        program = os.readlink(f"/proc/{parent}/exe").removesuffix(" (deleted)")
    with suppress(OSError):
        folder = os.readlink(f"/proc/{parent}/cwd")
    return _facts(parent, program, folder, name)


def _of_ps(pid: int) -> ProcessFacts:
    parent = int(_output("ps", "-o", "ppid=", "-p", str(pid)))
    if parent <= 1:
        return ProcessFacts()
    program, folder = _output("ps", "-o", "comm=", "-p", str(parent)).strip(), ""
    with suppress(OSError, subprocess.SubprocessError):
        lines = _output("lsof", "-a", "-p", str(parent), "-d", "cwd", "-Fn").splitlines()
        folder = next((line[1:] for line in lines if line.startswith("n")), "")
    return _facts(parent, program, folder, "")


def _facts(pid: int, program: str, folder: str, name: str) -> ProcessFacts:
    file = os.path.basename(program)
    own = name if name and file.startswith(_INTERPRETERS) else file
    texts = (text[:MOST].encode("utf-8", "replace").decode() for text in (program, folder, own or name))
    return ProcessFacts(pid, *texts)


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, timeout=PS_SECONDS, check=True, stdin=subprocess.DEVNULL)
    return done.stdout.decode("utf-8", "replace")
