"""Turns foreign images into cells: two pixels a cell, one above the other.

The terminal graphics libraries query the terminal when they are imported, and read the answer from the keyboard. That
takes keys from the user and prints escape sequences wherever mcphost runs. So Pillow decodes, and we draw.
"""

from __future__ import annotations

import asyncio
import base64
import io
import warnings
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import size_text
from mcphost.tui.results.media import Probe, decoded_size, probe

if TYPE_CHECKING:
    from PIL.Image import Image as Pixels


NO_PICTURES: Final = "-no-pictures"
"""The app's class while images are named and not drawn."""

FORMATS: Final = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP"}
"""The formats that are decoded, by their first bytes; no others are tried."""

MOST_BYTES: Final = 24 * 1024 * 1024
"""As much as a message can hold as base64."""

MOST_PIXELS: Final = 4_096 * 4_096
"""Twice a 4K screen; decoding briefly takes 67 MB, for WebP 260 MB."""

CELL: Final = (10, 20)
"""The approximate pixels of a terminal's cell: the resolution in which a sharp image is sent."""

Rgb = tuple[int, int, int]

_ONE = ThreadPoolExecutor(1, "mcphost-picture")
"""One image at a time, so that fifty in a result take the memory of one."""


class Undrawable(Exception):
    """An image cannot be drawn; the message follows "not drawn:" and is safe to show."""


@dataclass(frozen=True, slots=True)
class Drawing:
    strips: tuple[Strip, ...]
    moves: bool
    """True if there are more frames. Only the first is drawn."""
    sharp: bytes = b""
    """The same as a PNG, for terminals that show images; empty unless requested."""


def is_drawn(found: Probe | None) -> bool:
    """True for the formats that mcphost decodes."""
    return found is not None and found.type in FORMATS


def fit(pixels: tuple[int, int], room: Size, *, enlarge: bool = False) -> Size:
    """The cells of an image in ``room``, in its proportions; larger than the image only with ``enlarge``."""
    width, height = max(1, pixels[0]), max(1, pixels[1])
    scale = min(room.width / width, room.height * 2 / height)
    if not enlarge:
        scale = min(scale, 1.0)
    columns, rows = round(width * scale), -(-round(height * scale) // 2)
    return Size(min(max(1, columns), room.width), min(max(1, rows), room.height))


async def draw(data: str, size: Size, background: Rgb, *, sharp: bool = False) -> Drawing:
    """Draw base64 data in exactly ``size`` cells, in a thread. Raises only Undrawable."""
    return await asyncio.get_running_loop().run_in_executor(_ONE, _draw, data, size, background, sharp)


def _draw(data: str, size: Size, background: Rgb, sharp: bool) -> Drawing:
    if decoded_size(data) > MOST_BYTES:
        raise Undrawable(f"it has {size_text(decoded_size(data))}, and no more than {size_text(MOST_BYTES)} are taken")
    try:
        return _drawn(base64.b64decode(data, validate=True), size, background, sharp)
    except Undrawable:
        raise
    except MemoryError:
        raise Undrawable("there is not enough memory for it") from None
    except Exception:  # decoders fail in many ways, and their messages are not for users
        raise Undrawable("it is damaged or cut short") from None


def _drawn(data: bytes, size: Size, background: Rgb, sharp: bool) -> Drawing:
    image = _opened(data)
    columns, rows = size
    most = (columns * CELL[0], rows * CELL[1]) if sharp else (columns, rows * 2)
    small = _shrunk(image, most, background)
    strips = tuple(_strips(_resized(small, columns, rows * 2).tobytes(), columns))
    return Drawing(strips, _moves(image), _png(small) if sharp else b"")


def _moves(image: Pixels) -> bool:
    try:
        return bool(getattr(image, "is_animated", False))
    except Exception:  # it looks for a second frame, which may be damaged
        return True


def _opened(data: bytes) -> Pixels:
    """Open the image; only its header is read."""
    found = probe(data)
    if found is None or found.type not in FORMATS:
        raise Undrawable("its first bytes are not those of a PNG, JPEG, GIF or WebP")
    if found.pixels is None:
        raise Undrawable("it does not say how many pixels it has")
    _check(found.pixels)
    from PIL import Image, WebPImagePlugin  # late: only images need it

    assert WebPImagePlugin  # importing registers the format; Image registers the others
    Image.MAX_IMAGE_PIXELS = MOST_PIXELS  # also for frames and thumbnails inside
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    file = io.BytesIO(_without_damaged_extras(data) if found.type == "image/png" else data)
    image = Image.open(file, formats=[FORMATS[found.type]])
    _check(image.size)
    return image


def _without_damaged_extras(png: bytes) -> bytes:
    """Drop a PNG's ancillary chunks with a wrong checksum: browsers skip them, Pillow rejects the image."""
    kept, start = [png[:8]], 8
    while start + 12 <= len(png):
        end = start + 12 + int.from_bytes(png[start : start + 4], "big")
        chunk = png[start:end]
        is_ancillary = bool(chunk[4] & 0x20)  # PNG specification 5.4: bit 5 of the first letter
        if not is_ancillary or int.from_bytes(chunk[-4:], "big") == zlib.crc32(chunk[4:-4]):
            kept.append(chunk)
        start = end
    return b"".join((*kept, png[start:]))


def _check(pixels: tuple[int, int]) -> None:
    width, height = pixels
    if not width or not height:
        raise Undrawable(f"it says it is {width}×{height} pixels")
    if width * height > MOST_PIXELS:
        words = f"it says it is {width}×{height} pixels"
        raise Undrawable(f"{words}, and no more than {MOST_PIXELS // 1_000_000} million are decoded")


def _shrunk(image: Pixels, most: tuple[int, int], background: Rgb) -> Pixels:
    """Scale down to ``most`` and convert to RGB, with transparent pixels filled in."""
    from PIL import Image

    if image.mode in ("P", "PA", "1"):  # indexed colours cannot be averaged
        image = image.convert("RGBA")
    elif image.mode.startswith("I"):  # 16-bit grey
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    image.thumbnail(most, Image.Resampling.LANCZOS, reducing_gap=2.0)
    if not image.has_transparency_data:
        return image.convert("RGB")
    ground = Image.new("RGBA", image.size, (*background, 255))
    return Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB")


def _resized(image: Pixels, width: int, height: int) -> Pixels:
    from PIL import Image

    if image.size == (width, height):
        return image
    larger = width > image.width
    return image.resize((width, height), Image.Resampling.NEAREST if larger else Image.Resampling.LANCZOS)


def _png(image: Pixels) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=1)
    return file.getvalue()


def _strips(rgb: bytes, columns: int) -> list[Strip]:
    """Two rows of pixels a line: the upper one as the foreground, the lower one as the background."""
    row = columns * 3
    lines = [rgb[start : start + row] for start in range(0, len(rgb), row)]
    return [_strip(upper, lower, columns) for upper, lower in zip(lines[::2], lines[1::2], strict=True)]


def _strip(upper: bytes, lower: bytes, columns: int) -> Strip:
    pairs = ((upper[at : at + 3], lower[at : at + 3]) for at in range(0, columns * 3, 3))
    runs = ((pair, sum(1 for _ in run)) for pair, run in groupby(pairs))
    return Strip([Segment("▀" * count, _style(*pair)) for pair, count in runs], columns)


def _style(upper: bytes, lower: bytes) -> Style:
    return Style(color=Color.from_rgb(*upper), bgcolor=Color.from_rgb(*lower))


NUMBER: Final = 1_297_239
"""The id of our image in the terminal; there is one at a time."""

CHUNK: Final = 4_096
"""Characters of base64 in one sequence, a limit of the kitty graphics protocol."""

_TERMS: Final = ("xterm-kitty", "xterm-ghostty")
_PROGRAMS: Final = ("ghostty", "WezTerm")

REMOVE: Final = f"\x1b_Ga=d,d=I,i={NUMBER},q=2\x1b\\"
"""Removes the image from the screen and from the terminal's memory."""


def shows_pictures(environment: Mapping[str, str]) -> bool:
    """True if these variables name a terminal with graphics, outside of tmux and screen."""
    if environment.get("TMUX") or environment.get("STY"):
        return False
    return environment.get("TERM") in _TERMS or environment.get("TERM_PROGRAM") in _PROGRAMS


def place(png: bytes, where: Region) -> Iterator[str]:
    """The sequences that put a PNG over these cells; the cursor stays where it is."""
    yield f"\x1b7\x1b[{where.y + 1};{where.x + 1}H"
    text = base64.b64encode(png).decode()
    control = f"a=T,f=100,i={NUMBER},c={where.width},r={where.height},C=1,q=2,"
    for start in range(0, len(text), CHUNK):
        more = int(start + CHUNK < len(text))
        yield f"\x1b_G{control}m={more};{text[start : start + CHUNK]}\x1b\\"
        control = ""
    yield "\x1b8"
