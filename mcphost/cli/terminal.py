"""The terminal at which a person can be asked, whatever stdin, stdout and stderr are.

In a pipeline the person who typed the command is still there, so questions go to the controlling terminal; but not
from a background job, which the terminal would stop for reading.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final

from mcphost.cli.margin import size
from mcphost.cli.output import StatusLine, is_terminal
from mcphost.cli.terminal_modes import is_in_foreground, open_terminal_file, terminal_path, without_echo
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import hidden_count

HIDDEN_LINE_BYTES: Final = 1 << 16
"""Limit of a line read without echo; the longest URL that is pasted there takes an eighth of it."""

_ENDS, _ERASES, _ERASES_WORD, _EMPTIES, _CLOSES = b"\r\n", b"\x7f\b", b"\x17", b"\x15", b"\x04"
"""Bytes sent by enter, backspace, ctrl+w, ctrl+u and ctrl+d."""

_EDITS: Final = _ERASES + _ERASES_WORD + _EMPTIES

_SEQUENCE: Final = re.compile(
    rb"\x1b+(?:\[[\x20-\x3f]*[^\x20-\x3f]|O.|[]PX^_].*?(?:\x07|\x1b\\)|[^\x1b\[O\]PX^_])", re.DOTALL
)
"""An escape sequence: of a key, of alt and a key, a mark of a paste, or a report of the terminal."""

SEQUENCE_BYTES: Final = 4096
"""Longest escape sequence; reports of terminals are much shorter."""

_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
_STRINGS: Final = (b"]", b"P", b"X", b"^", b"_")
"""Bytes that, after an escape, begin a report that may hold line ends."""


async def shown_line(descriptor: int) -> bytes:
    """A line with its end; empty at end of file. A terminal cuts a line at 4,095 bytes."""
    return await _next_bytes(descriptor)


async def hidden_line(descriptor: int, *, filled: bool = False) -> bytes:
    """A line with its end, read without echo; empty at end of file. It may be `HIDDEN_LINE_BYTES` long.

    A longer line is dropped, and so is what was pasted after its end. ``filled``: skip empty lines.
    """
    line = _HiddenLine()
    with without_echo(descriptor):
        while chunk := await _next_bytes(descriptor):
            for byte in chunk:
                typed = line.typed
                if line.ends_with(byte):
                    if filled and not typed:
                        continue
                    return bytes(typed[: HIDDEN_LINE_BYTES if len(typed) <= HIDDEN_LINE_BYTES else 0]) + b"\n"
                if byte in _CLOSES and not typed:
                    return b""
                line.take(byte)
    return b""


class _HiddenLine:
    """A line that is not echoed: arrow keys and the marks of a paste must leave nothing in it."""

    def __init__(self) -> None:
        self.typed = bytearray()
        self._sequence = bytearray()
        """The escape sequence that has begun."""
        self._pasting = False

    def ends_with(self, byte: int) -> bool:
        return byte in _ENDS and not self._pasting and bytes(self._sequence[1:2]) not in _STRINGS

    def take(self, byte: int) -> None:
        """Take the next byte: text, an editing key, or part of an escape sequence."""
        if self._sequence or byte == 0x1B:
            self._sequence.append(byte)
            if _SEQUENCE.fullmatch(self._sequence) or len(self._sequence) > SEQUENCE_BYTES:
                self._pasting = self._sequence == _PASTE_BEGINS or (self._pasting and self._sequence != _PASTE_ENDS)
                self._sequence.clear()
        elif self._pasting or byte not in _EDITS:
            if len(self.typed) <= HIDDEN_LINE_BYTES:
                self.typed.append(byte)
        elif byte in _ERASES:
            self._erase()
        elif byte in _ERASES_WORD:
            while self.typed.endswith(b" "):
                self._erase()
            while self.typed and not self.typed.endswith(b" "):
                self._erase()
        else:
            self.typed.clear()

    def _erase(self) -> None:
        while self.typed and self.typed.pop() & 0xC0 == 0x80:  # continuation bytes of a UTF-8 character
            pass


def secret_problem(secret: str, *, lines: bool = False) -> str:
    """Why a secret cannot be what was meant, as a clause; empty where it can. ``lines``: it may have several lines."""
    controls = [each for each in secret if unicodedata.category(each) == "Cc" and not (lines and each in "\r\n\t")]
    hidden = [each for each in secret if hidden_count(each) or (unicodedata.category(each) == "Zs" and each != " ")]
    if "\ufffd" in secret:
        return "it has bytes that are not UTF-8 text"
    for kind, found in (("a control character", controls), ("an invisible character", hidden)):
        if found:
            return f"it has {kind}, U+{ord(found[0]):04X}"
    return ""


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
    """True if there is a terminal to show a question on and to read the answer from."""
    with open_terminal() as found:
        return found is not None


@contextmanager
def open_terminal() -> Iterator[Terminal | None]:
    """Open the terminal to ask at, until the end of the block; None if there is no terminal."""
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
    """Write lines to the terminal, or to stderr without one."""
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
