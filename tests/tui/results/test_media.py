from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.tui.results.media import Probe, decoded_size, probe, probe_base64
from tests.tui.results.samples import PNG, WAV

GIF = b"GIF89a" + struct.pack("<HH", 10, 7)
APP = b"\xff\xe1" + struct.pack(">H", 2002) + bytes(2000)
JPEG = b"\xff\xd8" + APP + b"\xff\xc2" + struct.pack(">HBHH", 17, 8, 480, 640)
LOSSY = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 550, 368)
LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 385 | 394 << 14)
EXTENDED = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + (1023).to_bytes(3, "little") + (767).to_bytes(3, "little")


@pytest.mark.hostile("C14")
@pytest.mark.parametrize(
    ("data", "found"),
    [
        (PNG, Probe("image/png", (320, 200))),
        (GIF, Probe("image/gif", (10, 7))),
        (JPEG, Probe("image/jpeg", (640, 480))),
        (JPEG[:1000], Probe("image/jpeg")),
        (LOSSY, Probe("image/webp", (550, 368))),
        (LOSSLESS, Probe("image/webp", (386, 395))),
        (EXTENDED, Probe("image/webp", (1024, 768))),
        (WAV, Probe("audio/wav", seconds=1.5)),
        (WAV.replace(struct.pack("<I", 16000), bytes(4)), Probe("audio/wav")),
        (b"fLaC", Probe("audio/flac")),
        (PNG[:18], None),
        (b"<svg/>", None),
        (b"", None),
    ],
)
def test_the_first_bytes_say_size_and_length(data: bytes, found: Probe | None) -> None:
    """Only a header is read, nothing is decoded."""
    assert probe(data) == found
    assert probe_base64(base64.b64encode(data).decode()) == found


@given(st.sampled_from([PNG, GIF, JPEG, LOSSY, LOSSLESS, EXTENDED, WAV]), st.integers(0, 60), st.binary(max_size=40))
def test_no_bytes_raise(data: bytes, keep: int, tail: bytes) -> None:
    probe(data[:keep] + tail)


@pytest.mark.parametrize("data", [b"", b"1", b"12", b"123", b"1234"])
def test_the_size_is_known_without_decoding(data: bytes) -> None:
    assert decoded_size(base64.b64encode(data).decode()) == len(data)
    assert probe_base64("%%%=") is None
