"""Pictures and sounds, made as needed."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from typing import Any

from PIL import Image

RED = (250, 10, 20)


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def picture(kind: str = "PNG", mode: str = "RGB", colour: Any = RED, **how: Any) -> bytes:
    """Forty by twenty pixels of one colour."""
    file = io.BytesIO()
    ready = mode.startswith("I") or mode.endswith("A")
    image = Image.new(mode, (40, 20), colour) if ready else Image.new("RGB", (40, 20), colour).convert(mode)
    image.save(file, kind, **how)
    return file.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *more: bytes) -> bytes:
    """A PNG whose header declares this size, followed by ``more``."""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + b"".join(more)


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 320, 200) + b"\x08\x02\0\0\0"


FORMAT = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)


WAV = b"RIFF\0\0\0\0WAVE" + b"LIST" + struct.pack("<I", 3) + b"abc\0" + FORMAT + b"data" + struct.pack("<I", 24000)
