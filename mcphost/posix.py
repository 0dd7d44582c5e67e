"""The parts of POSIX that Windows lacks: flags of files, owners, rights, locks, signals and process groups.

Every other module takes them from here. Their replacements on Windows let the types be checked there; mcphost does not
run there yet.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from socket import socket

if sys.platform == "win32":
    import msvcrt

    NO_FOLLOW: Final = 0
    NO_WAIT: Final = 0
    CLOSE_ON_EXEC: Final = 0
    KILL: Final = signal.SIGTERM
    HANG_UP: Final = -1
    STOP: Final = -1

    def owned_by_us(status: os.stat_result) -> bool:
        return True  # files have no numeric owner

    def is_our_user(user: int) -> bool:
        return False

    def close_to_others(descriptor: int) -> None:
        """Rights are those of the user's own folders."""

    def take_lock(descriptor: int) -> bool:
        with suppress(OSError):
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            return True
        return False

    def signal_group(group: int, which: int) -> bool:
        with suppress(OSError):
            os.kill(group, which)
            return True
        return False

    def system_figure(name: str) -> int:
        raise OSError(f"{name} is not known")

    def has_foreground(terminal: int) -> bool:
        return True

    def open_terminal_of(descriptor: int) -> int:
        raise OSError("it has no path")

    def terminal_modes(terminal: int) -> list[Any]:
        return []

    def set_terminal_modes(terminal: int, modes: list[Any]) -> None: ...

    def wakeup_pipe() -> tuple[int, int]:
        raise OSError("it could be read by no select()")

    def unix_socket() -> socket:
        raise OSError("Python has no Unix sockets here")

    def peer_of(connection: socket) -> tuple[int, int]:
        raise OSError("Python has no Unix sockets here")

else:
    import termios

    NO_FOLLOW: Final = os.O_NOFOLLOW
    """Opens no symbolic link."""
    NO_WAIT: Final = os.O_NONBLOCK
    """Opens without waiting: a pipe planted in place of a file would hold the thread for ever."""
    CLOSE_ON_EXEC: Final = os.O_CLOEXEC
    """No child gets the descriptor."""
    KILL: Final = signal.SIGKILL
    HANG_UP: Final = signal.SIGHUP
    """The signal of a terminal that closed; -1 on Windows."""
    STOP: Final = signal.SIGSTOP
    """Stops a process, which cannot handle it."""

    def owned_by_us(status: os.stat_result) -> bool:
        """True if this user owns the file, and always where files have no numeric owner."""
        return status.st_uid == os.geteuid()

    def is_our_user(user: int) -> bool:
        """True if this process runs as this user."""
        return user == os.geteuid()

    def close_to_others(descriptor: int) -> None:
        """Let only this user read and write the open file."""
        os.fchmod(descriptor, 0o600)

    def take_lock(descriptor: int) -> bool:
        """Try to lock the open file against all other processes; it ends with the descriptor."""
        import fcntl  # late: not needed for reading

        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def signal_group(group: int, which: int) -> bool:
        """Signal a process group (0: only check); return False if nothing of it is left."""
        try:
            os.killpg(group, which)
        except ProcessLookupError:
            return False
        except PermissionError:  # only zombies, or processes that changed their user
            return False
        return True

    def system_figure(name: str) -> int:
        """A figure of the system, such as ``SC_PAGE_SIZE``."""
        return os.sysconf(name)

    def has_foreground(terminal: int) -> bool:
        """True if this process may use the terminal, even one that does not control the process."""
        try:
            return os.tcgetpgrp(terminal) == os.getpgrp()
        except OSError:
            return True

    def open_terminal_of(descriptor: int) -> int:
        """Open a stream's terminal for writing without waiting, which all who share the stream's file would feel."""
        with suppress(OSError):
            return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        return os.dup(descriptor)  # a terminal without a name, as in a container

    def terminal_modes(terminal: int) -> list[Any]:
        """The attributes of a terminal, for `set_terminal_modes`; empty where it has none."""
        with suppress(termios.error):
            return termios.tcgetattr(terminal)
        return []

    def set_terminal_modes(terminal: int, modes: list[Any]) -> None:
        """Set the attributes at once; empty ones change nothing, and neither does a terminal that is gone."""
        with suppress(termios.error):
            if modes:
                termios.tcsetattr(terminal, termios.TCSANOW, modes)

    def wakeup_pipe() -> tuple[int, int]:
        """A pipe whose writing end never waits, as `signal.set_wakeup_fd` needs it."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        return reading, writing

    def unix_socket() -> socket:
        """A new Unix stream socket."""
        import socket  # late: few runs need one

        return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    if sys.platform == "darwin":

        def peer_of(connection: socket) -> tuple[int, int]:
            level, credentials, process = 0, 1, 2  # SOL_LOCAL, LOCAL_PEERCRED and LOCAL_PEERPID, which Python lacks
            version, user = struct.unpack_from("=II", connection.getsockopt(level, credentials, 76))
            if version:
                raise OSError("The kernel describes the peer in an unknown form")
            return user, struct.unpack("=i", connection.getsockopt(level, process, 4))[0]

    else:

        def peer_of(connection: socket) -> tuple[int, int]:
            """The user id and process id of the program at the other end of a Unix socket, from the kernel.

            Raises OSError where the system does not say.
            """
            import socket  # late: few runs need one

            pid, user, _ = struct.unpack("=iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return user, pid


class NotRegularError(OSError):
    """The path leads to a folder, a pipe or a device."""


def open_regular(path: Path, *, follow_links: bool = True) -> int:
    """Open a regular file for reading, and return its descriptor. Never waits; raises OSError, and NotRegularError."""
    handle = os.open(path, os.O_RDONLY | NO_WAIT | CLOSE_ON_EXEC | (0 if follow_links else NO_FOLLOW))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotRegularError(errno.EINVAL, "Not a regular file", str(path))
    return handle
