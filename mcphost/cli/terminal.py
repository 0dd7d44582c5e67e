"""The terminal at which somebody can be asked, whatever stdin, stdout and stderr are.

Where a program's words come through a pipe, the person who typed the command still sits there: what is asked then is
written to the controlling terminal and read from it. Knows descriptors, and that nobody is asked behind the back of the
program in the foreground. Refuses to know what is asked.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Final

from mcphost.cli.margin import size
from mcphost.cli.output import StatusLine, is_terminal

MOST_HIDDEN: Final = 1 << 16
"""Bytes of a line that is not shown; an address that a browser ends at is at most an eighth of it."""

_ENDS, _ERASES, _EMPTIES, _CLOSES = b"\r\n", b"\x7f\b", b"\x15", b"\x04"
"""What the keys enter, backspace, ctrl+u and ctrl+d send."""


async def shown_line(descriptor: int) -> bytes:
    """A line with its end; empty where there will be none. The terminal takes no more than 4,095 bytes of one."""
    return await _next_bytes(descriptor)


async def hidden_line(descriptor: int, *, filled: bool = False) -> bytes:
    """A line with its end, empty where there will be none; nothing of it is shown, and it may be `MOST_HIDDEN` long.

    What was pasted behind its end is forgotten, and so is a line that is longer. ``filled``: an empty line is none.
    """
    typed = bytearray()
    with _unseen(descriptor):
        while chunk := await _next_bytes(descriptor):
            for byte in chunk:
                if byte in _ENDS:
                    if filled and not typed:
                        continue
                    return bytes(typed[: MOST_HIDDEN if len(typed) <= MOST_HIDDEN else 0]) + b"\n"
                if byte in _CLOSES and not typed:
                    return b""
                _take(byte, typed)
    return b""


def forget_typed_ahead(descriptor: int) -> None:
    """What was typed before a question was shown is no answer to it."""
    with suppress(ImportError, OSError):
        import termios

        with suppress(termios.error):
            termios.tcflush(descriptor, termios.TCIFLUSH)


def has_keyboard(descriptor: int) -> bool:
    """Do this terminal's keys reach this program? Not where it runs in the background: it would be stopped."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False


def _take(byte: int, typed: bytearray) -> None:
    if byte in _ERASES:
        while typed and typed.pop() & 0xC0 == 0x80:  # the rest of a character of several bytes
            pass
    elif byte in _EMPTIES:
        typed.clear()
    elif len(typed) <= MOST_HIDDEN:
        typed.append(byte)


@contextmanager
def _unseen(descriptor: int) -> Iterator[None]:
    """The terminal shows nothing, and gives every byte at once: in lines it would drop all after the 4,095th."""
    import termios

    before = termios.tcgetattr(descriptor)
    silent = [*before[:6], [*before[6]]]
    silent[3] &= ~(termios.ECHO | termios.ICANON)
    silent[6][termios.VMIN], silent[6][termios.VTIME] = 1, 0
    termios.tcsetattr(descriptor, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def _next_bytes(descriptor: int) -> bytes:
    """What is there next, without a thread that would outlive a cancelled question; empty at the terminal's end."""
    ready: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def read() -> None:
        try:
            line = os.read(descriptor, 4096)
        except OSError:  # the terminal is gone
            line = b""
        if not ready.done():
            ready.set_result(line)

    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, read)
    try:
        return await ready
    finally:
        loop.remove_reader(descriptor)


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
