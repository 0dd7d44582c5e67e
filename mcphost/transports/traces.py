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


@dataclass(frozen=True, slots=True)
class Leftover:
    """A server whose mcphost is gone: its name then, and its process, which leads a group of the same number."""

    server: str
    pid: int

    def __str__(self) -> str:
        return (
            f"the server {self.server} (process {self.pid}) still runs, though the mcphost that started it was killed; "
            f"to end it: kill -- -{self.pid}"
        )


@dataclass(frozen=True, slots=True)
class _Trace:
    server: str
    born: str
    host: int
    host_born: str


@dataclass(frozen=True, slots=True)
class Traces:
    """The traces in one folder, which belongs to us alone. Everything here waits for the disk."""

    folder: Path

    def leave(self, server: str, pid: int) -> None:
        """Write down that this process was just started. What cannot be written is only not found later."""
        born, host_born = _born(pid), _born(os.getpid())
        if born is None or host_born is None:
            return
        text = json.dumps(asdict(_Trace(server, born, os.getpid(), host_born)))
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
            if trace is not None and _born(pid) == trace.born:
                yield Leftover(trace.server, pid)
            else:
                self.remove(pid)

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


def _born(pid: int) -> str | None:
    """When a process started: the system's run, and clock ticks since it began. None when there is no such process."""
    with suppress(OSError, IndexError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # The name in parentheses may hold anything; after it the state is the third field, the start the 22nd.
        state, *fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if state == "Z" else f"{boot} {fields[18]}"
    return None
