"""Finds the line of a key or list element in a TOML text, so that errors can name it; ``tomllib`` reports none.

The text must be valid TOML.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mcphost.json_values import KeyPath

_TOKEN = re.compile(
    r'''
      (?P<string> """(?>(?:[^"\\]|\\.|"{1,2}(?!"))*)"{3,5} | \'\'\'(?>(?:[^']|'{1,2}(?!'))*)'{3,5}
                | "(?>(?:[^"\\\n]|\\.)*)" | '[^'\n]*+' )
    | (?P<bare> [A-Za-z0-9_-]++ )
    | (?P<mark> [][{}=,.\n] )
    | (?P<skipped> \#[^\n]*+ | [ \t\r]++ | . )
    ''',
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


class KeyLines:
    """The lines (from 1) of all keys and list elements of one text."""

    def __init__(self, text: str) -> None:
        self._lines: Mapping[KeyPath, int]
        try:
            self._lines = _Scanner(text).scan()
        except RecursionError:
            self._lines = {}  # nested too deeply: messages then name no line

    def holds(self, path: KeyPath) -> bool:
        """True if the text contains exactly this path."""
        return path in self._lines

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line of ``path``, or of the innermost part of it that the text has."""
        for length in range(len(path), 0, -1):
            if (line := self._lines.get(path[:length])) is not None:
                return line
        return None


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for match in _TOKEN.finditer(text):
        kind, found = str(match.lastgroup), match[0]
        if kind != "skipped":
            yield _Token(kind, found, line)
        line += found.count("\n")


class _Scanner:
    """Walks once over the tokens and notes where each path begins."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._end = _Token("mark", "\n", 0)
        self._now = self._end
        self._found: dict[KeyPath, int] = {}
        self._counts: dict[KeyPath, int] = {}

    def scan(self) -> Mapping[KeyPath, int]:
        table: KeyPath = ()
        self._step()
        while self._now.line:
            if self._now.text == "\n":
                self._step()
            elif self._now.text == "[":
                table = self._header()
            else:
                self._pair(table)
        return self._found

    def _step(self) -> None:
        self._now = next(self._tokens, self._end)

    def _note(self, path: KeyPath, line: int) -> None:
        for length in range(len(path), 0, -1):
            if path[:length] in self._found:
                break
            self._found[path[:length]] = line

    def _header(self) -> KeyPath:
        line = self._now.line
        self._step()
        double = self._now.text == "[" and self._now.kind == "mark"
        if double:
            self._step()
        path = self._numbered(self._key())
        if double:
            count = self._counts.get(path, -1) + 1
            self._counts[path] = count
            path = (*path, count)
        self._note(path, line)
        self._found[path] = line  # overrides the header of an earlier subtable
        self._skip_to("\n")
        return path

    def _numbered(self, keys: tuple[str, ...]) -> KeyPath:
        """Insert the positions of the ``[[…]]`` elements that a header's keys lead through."""
        path: KeyPath = ()
        for position, key in enumerate(keys):
            path = (*path, key)
            if position < len(keys) - 1 and path in self._counts:
                path = (*path, self._counts[path])
        return path

    def _key(self) -> tuple[str, ...]:
        parts = []
        while self._now.kind in ("bare", "string") or self._now.text == ".":
            if self._now.kind != "mark":
                parts.append(_key_text(self._now))
            self._step()
        return tuple(parts)

    def _pair(self, table: KeyPath) -> None:
        line = self._now.line
        path = (*table, *self._key())
        self._note(path, line)
        self._step()  # the "="
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        opening = self._now.text if self._now.kind == "mark" else ""
        if opening in ("[", "{"):
            self._step()
            inside = self._array if opening == "[" else self._inline_table
            inside(path)
            self._step()
            return
        while self._now.line and (self._now.kind != "mark" or self._now.text == "."):
            self._step()

    def _array(self, path: KeyPath) -> None:
        index = 0
        while self._now.line and self._now.text != "]":
            if self._now.kind == "mark" and self._now.text not in ("[", "{"):
                self._step()
                continue
            self._note((*path, index), self._now.line)
            self._value((*path, index))
            index += 1

    def _inline_table(self, path: KeyPath) -> None:
        while self._now.line and self._now.text != "}":
            if self._now.text in ("\n", ","):
                self._step()
            else:
                self._pair(path)

    def _skip_to(self, mark: str) -> None:
        while self._now.line and self._now.text != mark:
            self._step()


def _key_text(token: _Token) -> str:
    if token.kind == "bare":
        return token.text
    return str(tomllib.loads(f"key = {token.text}")["key"])
