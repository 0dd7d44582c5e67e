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
        self._parts: list[bytes] = []
        self._held = 0
        self._skipping = False

    @property
    def pending(self) -> int:
        """Bytes of the line that is not complete yet."""
        return self._held

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
            lines.append(self._checked(b"".join((*self._parts, end)) if self._parts else end))
        self._parts.clear()
        self._held = 0

    def _hold(self, part: bytes, lines: list[bytes | Overlong]) -> None:
        if not part or self._skipping:
            return
        self._parts.append(part)
        self._held += len(part)
        if self._held > self._limit:
            lines.append(Overlong(b"".join(self._parts[:8])[:QUOTED], self._held))
            self._parts.clear()
            self._held = 0
            self._skipping = True

    def _checked(self, line: bytes) -> bytes | Overlong:
        return _stripped(line) if len(line) <= self._limit else Overlong(line[:QUOTED], len(line))


def _stripped(line: bytes) -> bytes:
    return line[:-1] if line.endswith(b"\r") else line
