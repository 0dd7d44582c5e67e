"""The kinds of control sequences in a program's output, by the grammar of ECMA-48."""

from __future__ import annotations

import re
from collections.abc import Iterator

STRINGS = {"]": "OSC", "P": "DCS", "X": "SOS", "^": "PM", "_": "APC"}
SEQUENCE = re.compile(
    r"\x1b\[(?P<private>[<=>?]?)(?P<numbers>[\d;:]*)(?P<between>[ -/]*)(?P<final>[@-~])"
    r"|\x1b(?P<string>[\]PX^_])(?P<body>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b(?P<escape>[ -/]*[0-Z\\^-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
    r"|(?P<stray>\x1b)"
)
COUNTED = frozenset("ABCDEFGHJKLMPSTXZ`abdefmr")
"""CSI sequences whose numbers are positions, counts or colours; of all others the numbers belong to the kind."""


def kinds(raw: bytes) -> set[str]:
    """Every kind of sequence and control character in ``raw``."""
    return set(_kinds(raw.decode("utf-8", "replace")))


def coloured(raw: bytes) -> list[str]:
    """The SGR sequences in ``raw`` that set a color other than gray."""
    triples = re.findall(r"[34]8;2;(\d+);(\d+);(\d+)", raw.decode("utf-8", "replace"))
    return [";".join(triple) for triple in triples if len({*triple}) > 1]


def _kinds(text: str) -> Iterator[str]:
    for found in SEQUENCE.finditer(text):
        parts = found.groupdict()
        if parts["final"]:
            counted = parts["final"] in COUNTED and not parts["private"]
            yield from _csi(parts, "" if counted else parts["numbers"])
        elif parts["string"]:
            yield f"{STRINGS[parts['string']]} {parts['body'].split(';')[0]}"
        elif parts["escape"]:
            yield f"ESC {parts['escape']}"
        else:
            yield repr(parts["control"] or parts["stray"])


def _csi(parts: dict[str, str | None], numbers: str | None) -> Iterator[str]:
    yield f"CSI {parts['private']}{numbers}{parts['between']}{parts['final']}"
    if parts["final"] == "m" and not parts["private"]:
        yield from (f"SGR {style}" for style in _styles(parts["numbers"] or "0"))


def _styles(numbers: str) -> Iterator[str]:
    """The attributes of an SGR sequence that hide or blink; colours are the theme's."""
    codes = iter(numbers.split(";"))
    for code in codes:
        if code in ("38", "48"):
            for _ in range(4 if next(codes, "") == "2" else 2):
                next(codes, None)
                if code == "5":
                    break
        elif code in ("5", "6", "8"):
            yield code
