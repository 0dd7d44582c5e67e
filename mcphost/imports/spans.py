"""Finds where the parts of an entry stand in a file's text, so that one is edited and every other byte is kept.

Reads JSON with comments (JSON5) and TOML that `mcphost.imports.documents` has already found valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NoReturn

from mcphost.errors import ConfigError
from mcphost.imports.documents import read_document
from mcphost.lazy_dataclass import dataclass

Editable = Literal["json", "toml"]
"""The formats in which an entry can be edited."""

Span = tuple[int, int]
"""Where a piece of text begins and ends."""

EntryPath = tuple[str | int, ...]
"""The keys that lead to an entry; a number is a place in a list."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an entry, or of a table in it."""

    path: tuple[str, ...]
    """Its keys, from the entry on."""
    keys: tuple[Span, ...]
    """Where the last of these keys are written; a header or a dotted key of TOML writes several."""
    value: Span
    """Empty for the header of a table."""
    cut: Span
    """The text to cut out to remove it, with its comma or its line."""
    separator: str
    """The text between it and a member that is inserted behind it, without the comma."""
    in_list: bool
    """True if members have commas between them."""


@dataclass(frozen=True, slots=True)
class EntryText:
    """An entry in the text of a file."""

    regions: tuple[Span, ...]
    """Its text; TOML may spread an entry over several tables."""
    members: tuple[Member, ...]
    """In the order of the text, members of its tables included."""

    def member(self, *path: str) -> Member | None:
        return next((each for each in self.members if each.path == path and each.value[1]), None)

    def at(self, *path: str) -> list[Member]:
        """All that is written of the member at this path."""
        return [each for each in self.members if each.path[: len(path)] == path]


class EntryMissingError(LookupError):
    """Nothing is at the path of an entry."""


def find_entry(text: str, kind: Editable, path: EntryPath) -> EntryText:
    """Find the entry at this path. Raises EntryMissingError, and ConfigError if it cannot be edited in place."""
    return _JsonText(text).entry(path) if kind == "json" else _TomlText(text).entry(path)


def items_of(text: str, kind: Editable, array: Span) -> list[Span]:
    """Where the items of an array are."""
    start = array[0]
    if text[start : start + 1] != "[":
        _refuse()
    return _JsonText(text).items(start)[0] if kind == "json" else _TomlText(text).items(start)[0]


def _refuse(why: str = "is written in a way that mcphost cannot edit in place") -> NoReturn:
    raise ConfigError(why)


def _twice(key: str) -> NoReturn:
    _refuse(f"has the key {key[:64]!a} twice, and programs differ in which of them counts")


def _key_of(written: str, kind: Editable) -> str:
    """The name that a written key stands for."""
    document = read_document((f"{{{written}:0}}" if kind == "json" else f"{written} = 0").encode(), kind)
    if not isinstance(document, dict) or len(document) != 1:
        _refuse()
    return str(next(iter(document)))


_JSON_GAP: Final = re.compile(r"(?:[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_JSON_STRING: Final = re.compile(r"""("|')[^"'\\]*(?:(?:\\.|(?!\1)["'])[^"'\\]*)*\1""", re.DOTALL)
_JSON_WORD: Final = re.compile(r"[^\s,:\[\]{}/\"']+")
_DECODER: Final = json.JSONDecoder()


class _JsonText:
    def __init__(self, text: str) -> None:
        self._text = text

    def entry(self, path: EntryPath) -> EntryText:
        start = self._gap(0)
        for step in path:
            start = self._inside(start, step)
        end = self._end(start)
        if not self._text.startswith("{", start):
            _refuse()
        return EntryText(((start, end),), tuple(self._members_below(start, ())))

    def items(self, start: int) -> tuple[list[Span], int]:
        """Where the items of the array are, and where it ends."""
        items, position = list[Span](), self._gap(start + 1)
        while not self._text.startswith("]", position):
            items.append((position, self._end(position)))
            position = self._behind_comma(items[-1][1], "]")
        return items, position + 1

    def _inside(self, start: int, step: str | int) -> int:
        if isinstance(step, int):
            items = self.items(start)[0] if self._text.startswith("[", start) else []
            if step >= len(items):
                raise EntryMissingError
            return items[step][0]
        members = self._members(start)[0] if self._text.startswith("{", start) else []
        found = [value for key, value in members if _key_of(self._text[slice(*key)], "json") == step]
        if not found:
            raise EntryMissingError
        if len(found) > 1:
            _twice(step)
        return found[0][0]

    def _members_below(self, start: int, path: tuple[str, ...]) -> Iterator[Member]:
        """The members of the object that begins at ``start``, and those of objects in it."""
        members, _ = self._members(start)
        seen = set[str]()
        for index, (key, value) in enumerate(members):
            name = _key_of(self._text[slice(*key)], "json")
            if name in seen:
                _twice(name)
            seen.add(name)
            before = members[index - 1][1][1] if index else None
            follows = members[index + 1][0][0] if index + 1 < len(members) else None
            cut = (key[0], follows) if follows is not None else (key[0] if before is None else before, value[1])
            gap = self._text[(start + 1 if before is None else before) : key[0]].lstrip(",")
            inner = (*path, name)
            yield Member(inner, (key,), value, cut, gap if gap and not gap.strip() else " ", in_list=True)
            if self._text.startswith("{", value[0]):
                yield from self._members_below(value[0], inner)

    def _members(self, start: int) -> tuple[list[tuple[Span, Span]], int]:
        """The keys and values of the object, and where it ends."""
        members, position = list[tuple[Span, Span]](), self._gap(start + 1)
        while not self._text.startswith("}", position):
            key = position, self._scalar_end(position)
            colon = self._gap(key[1])
            if not self._text.startswith(":", colon):
                _refuse()
            position = self._gap(colon + 1)
            members.append((key, (position, self._end(position))))
            position = self._behind_comma(members[-1][1][1], "}")
        return members, position + 1

    def _behind_comma(self, position: int, end: str) -> int:
        position = self._gap(position)
        if self._text.startswith(",", position):
            return self._gap(position + 1)
        if not self._text.startswith(end, position):
            _refuse()
        return position

    def _end(self, start: int) -> int:
        if self._text[start : start + 1] not in ("{", "["):
            return self._scalar_end(start)
        try:  # what is plain JSON is skipped by the decoder, which is much faster
            return _DECODER.raw_decode(self._text, start)[1]
        except (ValueError, RecursionError):
            return (self._members if self._text[start] == "{" else self.items)(start)[1]

    def _scalar_end(self, start: int) -> int:
        found = (_JSON_STRING if self._text[start : start + 1] in ("'", '"') else _JSON_WORD).match(self._text, start)
        return found.end() if found else _refuse()

    def _gap(self, position: int) -> int:
        found = _JSON_GAP.match(self._text, position)
        return found.end() if found else position


_TOML_GAP: Final = re.compile(r"(?:[\s\ufeff]+|#[^\n]*)*")
_TOML_BLANKS: Final = re.compile(r"[ \t]*")
_TOML_KEY: Final = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_TOML_STRING: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}|\'\'\'(?:[^\']|\'(?!\'\'))*\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)
_TOML_WORD: Final = re.compile(r"[^,\]}#\r\n]+")


@dataclass(frozen=True, slots=True)
class _Statement:
    """A line of TOML: a header or a key with its value."""

    path: tuple[str, ...]
    member: Member
    """With the whole path."""
    lines: Span


class _TomlText:
    def __init__(self, text: str) -> None:
        self._text = text

    def entry(self, path: EntryPath) -> EntryText:
        wanted = tuple(map(str, path))
        statements = [each for each in self._statements() if each.path[: len(wanted)] == wanted]
        regions = _joined(self._text, [each.lines for each in statements])
        found = [each.member for each in statements]
        inner = [each for each in self._below(found) if len(each.path) > len(wanted)]
        if not statements:
            holders = [each.member for each in self._statements() if wanted[: len(each.path)] == each.path]
            inner = [each for each in self._below(holders) if each.path[: len(wanted)] == wanted]
            whole = next((each for each in inner if each.path == wanted), None)
            if whole is None:
                raise EntryMissingError
            regions = ((whole.keys[-1][0], whole.value[1]),)
        below = len(wanted)
        members = tuple(
            Member(each.path[below:], each.keys, each.value, each.cut, each.separator, each.in_list)
            for each in inner
            if len(each.path) > below
        )
        return EntryText(regions, members)

    def items(self, start: int) -> tuple[list[Span], int]:
        items, position = list[Span](), self._gap(start + 1)
        while not self._text.startswith("]", position):
            items.append((position, self._end(position)))
            position = self._gap(items[-1][1])
            if self._text.startswith(",", position):
                position = self._gap(position + 1)
            elif not self._text.startswith("]", position):
                _refuse()
        return items, position + 1

    def _statements(self) -> Iterator[_Statement]:
        position, table, number = self._gap(0), tuple[str, ...](), 0
        while position < len(self._text):
            start = position
            if self._text.startswith("[", position):
                brackets = 2 if self._text.startswith("[[", position) else 1
                names, spans, position = self._keys(position + brackets)
                position += brackets
                number += 1
                # Tables in a list are not entries: a name that no key has keeps them apart.
                table = names if brackets == 1 else (*names, f"\0{number}")
                value = 0, 0
            else:
                names, spans, position = self._keys(position)
                if not self._text.startswith("=", position):
                    _refuse()
                begin = self._blanks(position + 1)
                position = self._end(begin)
                value, names = (begin, position), (*table, *names)
            line = self._text.find("\n", position)
            lines = self._text.rfind("\n", 0, start) + 1, len(self._text) if line < 0 else line + 1
            separator = ("\r\n" if self._text[: lines[1]].endswith("\r\n") else "\n") + self._text[lines[0] : start]
            path = table if value == (0, 0) else names
            yield _Statement(path, Member(path, spans, value, lines, separator, in_list=False), lines)
            position = self._gap(lines[1])

    def _below(self, members: Iterable[Member]) -> Iterator[Member]:
        """These members, and those of inline tables in them."""
        for each in members:
            yield each
            if self._text.startswith("{", each.value[0]) and each.value[1]:
                yield from self._below(self._inline(each.value[0], each.path)[0])

    def _inline(self, start: int, path: tuple[str, ...]) -> tuple[list[Member], int]:
        found, position = list[tuple[tuple[str, ...], tuple[Span, ...], Span]](), self._gap(start + 1)
        while not self._text.startswith("}", position):
            names, spans, position = self._keys(position)
            begin = self._gap(position + 1)
            end = self._end(begin)
            found.append((names, spans, (begin, end)))
            position = self._gap(end)
            if self._text.startswith(",", position):
                position = self._gap(position + 1)
            elif not self._text.startswith("}", position):
                _refuse()
        members = []
        for index, (names, spans, value) in enumerate(found):
            first, before = spans[0][0], found[index - 1][2][1] if index else spans[0][0]
            cut = (first, found[index + 1][1][0][0]) if index + 1 < len(found) else (before, value[1])
            members.append(Member((*path, *names), spans, value, cut, " ", in_list=True))
        return members, position + 1

    def _keys(self, position: int) -> tuple[tuple[str, ...], tuple[Span, ...], int]:
        names, spans = list[str](), list[Span]()
        while True:
            found = _TOML_KEY.match(self._text, self._blanks(position))
            if found is None:
                _refuse()
            names.append(_key_of(found[0], "toml"))
            spans.append(found.span())
            position = self._blanks(found.end())
            if not self._text.startswith(".", position):
                return tuple(names), tuple(spans), position
            position += 1

    def _end(self, start: int) -> int:
        letter = self._text[start : start + 1]
        if letter == "[":
            return self.items(start)[1]
        if letter == "{":
            return self._inline(start, ())[1]
        found = (_TOML_STRING if letter in ("'", '"') else _TOML_WORD).match(self._text, start)
        if found is None:
            _refuse()
        return start + len(found[0].rstrip())

    def _gap(self, position: int) -> int:
        found = _TOML_GAP.match(self._text, position)
        return found.end() if found else position

    def _blanks(self, position: int) -> int:
        found = _TOML_BLANKS.match(self._text, position)
        return found.end() if found else position


def _joined(text: str, regions: Sequence[Span]) -> tuple[Span, ...]:
    """The regions, joined where only blanks and comments are between them."""
    joined = list[Span]()
    for start, end in regions:
        gap = _TOML_GAP.match(text, joined[-1][1]) if joined else None
        if joined and gap is not None and gap.end() >= start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return tuple(joined)
