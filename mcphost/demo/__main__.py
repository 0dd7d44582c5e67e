"""`python -m mcphost.demo`: the demo server on this process's stdin and stdout."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from mcphost.demo.server import Server


def main() -> None:
    """Serve until the input ends or its reader is gone."""
    with suppress(KeyboardInterrupt, BrokenPipeError):
        Server(sys.stdin.buffer, sys.stdout.buffer).serve()
    os._exit(0)  # at once: a thread that still climbs the tower is not waited for, and every line was flushed


if __name__ == "__main__":
    main()
