"""How texts are compared: what is left of them when their dress is taken off, and which words stand out.

Knows letters, digits and how they are written down. Refuses to know where a text comes from.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final

STRETCH: Final = 24
"""Letters and digits, four or five words: shorter stretches are often equal by chance."""

SECRET: Final = 12
"""Characters of a word that is marked by itself: keys, cards and most addresses have them, dates do not."""

BLOCK: Final = 10
"""Letters and digits that are looked up at a time; what has fewer is not found."""

_DROPPED: Final = re.compile(
    r"(?>(?:[^\w\\%]++|_++|\\(?>(?:u[0-9a-fA-F]{4}|[bfnrt])?)|%(?>(?:[0-9a-fA-F]{2})?)){1,1000})"
)  # atomic: nothing is tried twice; bounded: each repetition of a group is remembered while it goes on
_ESCAPED: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[bfnrt])|%[0-9a-fA-F]{2}")
WORD: Final = re.compile(rf"[\w.+@~-]{{{SECRET},200}}+")
NUMBER: Final = re.compile(rf"\d(?:[ -]?\d){{{SECRET - 1},40}}")


class NormalizedText:
    """A text as it is compared, and where in it each of its characters stood."""

    def __init__(self, text: str) -> None:
        self._before, self._at, kept, size, end = list[int](), list[int](), list[str](), 0, 0
        for dropped in (*(found.span() for found in _DROPPED.finditer(text)), (len(text), len(text))):
            if dropped[0] > end:
                self._before.append(size)
                self._at.append(end)
                kept.append(text[end : dropped[0]])
                size += dropped[0] - end
            end = dropped[1]
        self.text = _small("".join(kept))

    def place(self, at: int) -> int:
        """Where it stood."""
        run = bisect_right(self._before, at) - 1
        return self._at[run] + at - self._before[run]


def unescaped(text: str) -> str:
    """A passage with its letters out of JSON's escapes; the other escapes are blanks, which end words."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", text)


def normalized(text: str) -> str:
    """What is compared of a text that is not asked for places."""
    return _small(_DROPPED.sub("", text))


def _small(text: str) -> str:
    """In small letters, each still one character: one capital's small form is two."""
    return text.replace("\u0130", "i").lower()


def secrets(text: str, kind: re.Pattern[str]) -> Iterator[str]:
    """The words of a text that are marked by themselves, folded; longer ones are stretches in any case."""
    for found in kind.finditer(text):
        word, address = normalized(found[0]), "@" in found[0][1:-1]
        if (BLOCK if address else SECRET) <= len(word) < STRETCH and (address or _random(word, kind)):
            yield word


def _random(word: str, kind: re.Pattern[str]) -> bool:
    return kind is NUMBER or 0 < sum(map(str.isalpha, word)) < len(word)


def _base64(run: str) -> str:
    """The text that a run of base64 may stand for; of anything else, nonsense."""
    whole = run[: len(run) - (len(run) % 4 == 1)]
    standard = whole.translate({ord("-"): "+", ord("_"): "/"}) + "=" * (-len(whole) % 4)
    return base64.b64decode(standard).decode("utf-8", "ignore")


def _hex(run: str) -> str:
    return bytes.fromhex(run).decode("utf-8", "ignore")


CODES: Final[tuple[tuple[str, re.Pattern[str], Callable[[str], str]], ...]] = (
    ("hex", re.compile(r"(?:[0-9a-fA-F]{2}){24,}"), _hex),
    ("base64", re.compile(r"[A-Za-z0-9+/_-]{32,}"), _base64),
)
