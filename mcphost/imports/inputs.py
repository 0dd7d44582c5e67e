"""Puts answers into the table of a found server, in place of ``${input:ID}``.

A table's text is made of pieces: plain text, and placeholders, which are references and inputs. Plain text is escaped
when the pieces are joined, so that no answer and no foreign text becomes a reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mcphost.errors import ConfigError
from mcphost.imports.found import Input
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line

_PLACEHOLDER: Final = re.compile(r"\$\$\{|\$\{[^}]*\}")
_INPUT: Final = re.compile(r"\$\{input:([\w.-]{1,64})\}")
_ILLEGAL: Final = re.compile(r"[^\w.-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A reference or an ``${input:ID}`` as written in a table."""

    text: str


def placeholder(id: str) -> Placeholder:
    """The place where the answer to the input ``id`` belongs."""
    return Placeholder(f"${{input:{id}}}")


def input_id(name: str) -> str:
    """Make a legal id for an input of any name."""
    return _ILLEGAL.sub("-", name).strip("-")[:64] or "value"


def literal(text: str) -> str:
    """Escape plain text for a table."""
    return text.replace("${", "$${")


def split(text: str) -> Iterator[str | Placeholder]:
    """Split a table's text into plain text, unescaped, and placeholders."""
    position = 0
    for match in _PLACEHOLDER.finditer(text):
        if match.start() > position:
            yield text[position : match.start()]
        position = match.end()
        yield "${" if match[0] == "$${" else Placeholder(match[0])
    if position < len(text):
        yield text[position:]


def join(pieces: Iterable[str | Placeholder]) -> str:
    """Write pieces as a table's text; the reverse of `split`.

    Raises ConfigError if a ``$`` is right before a placeholder, which no text of a table can express.
    """
    whole, plain = "", ""
    for piece in pieces:
        if isinstance(piece, str):
            plain += piece
            continue
        if plain.endswith("$"):
            raise ConfigError("a $ is right before a value to fill in, which cannot be written")
        whole, plain = whole + literal(plain) + piece.text, ""
    return whole + literal(plain)


def inputs_in(value: object) -> Iterator[str]:
    """The ids of the inputs in a table, or in any part of one."""
    if isinstance(value, str):
        placeholders = (piece for piece in split(value) if isinstance(piece, Placeholder))
        yield from (match[1] for each in placeholders if (match := _INPUT.fullmatch(each.text)))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from inputs_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from inputs_in(each)


def fill_in(table: Mapping[str, Any], inputs: Iterable[Input], answers: Mapping[str, str]) -> dict[str, Any]:
    """Return the table with the answer to each input, else its default.

    Answers are texts of the configuration, in which references count: `literal` escapes plain text. Without a value,
    an optional text is left out, such as a word of ``args``, a header or a variable. Raises ConfigError for an input
    that has no value and cannot be left out, and for an answer that is not among its choices.
    """
    asked = tuple(inputs)
    values = {each.id: _values(each, answers.get(each.id)) for each in asked}
    flags = {each.id: each.flag for each in asked}
    filled: dict[str, Any] = {}
    for key, part in table.items():
        if key == "args":
            filled[key] = list(_words(part, values, flags))
        elif isinstance(part, Mapping):
            filled[key] = _filled_table(part, values)
        else:
            filled[key] = _one(part, values) if isinstance(part, str) else part
    return {key: part for key, part in filled.items() if part or not table[key]}


def _values(asked: Input, answer: str | None) -> tuple[str, ...]:
    answer = literal(asked.default) if answer is None and asked.default is not None else answer
    if not answer:
        if asked.required:
            raise ConfigError(f"{asked.id} needs a value")
        return ()
    values = tuple(filter(None, answer.splitlines())) if asked.several else (answer,)
    for value in values:
        plain = all(isinstance(piece, str) for piece in split(value))
        if asked.choices and plain and "".join(map(str, split(value))) not in asked.choices:
            allowed = ", ".join(show_line(each, 40) for each in asked.choices[:20])
            raise ConfigError(f"{asked.id} must be one of: {allowed}")
    return values


_Values = Mapping[str, tuple[str, ...]]


def _filled_table(table: Mapping[str, Any], values: _Values) -> dict[str, Any]:
    given = {key: part for key, part in table.items() if _is_given(part, values)}
    return {key: _one(part, values) if isinstance(part, str) else part for key, part in given.items()}


def _is_given(part: object, values: _Values) -> bool:
    return all(values.get(id) for id in inputs_in(part))


def _one(text: str, values: _Values) -> str:
    """A text with its values; of an input with several, all with commas between them."""
    return _filled(text, {id: ",".join(several) for id, several in values.items()})


def _filled(text: str, values: Mapping[str, str]) -> str:
    pieces: list[str | Placeholder] = []
    for piece in split(text):
        match = _INPUT.fullmatch(piece.text) if isinstance(piece, Placeholder) else None
        if match is None:
            pieces.append(piece)
        elif not (value := values.get(match[1], "")):
            raise ConfigError(f"{match[1]} needs a value")
        else:
            pieces += split(value)
    return join(pieces)


def _words(args: Iterable[str], values: _Values, flags: Mapping[str, str]) -> Iterator[str]:
    pending: str | None = None  # a word that may be the flag of the next one
    for word in args:
        ids = list(inputs_in(word))
        flag = next((flags[id] for id in ids if flags.get(id)), "")
        together = pending is not None and flag != "" and pending == literal(flag)
        if pending is not None and not together:
            yield pending
        pending = None
        if not ids:
            pending = word
        elif _is_given(word, values):
            for filled in _repeated(word, ids, values):
                yield from (literal(flag), filled) if together else (filled,)
    if pending is not None:
        yield pending


def _repeated(word: str, ids: list[str], values: _Values) -> Iterator[str]:
    if len(ids) == 1:
        yield from (_filled(word, {ids[0]: each}) for each in values[ids[0]])
    else:
        yield _one(word, values)
