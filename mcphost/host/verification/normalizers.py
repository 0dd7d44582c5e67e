"""Normalizers: what differs from run to run in texts, such as times and ids, each with a name.

They see a text only where it differs from the expected one, and what they hide is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple


class Normalizer(NamedTuple):
    """``pattern`` matches what is hidden; a group named ``kept`` at its start stays."""

    name: str
    about: str
    pattern: str

    def values(self, text: str) -> list[str]:
        """The values in a text, in order."""
        return [found[0][found.end("kept") - found.start() if self._keeps(found) else 0 :] for found in self._in(text)]

    def applied(self, text: str) -> str:
        """The text with the name in place of each value."""
        return re.sub(self.pattern, lambda found: f"{found['kept'] if self._keeps(found) else ''}<{self.name}>", text)

    def _in(self, text: str) -> Iterable[re.Match[str]]:
        return re.finditer(self.pattern, text)

    @staticmethod
    def _keeps(found: re.Match[str]) -> bool:
        return found.groupdict().get("kept") is not None


_WORD: Final = r"(?<![\w-])"

NORMALIZERS: Final = (
    Normalizer("uuid", "UUIDs", rf"(?i){_WORD}[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}(?![\w-])"),
    Normalizer(
        "iso-time",
        "dates with a time of day, as in ISO 8601 or with - in a file name",
        r"(?<!\d)\d{4}-\d\d-\d\d[T ]\d\d(?::\d\d(?::\d\d(?:[.,]\d{1,9})?)?|-\d\d-\d\d(?:[-.]\d{1,9})?)"
        r"(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?(?!\d)",
    ),
    Normalizer(
        "temp-path",
        "folders and files for temporary things, by the first name below their place",
        r"""(?x)(?:(?:/private)?/var/folders/[^/\s]{1,64}/[^/\s]{1,64}/T|/var/tmp|/dev/shm|(?<![\w/.-])(?:/private)?/tmp)
        (?:/[^/\s"'`<>:,;()\[\]{}]+)|(?i:[a-z]:(?:\\\\?|/)Users(?:\\\\?|/)[^\\/\s]{1,64}(?:\\\\?|/)AppData(?:\\\\?|/)
        Local(?:\\\\?|/)Temp(?:\\\\?|/)[^\\/\s"'`<>:,;()\[\]{}]+)""",
    ),
    Normalizer(
        "port",
        "ports of this machine's addresses, and numbers behind the word port",
        r"(?i)(?P<kept>(?:\blocalhost|\b127\.0\.0\.1|\b0\.0\.0\.0|\[::1?\]):|\bport[ =:]{1,3})\d{1,5}(?!\d)",
    ),
    Normalizer("hex", "hexadecimal numbers of 16 or more digits", rf"(?i){_WORD}(?:0x)?[0-9a-f]{{16,}}(?![\w-])"),
    Normalizer(
        "duration",
        "numbers with a unit of time, such as 12 ms",
        r"(?<![\w.])\d{1,12}(?:[.,]\d{1,9})? ?(?:ns|µs|us|ms|milliseconds?|s|secs?|seconds?|min|minutes?|hours?)(?!\w)",
    ),
)
"""In the order in which they apply."""

NONE: Final = "none"


def named_normalizers(names: Sequence[str]) -> tuple[Normalizer, ...]:
    """The normalizers of these names; ``none`` alone is none of them. Raises ValueError with a sentence."""
    if list(names) == [NONE]:
        return ()
    known = {each.name for each in NORMALIZERS}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"{unknown[0]!a} is not a normalizer; there are {', '.join(known_names())} and none")
    return tuple(each for each in NORMALIZERS if each.name in names)


def known_names() -> list[str]:
    return [each.name for each in NORMALIZERS]
