"""Splits the byte stream of the stdio transport into lines, within a size limit.

Lines are cut before they are decoded: a newline byte never occurs inside a UTF-8 sequence.

Specification: basic/transports, stdio.
"""

from __future__ import annotations

from typing import Final

from mcphost.lazy_dataclass import dataclass

QUOTED: Final = 200
"""Bytes kept of an overlong line."""


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line over the limit: its first bytes, and its size when it was abandoned."""

    start: bytes
    size: int


class LineFramer:
    """Takes chunks of any size, and returns the lines they complete, without newline (``\\n`` or ``\\r\\n``).

    A line over ``limit`` bytes is returned once, at once, as `Overlong`, and its rest skipped: the buffer never exceeds
    the limit by more than one chunk.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()  # one buffer: a list of tiny chunks would take many times the memory
        self._skipping = False

    @property
    def pending(self) -> int:
        """Bytes of the incomplete line."""
        return len(self._line)

    def feed(self, chunk: bytes) -> list[bytes | Overlong]:
        """Take a chunk; return the lines it completed, in order."""
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
