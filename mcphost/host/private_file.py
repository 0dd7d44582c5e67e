"""An append-only file of lines that only the user can read, and that is rotated by size."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


class PrivateFile:
    """Appends to ``path``, mode 0600. Everything here waits for the disk, and belongs to one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._torn = False

    def append(self, lines: bytes, rotate: int) -> None:
        """Append whole lines; over ``rotate`` bytes the file is then renamed to ``NAME.1``. Raises OSError."""
        descriptor = self._open()
        try:
            size = _make_private(descriptor)
            whole = b"\n" + lines if self._torn else lines
            self._torn = os.write(descriptor, whole) < len(whole)
        finally:
            os.close(descriptor)
        if self._torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if size > rotate:
            self.path.replace(self.path.with_name(self.path.name + ".1"))

    def _open(self) -> int:
        # Not blocking: a pipe planted under this name would hold the thread for ever.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:  # the folder is there but for the first time: looking first would double the work
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self.path, flags, 0o600)


def _make_private(descriptor: int) -> int:
    """Refuse what is no file of our own, close it to others; its size in bytes."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "it is not a regular file of yours")
    if found.st_mode & 0o077:
        os.fchmod(descriptor, 0o600)
    return found.st_size
