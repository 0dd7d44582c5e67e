"""Tells when files are written, replaced, created or removed, without looking at them again and again.

By hand, over Linux's inotify: nothing of mcphost works while idle, and ``watchfiles`` wakes up twenty times a second.
On other systems nothing is watched.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from mcphost.posix import CLOSE_ON_EXEC, NO_WAIT

SETTLED: Final = 0.25
"""Seconds without another event after which a change is reported: editors write a file in several steps."""

_EVENT: Final = struct.Struct("iIII")
_READ: Final = 64 * 1024
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_MASK: Final = 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800 | 0x0100_0000
"""Written and closed, moved away or here, created, deleted; the folder itself deleted or moved; folders only."""


class FileWatch:
    """Calls ``changed``, in the event loop, after any of ``files`` changed; they need not exist.

    Folders are watched, since editors replace files. A symbolic link's target is watched as well. A file that was
    written or created at ``since`` (nanoseconds since 1970) or later, but before the watch began, counts as changed.
    """

    def __init__(
        self,
        files: Iterable[Path],
        changed: Callable[[], None],
        *,
        since: int | None = None,
        platform: str = sys.platform,
    ) -> None:
        self._files, self._changed, self._since, self._platform = tuple(files), changed, since, platform
        self._add_watch: Any = None
        self._descriptor = -1
        self._watched: dict[int, set[bytes]] = {}
        """The names that matter, by the number of the watch of their folder."""
        self._settling: asyncio.TimerHandle | None = None

    def start(self) -> bool:
        """Begin to watch; False where that cannot be done here. Takes a few system calls."""
        if self._platform != "linux" or not self._files:
            return False
        import ctypes  # late: the first frame does without

        library = ctypes.CDLL(None, use_errno=True)
        self._add_watch = library.inotify_add_watch
        self._descriptor = library.inotify_init1(NO_WAIT | CLOSE_ON_EXEC)
        if self._descriptor < 0:  # the user's inotify instances are used up
            return False
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)
        self._watch_folders()
        if self._since is not None and any(_modified(file) >= self._since for file in self._files):
            self._settle()
        return True

    def close(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _watch_folders(self) -> None:
        """Watch the folders as they are now; one that is watched already keeps its number."""
        watched: dict[int, set[bytes]] = {}
        for folder, name in {place for file in self._files for place in _places(file)}:
            number = self._add_watch(self._descriptor, os.fsencode(folder), _MASK)
            if number >= 0:
                watched.setdefault(number, set()).add(os.fsencode(name))
        self._watched = watched

    def _read(self) -> None:
        try:
            content = os.read(self._descriptor, _READ)
        except OSError:  # nothing there after all
            return
        if any(self._concerns(*event) for event in _events(content)):
            self._watch_folders()
            self._settle()

    def _settle(self) -> None:
        """Tell of the change once nothing more has happened for a while."""
        if self._settling is not None:
            self._settling.cancel()
        self._settling = asyncio.get_running_loop().call_later(SETTLED, self._changed)

    def _concerns(self, number: int, kind: int, name: bytes) -> bool:
        return bool(kind & (_OVERFLOW | _IGNORED)) or not name or name in self._watched.get(number, ())


def _events(content: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The number of the watch, the kind of event, and the name in the folder, of each event."""
    at = 0
    while at + _EVENT.size <= len(content):
        number, kind, _, length = _EVENT.unpack_from(content, at)
        at += _EVENT.size
        yield number, kind, content[at : at + length].rstrip(b"\0")
        at += length


def _places(file: Path) -> Iterator[tuple[Path, str]]:
    """Where a change of the file shows: a folder and a name in it. The nearest folder that exists stands for others."""
    for path in {file.absolute(), _target(file)}:
        folder, name = path.parent, path.name
        while not folder.is_dir() and folder != folder.parent:
            folder, name = folder.parent, folder.name
        yield folder, name


def _modified(file: Path) -> int:
    """When the file came to be what it is, in nanoseconds since 1970; 0 without a file."""
    try:
        return file.stat().st_ctime_ns  # unlike the time of its last writing, also when it was moved here
    except OSError:
        return 0


def _target(file: Path) -> Path:
    try:
        return file.resolve()
    except (OSError, RuntimeError):  # a loop of links
        return file.absolute()
