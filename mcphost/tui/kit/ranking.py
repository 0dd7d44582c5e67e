"""Finds rows by typed words, and ranks them: matches in names first, then in titles, then in the rest.

Where only the letters of the words are found, in their order, that is the last rank.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, islice
from typing import Final, Generic, TypeVar

from textual.content import Content

HIT: Final = "$text-accent underline"
"""The style of matched letters; underlined, to be seen without colours."""

LEAD: Final = 16
"""Characters of an excerpt before its first match."""

CANDIDATES: Final = 1000
"""Matches of an index that are ranked; of a word that so many have, more would look the same."""

APART: Final = 4
"""Characters for each letter that they may be spread over; further apart they mean nothing."""

LETTERS: Final = 30
"""Letters that are looked for one by one; abbreviations are shorter."""

_SEPARATORS: Final = str.maketrans(dict.fromkeys("_-./:", " "))
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOWHERE: Final = 1000
"""The rank of a word that is in none of the fields; three times the number of fields is less."""
_LETTERS_ONLY: Final = 2 * _NOWHERE
"""The rank of a text that has only the letters."""

Rank = tuple[int, int]
"""Lower is better."""

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
        self.typed = typed
        self.words = tuple(dict.fromkeys(typed.lower().split() if words is None else map(str.lower, words)))
        self._name = _spaced(typed).replace(" ", "")
        self._spaced = tuple(_spaced(word).strip() for word in self.words)
        longest_first = sorted(map(re.escape, self.words), key=len, reverse=True)
        self._pattern = re.compile("|".join(longest_first), re.IGNORECASE) if self.words else None

    def rank(self, text: SearchText) -> Rank:
        """The rank of a text that has all words; lower is better: exact name, prefix of the name, then by the worst
        word.
        """
        if text.name.startswith(self._name):
            return (0, 0) if text.name == self._name else (1, 0)
        places = [_place(word, text.fields) for word in self._spaced]
        return 2 + max(places), sum(places)

    def best_first(self, items: Sequence[Item], texts: Sequence[SearchText]) -> list[Item]:
        """The matching items, best first, equally good ones in their order; ``texts`` has one for each item."""
        hits: Iterable[int] = range(len(items))  # a pair for each of very many items would start garbage collections
        for word in self.words:
            hits = [number for number in hits if word in texts[number].all]
        by_rank: dict[Rank, list[Item]] = {}
        for number in hits:
            by_rank.setdefault(self.rank(texts[number]), []).append(items[number])
        return [item for rank in sorted(by_rank) for item in by_rank[rank]]

    @property
    def by_letters(self) -> LetterSearch:
        """The search to use where this one finds nothing."""
        return LetterSearch(self.typed)

    @property
    def needles(self) -> tuple[str, str, str]:
        """Texts that occur in all matches: in the squeezed name, in the spaced fields, and anywhere."""
        longest = max(self.words, key=len)
        return self._name, _spaced(longest).strip(), longest

    def finds(self, shown: str) -> bool:
        """True if one of the words occurs in this text."""
        return self._pattern is not None and self._pattern.search(shown) is not None

    def mark(self, shown: str) -> Content:
        content = Content(shown)
        return content if self._pattern is None else content.highlight_regex(self._pattern, style=HIT)

    def excerpt(self, text: str) -> str:
        """The text from shortly before its first match; empty without a match."""
        found = self._pattern.search(text) if self._pattern else None
        start = 0 if found is None or found.start() <= LEAD else found.start() - LEAD
        return "" if found is None else f"…{text[start:]}" if start else text


class LetterSearch(Search):
    """Letters that must occur in a name, a title or another field in this order, from the start of a word on."""

    def __init__(self, typed: str) -> None:
        super().__init__(typed)
        letters = self._name[:LETTERS]
        self.pattern = re.compile(f" {_in_order(letters)}" if len(letters) > 1 else "(?!)")
        """Finds them in spaced fields; never for a single letter, which a search for words finds."""
        self._widest = APART * len(letters)
        shown = _in_order(letters, "({})")
        self._shown = [re.compile(f"{start}{shown}", re.IGNORECASE) for start in (r"(?<![^\W_])", "")]

    def letters_rank(self, text: SearchText) -> Rank | None:
        """Earlier fields are better, then shorter spans."""
        found = self.pattern.search(text.fields)
        return None if found is None else self.rank_of(found, 0)

    def rank_of(self, found: re.Match[str], start: int) -> Rank | None:
        """The rank of a match of `pattern` in fields that begin at ``start``; None: the letters are too far apart."""
        span = found.end() - found.start()
        return (_LETTERS_ONLY + found.string.count("\n", start, found.start()), span) if span <= self._widest else None

    def best_first(self, items: Sequence[Item], texts: Sequence[SearchText]) -> list[Item]:
        hits = [(rank, item) for item, text in zip(items, texts, strict=True) if (rank := self.letters_rank(text))]
        return [item for _, item in sorted(hits, key=lambda hit: hit[0])]

    def finds(self, shown: str) -> bool:
        return self._shown[0].search(shown) is not None

    def mark(self, shown: str) -> Content:
        content, found = Content(shown), next(filter(None, (each.search(shown) for each in self._shown)), None)
        if found is not None and found.end() - found.start() <= self._widest:
            for group in range(1, found.re.groups + 1):
                content = content.stylize(HIT, *found.span(group))
        return content

    def excerpt(self, text: str) -> str:
        return ""


def _in_order(letters: str, each: str = "{}") -> str:
    """A pattern for these letters with anything but a line's end between them; it never goes back."""
    escaped = [re.escape(letter) for letter in letters]
    return "".join(f"{f'[^{letter}{chr(92)}n]*' if n else ''}{each.format(letter)}" for n, letter in enumerate(escaped))


class SearchIndex(Generic[Item]):
    """Finds the best few of very many items. What costs time is done once, and at the speed of C."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._texts: list[SearchText] = []

    def add(self, item: Item, text: SearchText) -> None:
        """Add an item. None can be added after the first search."""
        self._items.append(item)
        self._texts.append(text)

    def prepare(self) -> Iterator[None]:
        """Do what the first search would do, in steps of some milliseconds."""
        for lines in ("_names", "_first_fields", "_fields", "_everything"):
            yield getattr(self, lines)

    def best(self, search: Search, most: int) -> list[tuple[Rank, Item, bool]]:
        """The best matches with their ranks, best first; True: only their letters match."""
        if not search.words or not self._items:
            return []
        found = self._having_words(search, most)
        ranked = sorted((search.rank(self._texts[number]), number) for number in found)[:most]
        best = [(rank, self._items[number], False) for rank, number in ranked]
        if len(best) < most:
            letters = sorted(islice(self._having_letters(search.by_letters, found), CANDIDATES))
            best += [(rank, self._items[number], True) for rank, number in letters[: most - len(best)]]
        return best

    def _having_words(self, search: Search, most: int) -> dict[int, None]:
        """All matches, or enough of those that rank best: each step looks at more than the one before."""
        name, spaced, anywhere = search.needles
        steps = [(self._everything, anywhere)]
        if len(search.words) == 1 and spaced:
            first = self._first_fields
            steps = [(self._names, f"\n{name}"), (first, f" {spaced}"), (first, spaced), (self._fields, spaced), *steps]
        found: dict[int, None] = {}
        for lines, needle in steps:
            for number in lines.having(needle):
                if all(word in self._texts[number].all for word in search.words):
                    found[number] = None
                    if len(found) >= CANDIDATES:
                        break
            if len(found) >= most:
                break
        return found

    def _having_letters(self, search: LetterSearch, without: dict[int, None]) -> Iterator[tuple[Rank, int]]:
        lines = self._fields
        for number, found in lines.matching(search.pattern):
            rank = None if number in without else search.rank_of(found, lines.starts[number] + 1)
            if rank is not None:
                yield rank, number

    @cached_property
    def _names(self) -> _Lines:
        return _Lines([text.name for text in self._texts])

    @cached_property
    def _first_fields(self) -> _Lines:
        return _Lines([text.fields.partition("\n")[0] for text in self._texts])

    @cached_property
    def _fields(self) -> _Lines:
        return _Lines([text.fields for text in self._texts])

    @cached_property
    def _everything(self) -> _Lines:
        return _Lines([text.all for text in self._texts])


class _Lines:
    """Texts joined into one, each behind a line's end."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.text = "".join(f"\n{text}" for text in texts)
        self.starts = [0, *accumulate(len(text) + 1 for text in texts)]

    def having(self, needle: str) -> Iterator[int]:
        """The numbers of the texts that have it."""
        at = self.text.find(needle)
        while at >= 0:
            number = bisect_right(self.starts, at) - 1
            yield number
            at = self.text.find(needle, self.starts[number + 1])

    def matching(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        """The numbers of the texts in which the pattern matches, and the first match in each."""
        found = pattern.search(self.text)
        while found is not None:
            number = bisect_right(self.starts, found.start()) - 1
            yield number, found
            found = pattern.search(self.text, self.starts[number + 1])


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
