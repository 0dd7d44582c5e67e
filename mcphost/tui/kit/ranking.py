"""Finds rows by typed words, and ranks them: matches in names first, then in titles, then in the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeVar

from textual.content import Content

HIT: Final = "$text-accent underline"
"""The style of matched letters; underlined, to be seen without colours."""

LEAD: Final = 16
"""Characters of an excerpt before its first match."""

_SEPARATORS: Final = str.maketrans(dict.fromkeys("_-./:", " "))
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOWHERE: Final = 1000
"""The rank of a word that is in none of the fields; three times the number of fields is less."""

Item = TypeVar("Item")


class SearchText:
    """The text of a row, prepared once, since each keystroke searches every row.

    ``fields`` start with the name. A match in one ranks before a match in those after it; ``more`` comes last.
    """

    __slots__ = ("all", "fields", "name")

    def __init__(self, *fields: str, more: str = "") -> None:
        self.all = "\n".join((*fields, more)).lower()
        spaced = list(map(_spaced, fields))
        self.name = spaced[0].replace(" ", "")
        self.fields = "\n".join(spaced)


class Search:
    """Words that must all occur in a row, in any order and case; ``words`` may contain blanks."""

    def __init__(self, typed: str = "", words: Iterable[str] | None = None) -> None:
        self.words = tuple(dict.fromkeys(typed.lower().split() if words is None else map(str.lower, words)))
        self._name = _spaced(typed).replace(" ", "")
        self._spaced = tuple(_spaced(word).strip() for word in self.words)
        longest_first = sorted(map(re.escape, self.words), key=len, reverse=True)
        self._pattern = re.compile("|".join(longest_first), re.IGNORECASE) if self.words else None

    def rank(self, text: SearchText) -> tuple[int, int]:
        """The rank of a text that has all words; lower is better: exact name, prefix of the name, then by the worst
        word.
        """
        if text.name.startswith(self._name):
            return (0, 0) if text.name == self._name else (1, 0)
        places = [_place(word, text.fields) for word in self._spaced]
        return 2 + max(places), sum(places)

    def best_first(self, items: Iterable[Item], texts: Iterable[SearchText]) -> list[Item]:
        """The matching items, best first, equally good ones in their order; ``texts`` has one for each item."""
        hits = list(zip(items, texts, strict=True))
        for word in self.words:
            hits = [hit for hit in hits if word in hit[1].all]
        by_rank: dict[tuple[int, int], list[Item]] = {}
        for item, text in hits:
            by_rank.setdefault(self.rank(text), []).append(item)
        return [item for rank in sorted(by_rank) for item in by_rank[rank]]

    def finds(self, shown: str) -> bool:
        """Does one of the words occur in this text?"""
        return self._pattern is not None and self._pattern.search(shown) is not None

    def mark(self, shown: str) -> Content:
        content = Content(shown)
        return content if self._pattern is None else content.highlight_regex(self._pattern, style=HIT)

    def excerpt(self, text: str) -> str:
        """The text from shortly before its first match; empty without a match."""
        found = self._pattern.search(text) if self._pattern else None
        start = 0 if found is None or found.start() <= LEAD else found.start() - LEAD
        return "" if found is None else f"…{text[start:]}" if start else text


@lru_cache(maxsize=1024)
def _spaced(text: str) -> str:
    """``getWeather``, ``get_weather`` and ``Get weather`` as `` get weather ``."""
    words = text if text.islower() else _HUMP.sub(" ", text).lower()
    return f" {' '.join(words.translate(_SEPARATORS).split())} "


def _place(word: str, fields: str) -> int:
    """In the first field, a whole word is 0, the start of a word 1, the inside of a word 2; other fields continue from
    3.
    """
    at = fields.find(word)
    if at < 0:
        return _NOWHERE
    start = fields.rfind("\n", 0, at) + 1
    field = fields[start : fields.find("\n", at) + 1 or None]
    return fields.count("\n", 0, at) * 3 + (0 if f" {word} " in field else 1 if f" {word}" in field else 2)
