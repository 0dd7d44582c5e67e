"""Bytes in, complete lines out: the framing of the stdio transport.

Knows newlines and a size limit. Refuses to know what a line holds. A newline byte never occurs inside a UTF-8
sequence, so lines are cut before they are decoded.

Specification: basic/transports, stdio.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

QUOTED: Final = 200
"""Bytes of an over-long line that are kept to show what it was."""


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line over the limit: its first bytes, and how many there were when it was given up."""

    start: bytes
    size: int


class LineFramer:
    """Fed chunks of any size, gives the lines they complete, without their newline (``\\n`` or ``\\r\\n``).

    A line over ``limit`` bytes is given up as soon as it passes the limit: it comes out once, as `Overlong`, and the
    rest of it is skipped, so that what is held never exceeds the limit by more than one chunk.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()  # one growing buffer: a list of tiny chunks would weigh many times its bytes
        self._skipping = False

    @property
    def pending(self) -> int:
        """Bytes of the line that is not complete yet."""
        return len(self._line)

    def feed(self, chunk: bytes) -> list[bytes | Overlong]:
        """Take a chunk; return what it completed, in order."""
        head, *rest = chunk.split(b"\n")
        lines: list[bytes | Overlong] = []
        if rest:
            self._close(head, lines)
            *whole, head = rest
            lines.extend(map(self._checked, whole) if self._limit < len(chunk) else map(_stripped, whole))
        self._hold(head, lines)
        return lines

    def _close(self, end: bytes, lines: list[bytes | Overlong]) -> None:
        if self._skipping:
            self._skipping = False
        else:
            self._line += end
            lines.append(self._checked(bytes(self._line)))
        self._line.clear()

    def _hold(self, part: bytes, lines: list[bytes | Overlong]) -> None:
        if not part or self._skipping:
            return
        self._line += part
        if len(self._line) > self._limit:
            lines.append(Overlong(bytes(self._line[:QUOTED]), len(self._line)))
            self._line.clear()
            self._skipping = True

    def _checked(self, line: bytes) -> bytes | Overlong:
        return _stripped(line) if len(line) <= self._limit else Overlong(line[:QUOTED], len(line))


def _stripped(line: bytes) -> bytes:
    return line[:-1] if line.endswith(b"\r") else line
