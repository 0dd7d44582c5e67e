"""An append-only file of lines that only the user can read, and that is rotated by size."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from mcphost.posix import CLOSE_ON_EXEC, NO_FOLLOW, NO_WAIT, close_to_others, owned_by_us

_SAME: Final = 6
"""Fields at the start of `os.stat_result` that are compared: mode, inode, device, links, owner and group."""


class PrivateFile:
    """Appends to ``path``, mode 0600. Everything here waits for the disk, and belongs to one thread at a time.

    With ``keep_open`` the file stays open between two appends, until `close`; that is only faster.
    """

    def __init__(self, path: Path, *, keep_open: bool = False) -> None:
        self.path = path
        self._name, self._keep_open = os.fspath(path), keep_open
        self._descriptor: int | None = None
        self._opened: tuple[int, ...] = ()
        self._torn = False

    def append(self, lines: bytes, rotate: int) -> None:
        """Append whole lines; over ``rotate`` bytes the file is then renamed to ``NAME.1``. Raises OSError."""
        try:
            descriptor, size = self._current() or self._open()
            whole = b"\n" + lines if self._torn else lines
            self._torn = os.write(descriptor, whole) < len(whole)
        finally:
            if not self._keep_open:
                self.close()
        if self._torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if size > rotate:
            self.path.replace(self.path.with_name(self.path.name + ".1"))

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _current(self) -> tuple[int, int] | None:
        """The descriptor that was kept, and the size in bytes; None where the path leads to another file by now."""
        if self._descriptor is None:
            return None
        try:
            found = os.lstat(self._name)
        except OSError:
            return None
        return (self._descriptor, found.st_size) if found[:_SAME] == self._opened else None

    def _open(self) -> tuple[int, int]:
        """Open the file as `_make_private` demands; return its descriptor and size."""
        self.close()
        self._opened = ()
        self._descriptor = self._create()
        found = _make_private(self._descriptor)
        self._opened = found[:_SAME]
        return self._descriptor, found.st_size

    def _create(self) -> int:
        # Not blocking: a pipe planted under this name would hold the thread for ever.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_FOLLOW | CLOSE_ON_EXEC | NO_WAIT
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:  # the folder is there but for the first time: looking first would double the work
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self.path, flags, 0o600)


def _make_private(descriptor: int) -> os.stat_result:
    """Refuse anything but a regular file of this user, and close it to others."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or not owned_by_us(found):
        raise OSError(errno.EPERM, "it is not a regular file of yours")
    if found.st_mode & 0o077:
        close_to_others(descriptor)
        return os.fstat(descriptor)
    return found
