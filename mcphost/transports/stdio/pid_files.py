"""Pid files: which server processes run, so that the next mcphost can name what a killed one left behind.

Nothing is ended here: that is for the user to decide. Without /proc no file is written, because a bare process id may
be reused before it is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

from mcphost.lazy_dataclass import dataclass
from mcphost.posix import NO_FOLLOW, open_regular
from mcphost.transports.stdio.descendants import identify, identify_outside, marked

MAX_BYTES: Final = 65_536
"""Bytes of a pid file that are read; a whole one has some hundred."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A server that still runs though its mcphost is gone. ``pid``, if not None, leads a process group.

    ``others`` are programs that the server started outside that group. ``str()`` is a sentence for the user.
    """

    server: str
    pid: int | None
    others: tuple[int, ...] = ()

    def __str__(self) -> str:
        them = "them" if len(self.others) > 1 or (self.others and self.pid) else "it"
        return f"{self.text}; to end {them}: {self.end_command}"

    @property
    def text(self) -> str:
        """The processes that still run, in a clause."""
        several = len(self.others) > 1
        started = f"{'programs' if several else 'a program'} it started ({self._numbers})"
        if self.pid is None:
            what = f"the server {self.server} has ended, but {started} still run{'' if several else 's'}"
        else:
            also = f", and so do{'' if several else 'es'} {started}" if self.others else ""
            what = f"the server {self.server} (process {self.pid}) still runs{also}"
        return f"{what}, though the mcphost that started it was killed"

    @property
    def end_command(self) -> str:
        """The command that ends what still runs."""
        return f"kill {self._numbers if self.pid is None else f'-- -{self.pid} {self._numbers}'.rstrip()}"

    @property
    def _numbers(self) -> str:
        return " ".join(map(str, self.others))


@dataclass(frozen=True, slots=True)
class _PidFile:
    server: str
    born: str
    host: int
    host_born: str
    mark: str = ""
    """The mark of the server's descendants."""


@dataclass(frozen=True, slots=True)
class PidFiles:
    """The pid files in one folder, which is mcphost's own. Every method blocks on the disk."""

    folder: Path

    def write(self, server: str, pid: int, mark: str) -> None:
        """Write the file of a process that was just started. Never raises."""
        born, host_born = _born(pid), _born(os.getpid())
        if born is None or host_born is None:
            return
        text = json.dumps(asdict(_PidFile(server, born, os.getpid(), host_born, mark)))
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            if self.folder.is_symlink():  # the files there belong to another program
                return
            self.remove(pid)
            handle = os.open(self._file(pid), os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(text)

    def remove(self, pid: int) -> None:
        """Remove the file of a process that has ended. Never raises."""
        with suppress(OSError):
            self._file(pid).unlink()

    def leftovers(self) -> Sequence[Leftover]:
        """Servers that still run though their mcphost does not. Removes the files of those that ended."""
        return tuple(self._leftovers())

    def _leftovers(self) -> Iterator[Leftover]:
        for pid in self._pids():
            file = self._read(pid)
            if file is not None and _born(file.host) == file.host_born:
                continue  # its mcphost still runs
            left = None if file is None else _left_by(file, pid)
            if left is None:
                self.remove(pid)
            else:
                yield left

    def _pids(self) -> list[int]:
        with suppress(OSError):
            if self.folder.is_symlink():
                return []
            return sorted(int(name) for name in os.listdir(self.folder) if name.isascii() and name.isdecimal())
        return []

    def _read(self, pid: int) -> _PidFile | None:
        try:
            with open(open_regular(self._file(pid), follow_links=False), "rb") as file:
                return _pid_file(json.loads(file.read(MAX_BYTES)))
        except (OSError, ValueError, RecursionError):
            return None

    def _file(self, pid: int) -> Path:
        return self.folder / str(pid)


def _pid_file(value: object) -> _PidFile | None:
    kinds = {"server": str, "born": str, "host": int, "host_born": str, "mark": str}
    given = {"mark": "", **value} if isinstance(value, dict) else {}
    right = given.keys() == kinds.keys() and all(isinstance(given[name], kind) for name, kind in kinds.items())
    return _PidFile(**given) if right else None


def _left_by(file: _PidFile, pid: int) -> Leftover | None:
    """The processes of the server with process id ``pid`` that still run; None if none does."""
    leads = _born(pid) == file.born
    found = marked(file.mark) if file.mark else ()
    others = tuple(sorted(each for each in found if not leads or identify_outside(pid, each)))
    return Leftover(file.server, pid if leads else None, others) if leads or others else None


def _born(pid: int) -> str | None:
    """When a process started; None if there is no such process."""
    process = identify(pid)
    return None if process is None else process.started
