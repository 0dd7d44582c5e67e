"""Finds in /proc what a server started: by parent ids, and by a mark in the environment that children inherit.

A process in a session of its own has left the server's process group, and an orphan has another parent, but both keep
the mark. Without /proc nothing is found.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from mcphost.lazy_dataclass import dataclass

PROC: Final = Path("/proc")

MARK_VARIABLE: Final = "MCPHOST_SERVER_ID"
"""The environment variable that holds a server's mark: a random word for each start."""

EXEC_SECONDS: Final = 2.0
"""Seconds to wait, in all, for processes that are executing a new program."""

EMPTY_READINGS: Final = 3
"""Readings, a millisecond apart, that must find an environment empty: a new program has none for a moment."""

KERNEL_THREAD: Final = 0x0020_0000
"""The flag of a process that never has an environment."""


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
    """The process that has this id now; None if it does not exist or is a zombie."""
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
    """The processes that inherited this mark, among those we may read.

    Blocks: it reads one small file per process, and waits for processes that are executing a new program.
    """
    wanted, end = f"\0{MARK_VARIABLE}={mark}\0".encode(), time.monotonic() + EXEC_SECONDS
    for name in _listed(PROC):
        if name.isascii() and name.isdecimal():
            with suppress(OSError):
                if wanted in b"\0" + _environment(PROC / name, end):
                    yield int(name)


def _environment(process: Path, end: float) -> bytes:
    # While a process changes from one program to the next, its environment reads as empty, or breaks off within;
    # without a wait it would be overlooked.
    empty = 0
    while True:
        found, size = (process / "environ").read_bytes(), _environment_size(process)
        if size is None or time.monotonic() >= end:
            return found
        empty = 0 if size else empty + 1
        if len(found) >= size and (size or empty == EMPTY_READINGS):
            return found
        time.sleep(0.001)


def _environment_size(process: Path) -> int | None:
    """The bytes of its environment, `sys.maxsize` while it has none yet; None for a process that never has one."""
    with suppress(OSError, IndexError, ValueError):
        state, *fields = _stat(process)
        flags, start, end = (int(fields[number]) for number in (5, 46, 47))
        if state not in "ZX" and not flags & KERNEL_THREAD:
            return end - start if end else sys.maxsize
    return None


def _read(pid: int) -> tuple[ProcessId, int] | None:
    with suppress(OSError, IndexError, ValueError):
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        state, *fields = _stat(PROC / str(pid))
        return None if state in "ZX" else (ProcessId(pid, f"{boot} {fields[18]}"), int(fields[1]))
    return None


def _stat(process: Path) -> list[str]:
    """The state (field 3) and what follows it; the name before it, in parentheses, may hold anything."""
    return (process / "stat").read_text(errors="replace").rpartition(")")[2].split()


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
