"""The terminal at which a person can be asked, whatever stdin, stdout and stderr are.

In a pipeline the person who typed the command is still there, so questions go to the controlling terminal; but not
from a background job, which the terminal would stop for reading.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final

from mcphost.cli.margin import size
from mcphost.cli.output import StatusLine, is_terminal
from mcphost.cli.terminal_modes import is_in_foreground, open_terminal_file, terminal_path, without_echo
from mcphost.lazy_dataclass import dataclass

HIDDEN_LINE_BYTES: Final = 1 << 16
"""Limit of a line read without echo; the longest URL that is pasted there takes an eighth of it."""

_ENDS, _ERASES, _EMPTIES, _CLOSES = b"\r\n", b"\x7f\b", b"\x15", b"\x04"
"""What enter, backspace, ctrl+u and ctrl+d send."""


async def shown_line(descriptor: int) -> bytes:
    """A line with its end; empty at end of file. A terminal cuts a line at 4,095 bytes."""
    return await _next_bytes(descriptor)


async def hidden_line(descriptor: int, *, filled: bool = False) -> bytes:
    """A line with its end, read without echo; empty at end of file. It may be `HIDDEN_LINE_BYTES` long.

    A longer line is dropped, and so is what was pasted after its end. ``filled``: skip empty lines.
    """
    typed = bytearray()
    with without_echo(descriptor):
        while chunk := await _next_bytes(descriptor):
            for byte in chunk:
                if byte in _ENDS:
                    if filled and not typed:
                        continue
                    return bytes(typed[: HIDDEN_LINE_BYTES if len(typed) <= HIDDEN_LINE_BYTES else 0]) + b"\n"
                if byte in _CLOSES and not typed:
                    return b""
                _take(byte, typed)
    return b""


def _take(byte: int, typed: bytearray) -> None:
    if byte in _ERASES:
        while typed and typed.pop() & 0xC0 == 0x80:  # continuation bytes of a UTF-8 character
            pass
    elif byte in _EMPTIES:
        typed.clear()
    elif len(typed) <= HIDDEN_LINE_BYTES:
        typed.append(byte)


async def _next_bytes(descriptor: int) -> bytes:
    """The next bytes; empty at end of file. A thread would outlive a cancelled question, so none is used."""
    ready: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def read() -> None:
        try:
            line = os.read(descriptor, 4096)
        except OSError:  # the terminal hung up
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
class Terminal:
    """``typed`` is the descriptor to read from, ``shown`` the stream to write to."""

    typed: int
    shown: IO[str]


def has_terminal() -> bool:
    """Is there a terminal to show a question on and to read the answer from?"""
    with open_terminal() as found:
        return found is not None


@contextmanager
def open_terminal() -> Iterator[Terminal | None]:
    """The terminal to ask at, open until the end of the block; None where there is none."""
    if is_terminal(sys.stdin) and is_terminal(sys.stderr):
        yield Terminal(sys.stdin.fileno(), sys.stderr)
        return
    descriptor = _controlling() if is_terminal(sys.stderr) or is_terminal(sys.stdout) else None
    if descriptor is None:
        yield None
        return
    with open(descriptor, "w", errors="backslashreplace") as shown:
        yield Terminal(descriptor, shown)


def terminal_size() -> tuple[int, int]:
    """Columns and rows of the terminal that shows questions."""
    with open_terminal() as found:
        return size(sys.stderr if found is None else found.shown)


def say(*lines: str) -> None:
    """Write lines to the terminal, or to stderr where there is none."""
    StatusLine.take_away()
    with open_terminal() as found:
        print(*lines, sep="\n", file=sys.stderr if found is None else found.shown, flush=True)


def _controlling() -> int | None:
    """The controlling terminal, opened; None where this process is not in its foreground."""
    for path in (*_names(), "/dev/tty"):
        try:
            descriptor = open_terminal_file(path)
        except OSError:
            continue
        if is_in_foreground(descriptor):
            return descriptor
        os.close(descriptor)
    return None


def _names() -> Iterator[str]:
    """The terminal's own name, where a stream has it: macOS cannot poll /dev/tty."""
    for stream in (sys.stderr, sys.stdout):
        if is_terminal(stream):
            with suppress(OSError, ValueError):
                yield terminal_path(stream.fileno())
