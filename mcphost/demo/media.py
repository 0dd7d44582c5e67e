"""The pictures and sounds of results and resources, made with the standard library alone.

Pictures are PNG (https://www.w3.org/TR/png-3/: signature, IHDR, IDAT, IEND; 8 bits a channel, RGB, no filter, no
interlace), sounds WAV: 16-bit mono PCM behind a 44-byte RIFF header.
"""

from __future__ import annotations

import math
import struct
import zlib

Colour = tuple[int, int, int]

WIDTH, HEIGHT = 240, 136
HORIZON = 92
NIGHT, DAWN, DAY, DUSK = "night", "dawn", "day", "dusk"
SKY: dict[str, tuple[Colour, Colour]] = {
    NIGHT: ((6, 10, 34), (28, 44, 92)),
    DAWN: ((72, 88, 150), (250, 188, 150)),
    DAY: ((72, 146, 220), (196, 226, 246)),
    DUSK: ((44, 32, 92), (240, 126, 84)),
}
WHITE, RED, ROCK, GLASS = (244, 240, 230), (196, 52, 48), (62, 58, 66), (255, 226, 138)


def time_of_day(hour: int) -> str:
    """The light at that hour, 0 to 23."""
    if 6 <= hour < 9:
        return DAWN
    if 9 <= hour < 18:
        return DAY
    return DUSK if 18 <= hour < 21 else NIGHT


class Canvas:
    """A picture of RGB pixels, origin at the top left."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._pixels = bytearray(width * height * 3)

    def bar(self, left: int, right: int, y: int, colour: Colour) -> None:
        """Paint row ``y`` from ``left`` up to, not including, ``right``; what is outside is left out."""
        left, right = max(left, 0), min(right, self.width)
        if left < right and 0 <= y < self.height:
            start = (y * self.width + left) * 3
            self._pixels[start : start + (right - left) * 3] = bytes(colour) * (right - left)

    def disc(self, x: int, y: int, radius: int, colour: Colour) -> None:
        """Paint a filled circle."""
        for down in range(-radius, radius + 1):
            half = int((radius * radius - down * down) ** 0.5)
            self.bar(x - half, x + half + 1, y + down, colour)

    def lighten(self, x: int, y: int, share: float) -> None:
        """Mix lamp light into one pixel."""
        if 0 <= x < self.width and 0 <= y < self.height:
            start = (y * self.width + x) * 3
            old: Colour = tuple(self._pixels[start : start + 3])  # type: ignore[assignment]
            self._pixels[start : start + 3] = bytes(mix(old, GLASS, share))

    def png(self) -> bytes:
        """The picture as a PNG file."""
        stride = self.width * 3
        rows = (self._pixels[start : start + stride] for start in range(0, len(self._pixels), stride))
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        data = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
        return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """``one`` with a share, 0 to 1, of ``other``."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def view(hour: int, *, lamp: bool) -> bytes:
    """The lighthouse from the sea at that hour, as a PNG of 240 by 136 pixels."""
    light = time_of_day(hour)
    canvas = Canvas(WIDTH, HEIGHT)
    _sky(canvas, light)
    _sea(canvas, light)
    _tower(canvas, lamp=lamp)
    if lamp:
        _beam(canvas, strength=0.75 if light == NIGHT else 0.4)
    return canvas.png()


def _sky(canvas: Canvas, light: str) -> None:
    top, low = SKY[light]
    for y in range(HORIZON):
        canvas.bar(0, WIDTH, y, mix(top, low, y / HORIZON))
    if light == NIGHT:
        for star in range(70):
            canvas.bar(x := star * 149 % WIDTH, x + 1, star * star * 31 % (HORIZON - 8), (220, 226, 255))
        canvas.disc(44, 26, 10, (240, 238, 214))
        canvas.disc(48, 23, 9, mix(top, low, 0.27))
    else:
        canvas.disc(44, 26 if light == DAY else HORIZON - 6, 12, (255, 240, 190))


def _sea(canvas: Canvas, light: str) -> None:
    deep = mix(SKY[light][0], (4, 30, 48), 0.55)
    near = mix(deep, (2, 16, 26), 0.6)
    for y in range(HORIZON, HEIGHT):
        canvas.bar(0, WIDTH, y, mix(deep, near, (y - HORIZON) / (HEIGHT - HORIZON)))
    for wave in range(90):
        x, y = wave * 7907 % WIDTH, HORIZON + 2 + wave * wave * 13 % (HEIGHT - HORIZON - 2)
        canvas.bar(x, x + 3 + wave % 6, y, mix(deep, SKY[light][1], 0.45))


def _tower(canvas: Canvas, *, lamp: bool) -> None:
    middle = 158
    for y in range(84, 108):
        half = 18 + (y - 84) * 3 // 2 + y * 5 % 4
        canvas.bar(middle - half, middle + half + 8, y, mix(ROCK, (20, 20, 26), (y - 84) / 40))
    for y in range(38, 86):
        half = 6 + (y - 38) // 10
        canvas.bar(middle - half, middle + half + 1, y, RED if (y - 38) // 12 % 2 else WHITE)
    canvas.bar(middle - 9, middle + 10, 37, ROCK)
    for y in range(28, 37):
        canvas.bar(middle - 5, middle + 6, y, GLASS if lamp else (90, 96, 110))
    for y in range(22, 28):
        canvas.bar(middle - (y - 21), middle + (y - 21) + 1, y, RED)


def _beam(canvas: Canvas, strength: float) -> None:
    for away in range(7, 160):
        spread = 2 + away // 7
        for offset in range(-spread, spread + 1):
            share = strength * (1 - away / 165) * (1 - abs(offset) / (spread + 1))
            canvas.lighten(158 - away, 32 + offset + away // 14, share)
            canvas.lighten(158 + away, 32 + offset - away // 14, share)


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
    """Samples behind the header that describes them."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, RATE, RATE * 2, 2, 16)
    data = struct.pack("<4sI", b"data", len(samples)) + samples
    return struct.pack("<4sI4s", b"RIFF", 4 + len(form) + len(data), b"WAVE") + form + data
