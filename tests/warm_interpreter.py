"""An interpreter that has imported mcphost and forks when it is asked to: the other side of `tests.warm_start`.

The module ends in a child only, as `python -m mcphost` does; the first process waits until its socket is closed.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import platform
import runpy
import signal
import socket
import struct
import sys
import time
from typing import Any, Final

LENGTH: Final = struct.Struct("i")

CLONE: Final = {"x86_64": 56, "aarch64": 220}
"""The number of the system call on each machine."""

CLONE_PARENT: Final = 0x8000
"""The child is a sibling: whoever asked for it is its parent, and can wait for it and learn how it ended."""

IMPORTED: Final = (
    "mcphost.cli.commands.call",
    "mcphost.cli.commands.catalog",
    "mcphost.cli.commands.chat",
    "mcphost.cli.commands.screen",
    "mcphost.cli.commands.servers",
    "mcphost.cli.parser",
    "mcphost.host.host",
    "mcphost.tui.app",
    "mcphost.tui.chat.pane",
    "mcphost.tui.consent.tool_call",
    "mcphost.tui.prompts.pane",
    "mcphost.tui.resources.pane",
    "mcphost.tui.tools.workbench",
    "mcphost.tui.traffic.pane",
)
"""The modules that take most of the time of a start."""


def wait_for_order(asker: socket.socket) -> dict[str, Any]:
    """Return in a child, with what it shall be, and with its streams."""
    while True:
        header, streams, *_ = socket.recv_fds(asker, LENGTH.size, 3)
        if not header:
            os._exit(0)
        order = asker.recv(LENGTH.unpack(header)[0], socket.MSG_WAITALL)
        child = fork_sibling()
        if child == 0:
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
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
    sys.argv[:], sys.orig_argv[:] = order["words"][2:], order["words"]
    sys.path.insert(0, order["folder"])
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        new: Any = open(number, old.mode, encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        new.buffer.raw.name = old.name
        if name == "stderr":
            new.reconfigure(line_buffering=True)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    for module in IMPORTED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    become(wait_for_order(socket.socket(fileno=int(sys.argv[1]))))
    runpy.run_module(sys.orig_argv[2], run_name="__main__", alter_sys=True)
