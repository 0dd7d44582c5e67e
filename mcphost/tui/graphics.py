"""Pictures in full sharpness, for terminals that speak kitty's graphics protocol.

Knows which terminals say that they do, and the sequences. Refuses to ask a terminal: its answer would come in among
the user's keys. One that is not what it says ignores the sequences, and the drawing in cells below stays.

Specification: https://sw.kovidgoyal.net/kitty/graphics-protocol/
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Final

from textual.geometry import Region

NUMBER: Final = 1_297_239
"""Our picture's number among those the terminal holds: there is one at a time."""

CHUNK: Final = 4_096
"""Characters of base64 in one sequence, as the protocol limits them."""

_TERMS: Final = ("xterm-kitty", "xterm-ghostty")
_PROGRAMS: Final = ("ghostty", "WezTerm")

REMOVE: Final = f"\x1b_Ga=d,d=I,i={NUMBER},q=2\x1b\\"
"""Takes the picture away, and out of the terminal's memory."""


def shows_pictures(environment: Mapping[str, str]) -> bool:
    """Does the terminal say, by these variables, that it is one of those? Not where tmux or screen is in between."""
    if environment.get("TMUX") or environment.get("STY"):
        return False
    return environment.get("TERM") in _TERMS or environment.get("TERM_PROGRAM") in _PROGRAMS


def place(png: bytes, where: Region) -> Iterator[str]:
    """The sequences that put a PNG file over these cells of the screen; the cursor stays where it is."""
    yield f"\x1b7\x1b[{where.y + 1};{where.x + 1}H"
    text = base64.b64encode(png).decode()
    control = f"a=T,f=100,i={NUMBER},c={where.width},r={where.height},C=1,q=2,"
    for start in range(0, len(text), CHUNK):
        more = int(start + CHUNK < len(text))
        yield f"\x1b_G{control}m={more};{text[start : start + CHUNK]}\x1b\\"
        control = ""
    yield "\x1b8"
