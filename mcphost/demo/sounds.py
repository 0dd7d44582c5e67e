"""Makes the foghorn's blast, and writes it as a WAV file: 16-bit mono PCM behind a 44-byte RIFF header."""

from __future__ import annotations

import math
import struct

RATE = 8000
"""Samples a second: a foghorn needs no more."""
BLAST_SECONDS, REST_SECONDS = 0.9, 0.3
LOUDEST = 32_767
FADE_SECONDS = 0.08


def foghorn(blasts: int, pitch: float) -> bytes:
    """That many blasts of two tones a fifth apart, ``pitch`` in hertz being the lower one, as a WAV file."""
    rest = b"\0\0" * int(RATE * REST_SECONDS)
    return wav((_blast(pitch) + rest) * blasts)


def _blast(pitch: float) -> bytes:
    count = int(RATE * BLAST_SECONDS)
    return struct.pack(f"<{count}h", *(_sample(n / RATE, pitch) for n in range(count)))


def _sample(time: float, pitch: float) -> int:
    """The sound at that many seconds into a blast: soft at both ends, a little rough in between."""
    swell = min(1.0, time / FADE_SECONDS, (BLAST_SECONDS - time) / FADE_SECONDS)
    turn = 2 * math.pi * pitch * time
    tone = 0.55 * math.sin(turn) + 0.3 * math.sin(1.5 * turn) + 0.1 * math.sin(3 * turn)
    return int(LOUDEST * swell * tone)


def wav(samples: bytes) -> bytes:
    """Samples behind the header that tells what they are."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, RATE, RATE * 2, 2, 16)
    data = struct.pack("<4sI", b"data", len(samples)) + samples
    return struct.pack("<4sI4s", b"RIFF", 4 + len(form) + len(data), b"WAVE") + form + data
