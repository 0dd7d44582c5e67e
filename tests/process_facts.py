"""Prints what a process has from whoever started it, and how it ends: `python -m tests.process_facts`."""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import stat
import sys
import threading
import time
from typing import Any


def facts() -> dict[str, Any]:
    mask = os.umask(0)
    streams: Any = (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return {
        "arguments": [sys.argv, sys.orig_argv, sys.path, sys.executable, str(sys.flags), __name__],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "mask": mask,
        "parent": os.getppid(),
        "session": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
        "owns_terminal": os.tcgetpgrp(0) == os.getpid() if os.isatty(0) else None,
        "group": os.getpgrp() if os.getpgrp() != os.getpid() else None,
        "signals": {int(number): str(signal.getsignal(number)) for number in signal.valid_signals()},
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "streams": [
            (each.name, each.mode, each.encoding, each.errors, each.line_buffering, each.write_through, each.isatty())
            for each in streams
            if each is not None
        ],
        "files": {number: stat.S_IFMT(os.fstat(number).st_mode) for number in range(64) if is_open(number)},
        "limits": [resource.getrlimit(limit) for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)],
        "threads": [each.name for each in threading.enumerate()],
        "garbage": [gc.isenabled(), gc.get_threshold()],
        "time": time.tzname,
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
    }


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    print(json.dumps(facts()))
    print("a remark", file=sys.stderr)
    if len(sys.argv) > 1:
        os.kill(os.getpid(), int(sys.argv[1]))
    sys.exit(7)
