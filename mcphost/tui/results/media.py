"""Reads the kind, the size in pixels and the length in seconds of images, audio and PDF from their first bytes."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Iterator

from mcphost.lazy_dataclass import dataclass

PROBE_BYTES = 300_000
"""Enough to find the size of a JPEG behind its thumbnail and colour profile."""

_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The markers with width and height; the three others in this range are tables."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The MIME type, pixels and seconds that the first bytes show."""

    type: str
    pixels: tuple[int, int] | None = None
    seconds: float | None = None


def probe_base64(text: str) -> Probe | None:
    """`probe` for base64; only the beginning is decoded."""
    try:
        return probe(base64.b64decode(text[: PROBE_BYTES * 4 // 12 * 4]))
    except (binascii.Error, ValueError):
        return None


def decoded_size(text: str) -> int:
    """The number of bytes that base64 text stands for."""
    return len(text) * 3 // 4 - text[-2:].count("=")


def probe(data: bytes) -> Probe | None:
    """Recognise ``data``; None if it is unknown or too short. Never raises."""
    for magic, read in _READERS:
        if data.startswith(magic):
            try:
                return read(data)
            except (struct.error, IndexError):
                return None
    return None


def _png(data: bytes) -> Probe:
    return Probe("image/png", struct.unpack_from(">II", data, 16))


def _gif(data: bytes) -> Probe:
    return Probe("image/gif", struct.unpack_from("<HH", data, 6))


def _jpeg(data: bytes) -> Probe:
    for marker, start in _jpeg_segments(data):
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, start + 3)
            return Probe("image/jpeg", (width, height))
    return Probe("image/jpeg")


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        yield data[at + 1], at + 2
        at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))


def _riff(data: bytes) -> Probe | None:
    if data[8:12] == b"WEBP":
        return Probe("image/webp", _webp_pixels(data))
    return _wav(data) if data[8:12] == b"WAVE" else None


def _webp_pixels(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return _u24(data, 24) + 1, _u24(data, 27) + 1
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _wav(data: bytes) -> Probe:
    at, rate = 12, 0
    while at + 8 <= len(data):
        kind, size = data[at : at + 4], struct.unpack_from("<I", data, at + 4)[0]
        if kind == b"fmt ":
            rate = struct.unpack_from("<I", data, at + 16)[0]
        if kind == b"data":
            return Probe("audio/wav", seconds=size / rate if rate else None)
        at += 8 + size + size % 2
    return Probe("audio/wav")


def _u24(data: bytes, at: int) -> int:
    return struct.unpack("<I", data[at : at + 3] + b"\0")[0]  # type: ignore[no-any-return]


_READERS: tuple[tuple[bytes, Callable[[bytes], Probe | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", _png),
    (b"GIF87a", _gif),
    (b"GIF89a", _gif),
    (b"\xff\xd8\xff", _jpeg),
    (b"RIFF", _riff),
    (b"ID3", lambda data: Probe("audio/mpeg")),
    (b"OggS", lambda data: Probe("audio/ogg")),
    (b"fLaC", lambda data: Probe("audio/flac")),
    *((sync, lambda data: Probe("audio/mpeg")) for sync in (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")),
    (b"%PDF-", lambda data: Probe("application/pdf")),
)
