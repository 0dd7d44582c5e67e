"""Which server processes run, written down, so that the next mcphost can name what a killed one left behind.

Knows process ids, when processes started, and one small file each. Refuses to end anything: that is for a person to
decide. Where the system does not tell when a process started (there is no /proc), nothing is kept, since a bare
process id may be anybody's by the time it is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from mcphost.transports.stdio.descendants import identify, identify_outside, marked


@dataclass(frozen=True, slots=True)
class Leftover:
    """What runs of a server whose mcphost is gone: ``pid`` leads a process group of the same number, if it is not None.

    ``others`` are programs that the server started outside of that group.
    """

    server: str
    pid: int | None
    others: tuple[int, ...] = ()

    def __str__(self) -> str:
        numbers, several = " ".join(map(str, self.others)), len(self.others) > 1
        started = f"{'programs' if several else 'a program'} it started ({numbers})"
        if self.pid is None:
            what = f"the server {self.server} has ended, but {started} still run{'' if several else 's'}"
            how = numbers
        else:
            also = f", and so do{'' if several else 'es'} {started}" if self.others else ""
            what = f"the server {self.server} (process {self.pid}) still runs{also}"
            how = f"-- -{self.pid} {numbers}".rstrip()
        them = "them" if several or (self.others and self.pid) else "it"
        return f"{what}, though the mcphost that started it was killed; to end {them}: kill {how}"


@dataclass(frozen=True, slots=True)
class _Trace:
    server: str
    born: str
    host: int
    host_born: str
    mark: str = ""
    """The mark of the server's descendants."""


@dataclass(frozen=True, slots=True)
class PidFiles:
    """The traces in one folder, which belongs to us alone. Everything here waits for the disk."""

    folder: Path

    def leave(self, server: str, pid: int, mark: str) -> None:
        """Write down that this process was just started. What cannot be written is only not found later."""
        born, host_born = _born(pid), _born(os.getpid())
        if born is None or host_born is None:
            return
        text = json.dumps(asdict(_Trace(server, born, os.getpid(), host_born, mark)))
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self.remove(pid)
            handle = os.open(self._file(pid), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(text)

    def remove(self, pid: int) -> None:
        """The process ended."""
        with suppress(OSError):
            self._file(pid).unlink()

    def leftovers(self) -> Sequence[Leftover]:
        """Servers that still run though their mcphost does not. Traces of those that ended are removed."""
        return tuple(self._leftovers())

    def _leftovers(self) -> Iterator[Leftover]:
        for pid in self._pids():
            trace = self._read(pid)
            if trace is not None and _born(trace.host) == trace.host_born:
                continue  # another mcphost that runs
            left = None if trace is None else _left_by(trace, pid)
            if left is None:
                self.remove(pid)
            else:
                yield left

    def _pids(self) -> list[int]:
        with suppress(OSError):
            return sorted(int(name) for name in os.listdir(self.folder) if name.isascii() and name.isdecimal())
        return []

    def _read(self, pid: int) -> _Trace | None:
        with suppress(OSError, ValueError, TypeError):
            return _Trace(**json.loads(self._file(pid).read_bytes()))
        return None

    def _file(self, pid: int) -> Path:
        return self.folder / str(pid)


def _left_by(trace: _Trace, pid: int) -> Leftover | None:
    """What still runs of the server that was process ``pid``."""
    leads = _born(pid) == trace.born
    found = marked(trace.mark) if trace.mark else ()
    others = tuple(sorted(each for each in found if not leads or identify_outside(pid, each)))
    return Leftover(trace.server, pid if leads else None, others) if leads or others else None


def _born(pid: int) -> str | None:
    """When a process started; None when there is no such process."""
    process = identify(pid)
    return None if process is None else process.started
