"""Splits byte streams into lines, within a size limit: those of stdio, of server-sent events, and of models.

Lines are cut before they are decoded: a newline byte never occurs inside a UTF-8 sequence.

Specification: basic/transports, stdio; the WHATWG event stream format.
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

    def starts_with(self, prefix: bytes) -> bool:
        """True if the incomplete line starts with ``prefix``."""
        return self._line.startswith(prefix)

    def feed(self, chunk: bytes) -> list[bytes | Overlong]:
        """Take a chunk; return the lines it completed, in order."""
        head, *rest = chunk.split(b"\n")
        lines: list[bytes | Overlong] = []
        if rest:
            self._close(head, lines)
            *whole, head = rest
            if len(chunk) > self._limit:
                lines.extend(map(self._checked, whole))
            else:
                lines.extend(map(_stripped, whole) if b"\r" in chunk else whole)
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


class EventLineFramer:
    """A `LineFramer` for event streams: a lone ``\\r`` ends a line too, and a byte order mark is dropped."""

    def __init__(self, limit: int) -> None:
        self._lines = LineFramer(limit)
        self._skip_newline = False  # the last chunk ended in \r: a \n at the start of the next belongs to it
        self._at_start = True

    @property
    def pending(self) -> int:
        return self._lines.pending

    def starts_with(self, prefix: bytes) -> bool:
        return self._lines.starts_with(prefix)

    def feed(self, chunk: bytes) -> list[bytes | Overlong]:
        """As `LineFramer.feed`."""
        if self._skip_newline and chunk:
            self._skip_newline = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._skip_newline = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = self._lines.feed(chunk)
        if self._at_start and lines:
            self._at_start = False
            first = lines[0]
            lines[0] = first.removeprefix(b"\xef\xbb\xbf") if isinstance(first, bytes) else first
        return lines


def _stripped(line: bytes) -> bytes:
    return line[:-1] if line.endswith(b"\r") else line
