"""Claims the file of a run that is to hold traffic."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from mcphost.errors import ConfigError
from mcphost.host.private_file import PrivateFile
from mcphost.posix import CLOSE_ON_EXEC, NO_FOLLOW, NO_WAIT, owned_by_us

ROTATE: Final = 256 << 20
"""Bytes after which a new file is begun; the old one keeps its name with ``.1``."""

_BEGIN: Final = b'{"time": "'
"""The start of every line: a file that starts otherwise is not ours to overwrite."""


def claim(path: Path) -> None:
    """Make the file of a run, private to this user; one that holds traffic goes on. Waits for the disk.

    Raises ConfigError for anything but a regular file of this user with traffic in it, and leaves that as it is.
    """
    try:
        with suppress(FileNotFoundError):
            _refuse_others(path)
        PrivateFile(path).append(b"", ROTATE)
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise ConfigError(f"cannot take the traffic: {reason}; name another file", path=path) from None


def _refuse_others(path: Path) -> None:
    # Non-blocking: a pipe planted under this name would block for ever.
    descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW | CLOSE_ON_EXEC | NO_WAIT)
    try:
        found = os.fstat(descriptor)
        if not (stat.S_ISREG(found.st_mode) and owned_by_us(found)):
            raise OSError(errno.EPERM, "it is not a regular file of yours")
        if not _BEGIN.startswith(os.read(descriptor, len(_BEGIN))):
            raise OSError(errno.EEXIST, "it holds something else")
    finally:
        os.close(descriptor)
