"""Foreign images: how valid ones are drawn, and what hostile ones cost."""

from __future__ import annotations

import base64
import io
import re
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from textual.geometry import Region, Size

from mcphost.tui.results.desktop_open import opened_as
from mcphost.tui.results.media import Probe
from mcphost.tui.results.pictures import (
    CHUNK,
    MOST_BYTES,
    REMOVE,
    Drawing,
    Undrawable,
    draw,
    fit,
    place,
    shows_pictures,
)
from tests.loop_watchdog import LoopWatchdog
from tests.tui.results.samples import RED, chunk, encoded, picture, png

GROUND = (1, 2, 3)


def extended(width: int, height: int) -> bytes:
    sides = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    return b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + sides


def colours(drawing: Drawing) -> set[tuple[int, ...]]:
    """The colours of all cells."""
    styles = [segment.style for strip in drawing.strips for segment in strip]
    parts = [part for style in styles if style is not None for part in (style.color, style.bgcolor)]
    return {tuple(part.triplet) for part in parts if part is not None and part.triplet is not None}


@pytest.mark.parametrize(
    ("data", "colour"),
    [
        (picture("PNG"), RED),
        (picture("PNG", "P"), RED),
        (picture("PNG", "L", (90, 90, 90)), (90, 90, 90)),
        (picture("PNG", "1", (255, 255, 255)), (255, 255, 255)),
        (picture("PNG", "I;16", 90 * 256), (90, 90, 90)),
        (picture("PNG", "RGBA", (9, 9, 9, 0)), GROUND),
        (picture("PNG", "LA", (9, 0)), GROUND),
        (picture("JPEG", quality=95), RED),
        (picture("JPEG", "CMYK", quality=95), RED),
        (picture("GIF"), RED),
        (picture("WEBP", lossless=True), RED),
    ],
    ids=lambda value: None if isinstance(value, tuple) else value[:4].hex(),
)
async def test_a_picture_is_drawn_in_exactly_its_cells(data: bytes, colour: tuple[int, int, int]) -> None:
    drawing = await draw(encoded(data), Size(10, 3), GROUND)
    assert [strip.cell_length for strip in drawing.strips] == [10, 10, 10]
    assert all(abs(one - other) <= 6 for found in colours(drawing) for one, other in zip(found, colour, strict=True))
    assert not drawing.moves
    assert not drawing.sharp


async def test_of_a_moving_picture_the_first_frame_is_drawn() -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in (RED, (0, 0, 255))]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    drawing = await draw(encoded(file.getvalue()), Size(4, 2), GROUND)
    assert drawing.moves
    assert all(red > blue for red, _, blue in colours(drawing))


HOSTILE = [
    (png(60_000, 60_000), r"it says it is 60000×60000 pixels, and no more than 16 million are decoded"),
    (b"GIF89a" + struct.pack("<HH", 65_535, 65_535), "65535×65535"),
    (extended(16_384, 16_384), "16384×16384"),
    (b"\xff\xd8\xff\xc0\0\x11\x08" + struct.pack(">HH", 65_000, 65_000) + bytes(20), "65000×65000"),
    (png(0, 5), "0×5"),
    (b"\xff\xd8\xff\xd9", "does not say how many pixels"),
    (picture()[:60], "damaged or cut short"),
    (png(4, 4, chunk(b"IDAT", b"no zlib"), chunk(b"IEND", b"")), "damaged"),
    (png(4, 4, chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(80_000_000), 1)), chunk(b"IEND", b"")), "damaged"),
    (extended(40, 20), "damaged"),
    (b"GIF89a" + struct.pack("<HH", 4, 4) + bytes(3), "damaged"),
    (picture("BMP"), "not those of a PNG, JPEG, GIF or WebP"),
    (picture("TIFF"), "not those of"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not those of"),
    (b"%!PS-Adobe-3.0 EPSF-3.0", "not those of"),
    (b"", "not those of"),
]


async def test_an_ancillary_chunk_with_a_wrong_checksum_is_skipped() -> None:
    """As browsers do; server-everything sends such an image."""
    whole = picture()
    header = 8 + 25  # the signature and IHDR
    profile = chunk(b"iCCP", b"sRGB\0\0" + zlib.compress(b"no profile"))
    damaged = whole[:header] + profile[:-4] + b"oops" + whole[header:]
    drawing = await draw(encoded(damaged), Size(10, 5), GROUND)
    assert colours(drawing) == {RED}
    critical = whole[: header - 4] + b"oops" + whole[header:]
    with pytest.raises(Undrawable, match="damaged"):
        await draw(encoded(critical), Size(10, 5), GROUND)


@pytest.mark.hostile("C14")
@pytest.mark.parametrize(("data", "words"), HOSTILE, ids=range(len(HOSTILE)))
async def test_a_large_or_damaged_picture_is_reported_quickly(
    data: bytes, words: str, loop_watchdog: LoopWatchdog
) -> None:
    """An image of 100 megapixels, a decompression bomb, SVG, a polyglot."""
    with pytest.raises(Undrawable, match=words):
        await draw(encoded(data), Size(10, 5), GROUND)
    assert loop_watchdog.longest < 1.0


@pytest.mark.hostile("C14")
async def test_what_is_no_base64_or_has_too_many_bytes_is_not_even_decoded() -> None:
    with pytest.raises(Undrawable, match="it has 25 MB"):
        await draw("A" * (MOST_BYTES * 4 // 3 + 8), Size(10, 5), GROUND)
    with pytest.raises(Undrawable, match="damaged"):
        await draw("%%%=", Size(10, 5), GROUND)


@pytest.mark.hostile("C14")
@given(
    st.sampled_from([picture(kind) for kind in ("PNG", "JPEG", "GIF", "WEBP")]),
    st.integers(0, 600),
    st.binary(max_size=8),
)
async def test_no_bytes_end_in_anything_but_a_drawing_or_a_sentence(data: bytes, at: int, other: bytes) -> None:
    try:
        drawing = await draw(encoded(data[:at] + other + data[at + len(other) :]), Size(7, 3), GROUND, sharp=True)
    except Undrawable:
        return
    assert [strip.cell_length for strip in drawing.strips] == [7, 7, 7]


@pytest.mark.parametrize(
    ("pixels", "room", "enlarge", "cells"),
    [
        ((240, 136), (58, 8), False, (28, 8)),
        ((240, 136), (58, 40), False, (58, 17)),
        ((240, 136), (400, 400), False, (240, 68)),
        ((16, 16), (80, 24), False, (16, 8)),
        ((16, 16), (80, 24), True, (48, 24)),
        ((1, 9_000), (80, 24), False, (1, 24)),
        ((9_000, 1), (80, 24), False, (80, 1)),
        ((3, 2), (0, 0), False, (0, 0)),
    ],
)
def test_a_picture_keeps_its_proportions_in_the_room_there_is(
    pixels: tuple[int, int], room: tuple[int, int], enlarge: bool, cells: tuple[int, int]
) -> None:
    assert fit(pixels, Size(*room), enlarge=enlarge) == cells


@pytest.mark.parametrize(
    ("environment", "sharp"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-ghostty"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, True),
        ({"TERM": "tmux-256color", "TERM_PROGRAM": "WezTerm", "TMUX": "/tmp/tmux-0/default,1,0"}, False),
        ({"TERM": "screen", "TERM_PROGRAM": "ghostty", "STY": "1.tty"}, False),
        ({"TERM": "xterm-256color"}, False),
        ({}, False),
    ],
)
def test_only_a_terminal_that_says_it_shows_pictures_is_sent_one(environment: dict[str, str], sharp: bool) -> None:
    assert shows_pictures(environment) is sharp


async def test_a_sharp_picture_is_a_png_in_bounded_sequences() -> None:
    noise = Image.effect_noise((300, 200), 90)
    file = io.BytesIO()
    noise.save(file, "PNG")
    drawing = await draw(encoded(file.getvalue()), Size(30, 10), GROUND, sharp=True)
    start, *parts, end = place(drawing.sharp, Region(4, 2, 30, 10))
    assert (start, end) == ("\x1b7\x1b[3;5H", "\x1b8")
    found = [re.fullmatch("\x1b_G([a-zA-Z0-9=,]*);([A-Za-z0-9+/=]*)\x1b\\\\", part) for part in parts]
    assert all(found)
    controls, texts = zip(*(each.groups() for each in found if each), strict=True)
    assert {"c=30", "r=10", "q=2", "m=1"} <= set(controls[0].split(","))
    assert [control[-3:] for control in controls] == ["m=1"] * (len(parts) - 1) + ["m=0"]
    assert max(map(len, texts)) <= CHUNK
    sent = Image.open(io.BytesIO(base64.b64decode("".join(texts))))
    assert (sent.format, sent.size, sent.mode) == ("PNG", (300, 200), "RGB")
    assert "d=I" in REMOVE


@pytest.mark.hostile("C14")
@pytest.mark.parametrize(
    ("said", "found", "text", "kind"),
    [
        ("image/png", "image/png", None, "image/png"),
        ("image/svg+xml", "image/png", None, "image/png"),
        ("application/octet-stream", "audio/wav", None, "audio/wav"),
        ("AUDIO/x-wav; rate=1", "audio/wav", None, "audio/wav"),
        ("application/pdf", "application/pdf", None, "application/pdf"),
        ("image/svg+xml", None, None, ""),
        ("audio/mpeg", None, None, ""),
        ("text/html", "image/gif", None, ""),
        ("application/x-sh", "image/png", None, ""),
        ("application/x-msdownload", "application/pdf", None, ""),
        ("text/plain", None, "words < and > numbers", "text/plain"),
        ("text/plain; charset=utf-8", None, "words", "text/plain"),
        ("text/plain", None, "#!/bin/sh\nrm -rf /", ""),
        ("text/plain", None, "\ufeff \n[Desktop Entry]\nExec=x", ""),
        ("text/plain", None, "words, and then <ScRipt>", ""),
        ("text/plain", None, "<?xml version='1.0'?>", ""),
        ("text/plain", None, "a\0b", ""),
        ("text/html", None, "words", ""),
        ("text/x-python", None, "words", ""),
        ("", None, "words", ""),
    ],
)
def test_only_what_cannot_run_is_opened_and_its_bytes_must_say_so(
    said: str, found: str | None, text: str | None, kind: str
) -> None:
    """A polyglot is opened as what its first bytes say, or not at all."""
    assert opened_as(said, Probe(found) if found else None, text) == kind
