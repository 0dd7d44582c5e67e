"""The terminal at which somebody can be asked, whatever stdin, stdout and stderr are.

Where a program's words come through a pipe, the person who typed the command still sits there: what is asked then is
written to the controlling terminal and read from it. Knows descriptors, and that nobody is asked behind the back of the
program in the foreground. Refuses to know what is asked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from mcphost.headless.keyboard import has_keyboard
from mcphost.headless.margin import size
from mcphost.headless.output import StatusLine, is_terminal


@dataclass(frozen=True, slots=True)
class TerminalSeat:
    """Where somebody sits: ``typed`` is the descriptor to read from, ``shown`` the stream to write to."""

    typed: int
    shown: IO[str]


def somebody_there() -> bool:
    """Is there a terminal that shows what this program says, and that it may read from?"""
    with seat() as found:
        return found is not None


@contextmanager
def seat() -> Iterator[TerminalSeat | None]:
    """Where to ask, until the end of the block; None: nobody is there."""
    if is_terminal(sys.stdin) and is_terminal(sys.stderr):
        yield TerminalSeat(sys.stdin.fileno(), sys.stderr)
        return
    descriptor = _controlling() if is_terminal(sys.stderr) or is_terminal(sys.stdout) else None
    if descriptor is None:
        yield None
        return
    with open(descriptor, "w", errors="backslashreplace") as shown:
        yield TerminalSeat(descriptor, shown)


def room() -> tuple[int, int]:
    """Columns and rows of the terminal that shows what is asked."""
    with seat() as found:
        return size(sys.stderr if found is None else found.shown)


def say(*lines: str) -> None:
    """Write lines where somebody sits; where nobody does, to stderr."""
    StatusLine.take_away()
    with seat() as found:
        print(*lines, sep="\n", file=sys.stderr if found is None else found.shown, flush=True)


def _controlling() -> int | None:
    """The controlling terminal, opened, where this program is in its foreground: elsewhere reading would stop it."""
    for path in (*_names(), "/dev/tty"):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            continue
        if has_keyboard(descriptor):
            return descriptor
        os.close(descriptor)
    return None


def _names() -> Iterator[str]:
    """Its own name, where a stream has it: macOS cannot wait for what is typed at /dev/tty."""
    for stream in (sys.stderr, sys.stdout):
        if is_terminal(stream):
            with suppress(OSError, ValueError):
                yield os.ttyname(stream.fileno())
