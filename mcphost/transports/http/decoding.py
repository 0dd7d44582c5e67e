"""Decompresses an HTTP body in pieces of bounded size.

Only gzip and deflate are decoded, and never two codings at once: decompressed size must stay bounded.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, Protocol

PIECE: Final = 64 << 10
"""Bytes of one decompressed piece at most."""

_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32


class UnknownCoding(ValueError):
    """The body has a coding that was not requested."""


class Coding(Protocol):
    """Decodes the chunks of one body."""

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Decode ``chunk``, in pieces of at most `PIECE` bytes. Raises ValueError if it cannot be decoded."""


def coding_of(header: str) -> Coding:
    """The decoder for a Content-Encoding header. Raises UnknownCoding."""
    name = header.strip().lower()
    if name in ("", "identity"):
        return Plain()
    if name in ("gzip", "x-gzip", "deflate"):
        return Deflated()
    raise UnknownCoding(f"the content coding {name[:40]!r} was not asked for")


class Plain:
    """No coding."""

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        for start in range(0, len(chunk), PIECE):
            yield chunk[start : start + PIECE]


class Deflated:
    """gzip, or deflate with or without the zlib header."""

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._begun = False

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
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
