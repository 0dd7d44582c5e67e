"""Undoes the compression of an HTTP body, a bounded piece at a time.

Knows gzip and deflate. Refuses every other coding, and two at once: what cannot be undone within a limit is not taken.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, Protocol

PIECE: Final = 64 << 10
"""Bytes given out at once, however much a few compressed ones stand for."""

_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32


class UnknownCoding(ValueError):
    """The body is coded in a way that was not asked for."""


class Coding(Protocol):
    """Takes the chunks of one body as they came, gives what they stand for."""

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """What ``chunk`` stands for, in pieces. Raises ValueError where it stands for nothing."""


def coding_of(header: str) -> Coding:
    """The coding that a Content-Encoding header names. Raises UnknownCoding."""
    name = header.strip().lower()
    if name in ("", "identity"):
        return Plain()
    if name in ("gzip", "x-gzip", "deflate"):
        return Deflated()
    raise UnknownCoding(f"the content coding {name[:40]!r} was not asked for")


class Plain:
    """No coding."""

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """The chunk itself."""
        for start in range(0, len(chunk), PIECE):
            yield chunk[start : start + PIECE]


class Deflated:
    """gzip, or deflate with or without its header."""

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._begun = False

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """See `Coding.pieces`."""
        while not self._inflater.eof:
            piece = self._inflate(chunk)
            yield piece
            chunk = self._inflater.unconsumed_tail
            if not chunk and len(piece) < PIECE:
                return

    def _inflate(self, chunk: bytes) -> bytes:
        try:
            piece = self._inflater.decompress(chunk, PIECE)
        except zlib.error as error:
            if self._begun:
                raise ValueError(f"the compressed body is broken: {error}") from None
            self._begun, self._inflater = True, zlib.decompressobj(-zlib.MAX_WBITS)
            return self._inflate(chunk)
        self._begun = True
        return piece
