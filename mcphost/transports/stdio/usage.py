"""Measures the memory and CPU time of a server's processes, from /proc or ``ps``.

It counts every process that carries the server's mark, which psutil does not look for; the rest is two files.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from mcphost.lazy_dataclass import dataclass
from mcphost.posix import system_figure
from mcphost.transports.base import ProcessUsageReport

PS: Final = ("/bin/ps", "-A", "-o", "pgid=", "-o", "rss=", "-o", "time=")
"""One ``-o`` per column: the ``ps`` of BSD and macOS takes all after the first ``=`` as one heading."""
PS_SECONDS: Final = 2.0

_TIME: Final = r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)"
"""``[[days-]hours:]minutes:seconds``"""


@dataclass(frozen=True, slots=True)
class _Part:
    """One process; ``groups`` are its process group and, if known, its session."""

    groups: tuple[int, ...]
    alive: bool
    memory: int
    cpu: float


def usage_of(group: int, proc: Path = Path("/proc")) -> ProcessUsageReport | None:
    """The usage of a process group; None if nothing of it is left or the system does not tell.

    Includes other groups of the same session if the system tells sessions. Reads a file per process: do not call it on
    the event loop.
    """
    mine = [part for part in (_from_proc(proc) if (proc / "self").exists() else _from_ps()) if group in part.groups]
    if not any(part.alive for part in mine):
        return None
    alive = sum(part.alive for part in mine)
    return ProcessUsageReport(alive, sum(part.memory for part in mine), sum(part.cpu for part in mine))


def _from_proc(proc: Path) -> Iterator[_Part]:
    page, ticks = system_figure("SC_PAGE_SIZE"), system_figure("SC_CLK_TCK")
    for name in os.listdir(proc):
        if not (name.isascii() and name.isdecimal()):
            continue
        with suppress(OSError, ValueError, IndexError):  # it ended meanwhile
            # The name in parentheses may hold anything; after it the state is the third field.
            fields = (proc / name / "stat").read_text(errors="replace").rpartition(")")[2].split()
            # Group and session; then utime, stime, cutime and cstime: children that ended count through their parent,
            # as a server that starts a program for each call would otherwise show almost none of its work.
            groups, spent = (int(fields[2]), int(fields[3])), sum(map(int, fields[11:15]))
            yield _Part(groups, fields[0] not in "ZX", int(fields[21]) * page, spent / ticks)


def _from_ps() -> Iterable[_Part]:
    try:
        output = subprocess.run(PS, capture_output=True, timeout=PS_SECONDS, env={"LC_ALL": "C"}, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return
    for line in output.decode("ascii", "replace").splitlines():
        with suppress(ValueError):
            group, kilobytes, time = line.split()
            yield _Part((int(group),), True, int(kilobytes) * 1024, _seconds(time))


def _seconds(text: str) -> float:
    found = re.fullmatch(_TIME, text)
    if found is None:
        raise ValueError(text)
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
