"""Parses ``${…}`` references in configuration values; `mcphost.config.values` resolves them.

${NAME}  ${NAME:-default}  ${keyring:NAME}  ${file:PATH}  and $${ for a literal ${
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from mcphost.lazy_dataclass import dataclass

VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
"""Pattern of a variable that a reference may name, as in a shell."""
_OPENING = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)", re.DOTALL)
_VARIABLE = re.compile(rf"({VARIABLE})(?::-(.*))?", re.DOTALL)
_FOREIGN = re.compile(r"(?:env:(?://)?|input:)([\w.-]{1,64})")
_SPELLINGS = "write ${NAME}, ${NAME:-default}, ${keyring:NAME} or ${file:PATH}, and $${ for a literal ${"


@dataclass(frozen=True, slots=True)
class Reference:
    """One ``${…}``. ``name`` is the variable, keyring entry or path; ``text`` is the reference as written."""

    kind: Literal["env", "keyring", "file"]
    name: str
    default: str | None
    text: str

    @property
    def origin(self) -> str:
        """The source of the value, for people."""
        return {"env": "environment variable", "keyring": "keyring entry", "file": "file"}[self.kind] + f" {self.name}"


class MalformedReferenceError(ValueError):
    """A ``${`` without a valid reference. The message says what to write, and repeats no possible secret."""


def parse(text: str) -> tuple[str | Reference, ...]:
    """Split ``text`` into literal pieces and references. Raises MalformedReferenceError."""
    return tuple(_pieces(text))


def references(text: str) -> tuple[Reference, ...]:
    """List the references in ``text``, for display. Raises MalformedReferenceError."""
    return tuple(piece for piece in _pieces(text) if isinstance(piece, Reference))


def substituted(text: str, values: Mapping[str, str]) -> str:
    """``text`` with these values, which may hold references, in place of references to variables of their names.

    Nothing is looked up, and all other references stay. What cannot be read stays, too: its validation names it.
    """

    def value_of(found: re.Match[str]) -> str:
        variable = None if found[1] is None else _VARIABLE.fullmatch(found[1])
        return found[0] if variable is None or not found[2] else values.get(variable[1], found[0])

    return _OPENING.sub(value_of, text)


def references_within(value: object, where: str = "") -> Iterator[tuple[str, Reference]]:
    """List the references in every text of ``value``, a dumped model, each with its dotted key.

    Malformed texts are skipped: they are never resolved.
    """
    if isinstance(value, str):
        with suppress(MalformedReferenceError):
            yield from ((where, reference) for reference in references(value))
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from references_within(each, f"{where}.{key}" if where else str(key))
    elif isinstance(value, Sequence):
        for index, each in enumerate(value):
            yield from references_within(each, f"{where}[{index}]")


def _pieces(text: str) -> Iterator[str | Reference]:
    position = 0
    for match in _OPENING.finditer(text):
        if match.start() > position:
            yield text[position : match.start()]
        position = match.end()
        yield "${" if match[1] is None else _reference(match)
    if position < len(text):
        yield text[position:]


def _reference(match: re.Match[str]) -> Reference:
    body, text = match[1], match[0]
    if not match[2]:
        raise MalformedReferenceError(f"a ${{ is never closed; {_SPELLINGS}")
    kind, colon, name = body.partition(":")
    if colon and name and kind in ("keyring", "file"):
        return Reference("keyring" if kind == "keyring" else "file", name, None, text)
    if (variable := _VARIABLE.fullmatch(body)) and "${" not in (variable[2] or ""):
        return Reference("env", variable[1], variable[2], text)
    raise MalformedReferenceError(_malformed(body))


def _malformed(body: str) -> str:
    if foreign := _FOREIGN.fullmatch(body):
        return f"${{{body}}} is another program's spelling; write ${{{foreign[1]}}}"
    if "${" in body:
        return "a default may not hold another reference"
    return f"a ${{…}} does not hold a reference; {_SPELLINGS}"
