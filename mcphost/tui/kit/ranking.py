"""Finds rows by typed words and ranks them: a hit in a name comes before one in a title or in a description."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeVar

from textual.content import Content

HIT: Final = "$text-accent underline"
"""The style of matched letters; the line below them is seen without colour too."""

LEAD: Final = 16
"""Characters of an excerpt before the first match."""

_SEPARATORS: Final = str.maketrans(dict.fromkeys("_-./:", " "))
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOWHERE: Final = 1000
"""The place of a word that is in none of the fields; there are fewer than a third as many of those."""

Item = TypeVar("Item")


class SearchText:
    """The text of one row, prepared once, as every keystroke reads that of every row.

    ``fields`` begin with the name; a hit in one ranks before a hit in those after it, and all before one in ``more``.
    """

    __slots__ = ("all", "fields", "name")

    def __init__(self, *fields: str, more: str = "") -> None:
        self.all = "\n".join((*fields, more)).lower()
        spaced = list(map(_spaced, fields))
        self.name = spaced[0].replace(" ", "")
        self.fields = "\n".join(spaced)


class Search:
    """Words as typed, all of which must occur in a row, in any order and case; ``words`` may hold blanks."""

    def __init__(self, typed: str = "", words: Iterable[str] | None = None) -> None:
        self.words = tuple(dict.fromkeys(typed.lower().split() if words is None else map(str.lower, words)))
        self._name = _spaced(typed).replace(" ", "")
        self._spaced = tuple(_spaced(word).strip() for word in self.words)
        longest_first = sorted(map(re.escape, self.words), key=len, reverse=True)
        self._pattern = re.compile("|".join(longest_first), re.IGNORECASE) if self.words else None

    def rank(self, text: SearchText) -> tuple[int, int]:
        """The lower, the better a text that has all words: exact name, its prefix, then by the word that fits worst."""
        if text.name.startswith(self._name):
            return (0, 0) if text.name == self._name else (1, 0)
        places = [_place(word, text.fields) for word in self._spaced]
        return 2 + max(places), sum(places)

    def best_first(self, items: Iterable[Item], texts: Iterable[SearchText]) -> list[Item]:
        """The items that match, best first; equally good ones in their own order. ``texts`` has one for each item."""
        hits = list(zip(items, texts, strict=True))
        for word in self.words:
            hits = [hit for hit in hits if word in hit[1].all]
        by_rank: dict[tuple[int, int], list[Item]] = {}
        for item, text in hits:
            by_rank.setdefault(self.rank(text), []).append(item)
        return [item for rank in sorted(by_rank) for item in by_rank[rank]]

    def finds(self, shown: str) -> bool:
        """Does some word occur in this text?"""
        return self._pattern is not None and self._pattern.search(shown) is not None

    def mark(self, shown: str) -> Content:
        """The text with its matched letters marked."""
        content = Content(shown)
        return content if self._pattern is None else content.highlight_regex(self._pattern, style=HIT)

    def excerpt(self, text: str) -> str:
        """The text from shortly before its first match on; empty where nothing matches."""
        found = self._pattern.search(text) if self._pattern else None
        start = 0 if found is None or found.start() <= LEAD else found.start() - LEAD
        return "" if found is None else f"…{text[start:]}" if start else text


@lru_cache(maxsize=1024)
def _spaced(text: str) -> str:
    """``getWeather``, ``get_weather`` and ``Get weather`` as `` get weather ``."""
    words = text if text.islower() else _HUMP.sub(" ", text).lower()
    return f" {' '.join(words.translate(_SEPARATORS).split())} "


def _place(word: str, fields: str) -> int:
    """A whole word of the first field is 0, the start of a word 1, the inside of one 2; so on with the other fields."""
    at = fields.find(word)
    if at < 0:
        return _NOWHERE
    start = fields.rfind("\n", 0, at) + 1
    field = fields[start : fields.find("\n", at) + 1 or None]
    return fields.count("\n", 0, at) * 3 + (0 if f" {word} " in field else 1 if f" {word}" in field else 2)
