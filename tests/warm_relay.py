"""A program whose work is done by a fork of a warm interpreter, with its streams, its folder and its environment.

    tests/warm_relay.py NAME SCRIPT|-m MODULE ARGUMENT...

It passes on the signals that it gets, ends as the fork ends, and takes it along if it is killed. It starts in a
hundredth of a second. See `tests.warm_start.relayed`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import sys

LENGTH = struct.Struct("i")
PASSED_ON = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)


def pass_on(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


def main(name: str, words: list[str]) -> None:
    mask = os.umask(0o77)
    os.umask(mask)
    settings = {"env": dict(os.environ), "folder": os.getcwd(), "mask": mask, "session": False, "terminal": None}
    order = json.dumps({"words": [sys.executable, *words], **settings}).encode()
    with socket.socket(socket.AF_UNIX) as interpreter:
        interpreter.connect(f"\0{name}")
        socket.send_fds(interpreter, [LENGTH.pack(len(order))], [0, 1, 2])
        interpreter.sendall(order)
        (child,) = LENGTH.unpack(interpreter.recv(LENGTH.size, socket.MSG_WAITALL))
        for number in PASSED_ON:
            signal.signal(number, lambda got, _: pass_on(child, got))
        for stream in range(3):
            os.close(stream)
        (code,) = LENGTH.unpack(interpreter.recv(LENGTH.size, socket.MSG_WAITALL))
    if code < 0:
        if -code in PASSED_ON:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
