"""An interpreter that has made its imports and forks when it is asked to: the other side of `tests.warm_start`.

    tests/warm_interpreter.py DESCRIPTOR MODULE...    forks siblings for whoever has the other end of this socket
    tests/warm_interpreter.py NAME MODULE...          forks children for all who connect to this abstract socket

The module ends in a child only, as the program does that runs there. The first process ends with its last connection.
It runs in environments of other programs too, so it imports the standard library alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import platform
import runpy
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

LENGTH: Final = struct.Struct("i")

CLONE: Final = {"x86_64": 56, "aarch64": 220}
"""The number of the system call on each machine."""

CLONE_PARENT: Final = 0x8000
"""The child is a sibling: whoever asked for it is its parent, and can wait for it and learn how it ended."""


def wait_for_order(asker: socket.socket) -> dict[str, Any]:
    """Return in a child, with what it shall be, and with its streams."""
    while True:
        header, streams, *_ = socket.recv_fds(asker, LENGTH.size, 3)
        if not header:
            os._exit(0)
        order = asker.recv(LENGTH.unpack(header)[0], socket.MSG_WAITALL)
        child = fork_sibling()
        if child == 0:
            take_streams(streams)
            return dict(json.loads(order))
        for stream in streams:
            os.close(stream)
        asker.sendall(LENGTH.pack(child))


def fork_sibling() -> int:
    """`os.fork`, for a child of the parent of this process."""
    python, system = ctypes.pythonapi, ctypes.PyDLL(None)  # neither gives the interpreter's lock away
    python.PyOS_BeforeFork()
    child: int = system.syscall(CLONE[platform.machine()], CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return child


class Switchboard:
    """Forks a child for each caller, which learns its number at once and its exit code in the end.

    A caller that goes away takes its child along. One that asks for nothing keeps the interpreter.
    """

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._watched = selectors.DefaultSelector()
        self._watched.register(listener, selectors.EVENT_READ)
        self._callers: dict[socket.socket, int] = {}

    def wait_for_order(self) -> dict[str, Any]:
        """Return in a child, with what it shall be, and with its streams."""
        while True:
            for key, _ in self._watched.select():
                if key.fileobj is self._listener:
                    caller, _ = self._listener.accept()
                    self._callers[caller] = 0
                    self._watched.register(caller, selectors.EVENT_READ)
                elif key.data is not None:
                    self._report_end(key.fd, *key.data)
                elif (order := self._answer(key.fileobj)) is not None:  # type: ignore[arg-type]
                    return order
            if not self._callers:
                os._exit(0)

    def _answer(self, caller: socket.socket) -> dict[str, Any] | None:
        header, streams = b"", list[int]()
        with contextlib.suppress(ConnectionResetError):
            header, streams, *_ = socket.recv_fds(caller, LENGTH.size, 3)
        if not header:
            self._watched.unregister(caller)
            caller.close()
            if (child := self._callers.pop(caller)) != 0:
                os.kill(child, signal.SIGKILL)
            return None
        order = caller.recv(LENGTH.unpack(header)[0], socket.MSG_WAITALL)
        child = os.fork()
        if child == 0:
            self._watched.close()  # else their collection closes files of the program
            for each in (self._listener, *self._callers):
                each.close()
            take_streams(streams)
            return dict(json.loads(order))
        for stream in streams:
            os.close(stream)
        self._callers[caller] = child
        self._watched.register(os.pidfd_open(child), selectors.EVENT_READ, (caller, child))
        with contextlib.suppress(OSError):  # the caller is gone, which the next round sees
            caller.sendall(LENGTH.pack(child))
        return None

    def _report_end(self, watched: int, caller: socket.socket, child: int) -> None:
        self._watched.unregister(watched)
        os.close(watched)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if caller in self._callers:
            self._callers[caller] = 0
            with contextlib.suppress(OSError):
                caller.sendall(LENGTH.pack(code))


def take_streams(streams: Sequence[int]) -> None:
    """Make them the standard streams, and close all other files."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def become(order: dict[str, Any]) -> None:
    """Take over what differs between processes."""
    if order["session"]:
        os.setsid()
    if order["terminal"] is not None:  # the first that the leader of a session opens controls it
        terminal = os.open(order["terminal"], os.O_RDWR)
        for number in range(3):
            os.dup2(terminal, number)
        os.close(terminal)
    os.umask(order["mask"])
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    words = order["words"]
    sys.argv[:], sys.orig_argv[:] = words[2 if words[1] == "-m" else 1 :], words
    sys.path.insert(0, order["folder"] if words[1] == "-m" else os.path.dirname(os.path.abspath(words[1])))
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [path for path in paths if path and path not in sys.path]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        new: Any = open(number, old.mode, encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        new.buffer.raw.name = old.name
        if name == "stderr":
            new.reconfigure(line_buffering=True)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def run() -> None:
    """Run the program that this process has become."""
    if sys.orig_argv[1] == "-m":
        runpy.run_module(sys.orig_argv[2], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(os.path.abspath(sys.orig_argv[1]), run_name="__main__")


def listen(name: str) -> socket.socket:
    """Return a socket of this abstract name; ends the process if another one has it."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(f"\0{name}")
    except OSError:
        sys.exit()  # another worker was faster
    listener.listen(100)  # who calls before the imports are made, waits
    return listener


def imported_and_ordered(where: str, modules: Sequence[str]) -> dict[str, Any]:
    """Import the modules, and return in a child, with what it shall be."""
    asker = socket.socket(fileno=int(where)) if where.isdigit() else listen(where)
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    return wait_for_order(asker) if where.isdigit() else Switchboard(asker).wait_for_order()


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    become(imported_and_ordered(sys.argv[1], sys.argv[2:]))
    run()
