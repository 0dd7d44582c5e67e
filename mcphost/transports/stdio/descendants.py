"""Finds in /proc what a server started: by parent ids, and by a mark in the environment that children inherit.

A process in a session of its own has left the server's process group, and an orphan has another parent, but both keep
the mark. Without /proc nothing is found.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")

MARK_VARIABLE: Final = "MCPHOST_SERVER_ID"
"""The environment variable that holds a server's mark: a random word for each start."""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """Identifies a process uniquely, since process ids are reused."""

    pid: int
    started: str
    """The boot id, and the start in clock ticks since boot."""


def new_mark() -> str:
    """A fresh mark for a server that is about to start."""
    return secrets.token_hex(16)


def identify(pid: int) -> ProcessId | None:
    """The process that has this id now; None if there is none or it is a zombie."""
    found = _read(pid)
    return None if found is None else found[0]


def identify_outside(group: int, pid: int) -> ProcessId | None:
    """As `identify`, but None for a process of this process group."""
    found = _read(pid)
    return None if found is None or found[1] == group else found[0]


def descendants(pid: int) -> set[int]:
    """The children of a process, their children, and so on; without orphans, which have another parent."""
    found, waiting = set[int](), [pid]
    while waiting:
        fresh = set(_children(waiting.pop())) - found
        found |= fresh
        waiting += fresh
    return found


def marked(mark: str) -> Iterator[int]:
    """The processes that inherited this mark, among those we may read. Reads one small file per process."""
    wanted = f"\0{MARK_VARIABLE}={mark}\0".encode()
    for name in _listed(PROC):
        if name.isascii() and name.isdecimal():
            with suppress(OSError):
                if wanted in b"\0" + (PROC / name / "environ").read_bytes():
                    yield int(name)


def _read(pid: int) -> tuple[ProcessId, int] | None:
    """The process and its process group."""
    with suppress(OSError, IndexError, ValueError):
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        # The name in parentheses may hold anything; after it the state is the third field, the start the 22nd.
        state, *fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if state in "ZX" else (ProcessId(pid, f"{boot} {fields[18]}"), int(fields[1]))
    return None


def _children(pid: int) -> list[int]:
    """The children of all threads; none if the system keeps no such list."""
    tasks, found = PROC / str(pid) / "task", list[int]()
    for task in _listed(tasks):
        with suppress(OSError, ValueError):
            found += map(int, (tasks / task / "children").read_text().split())
    return found


def _listed(folder: Path) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)
    return []
