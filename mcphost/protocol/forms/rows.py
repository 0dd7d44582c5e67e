"""The parts of a form that depend on what was entered: rows of lists and maps, and the branch of a choice.

Their entries are the number of rows and the number of the branch. Rows are added, removed and moved by renumbering the
paths behind them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

from mcphost.protocol.forms.fields import ABSENT, GROWING, KEY, FieldKind, FormField, Path
from mcphost.protocol.schema.messages import path_text

MOST_ROWS: Final = 50
"""Rows of one list; a longer one is edited as JSON."""

MOST_DRAWN: Final = 250
"""Fields and titles of a whole form, with all rows."""

BASE: Final = -1_000
"""In a path behind a row: the object that the row was filled from, which may hold keys that are no fields."""

CHOSEN: Final = -1_001
"""In a path behind a choice: the branch that the value chose from which the form was filled."""

T = TypeVar("T")


def has_rows(field: FormField, entries: Mapping[Path, Any]) -> bool:
    """Are there rows, or is a branch chosen? Else the field is empty, or holds JSON text."""
    entry = entries.get(field.path, ABSENT)
    return field.kind in GROWING and isinstance(entry, int) and not isinstance(entry, bool)


def parts_of(field: FormField, entries: Mapping[Path, Any]) -> tuple[FormField, ...]:
    """The fields of the rows, each of a map's behind its key; or the one of the branch."""
    if not has_rows(field, entries) or field.source is None:
        return ()
    source, entry = field.source, entries[field.path]
    if field.kind is FieldKind.BRANCH:
        return (source.part(field, entry),) if 0 <= entry < len(source.branches) else ()
    rows = range(min(entry, MOST_ROWS))
    if field.kind is FieldKind.MAP:
        return tuple(part for row in rows for part in (source.key(field, row), source.part(field, row)))
    return tuple(source.part(field, row) for row in rows)


def drawn(fields: tuple[FormField, ...], entries: Mapping[Path, Any]) -> Iterator[FormField]:
    """Yield every field that is on screen, each group and each growing field before its parts."""
    for field in fields:
        yield field
        yield from drawn(field.fields if field.kind is FieldKind.GROUP else parts_of(field, entries), entries)


def row_of(path: Path) -> tuple[Path, int] | None:
    """The list or map, and the number of the row in it, that hold ``path``; the innermost ones."""
    for place in reversed(range(len(path))):
        part = path[place]
        if isinstance(part, int) and part >= 0:
            return path[:place], part
    return None


def place_of(path: Path, entries: Mapping[Path, Any]) -> tuple[str | int, ...]:
    """Where the value of a field is in the arguments."""
    place: list[str | int] = []
    for end, part in enumerate(path):
        if isinstance(part, int) and part >= 0:
            key = entries.get((*path[: end + 1], KEY))
            place.append(part if key is None else str(key))
        elif isinstance(part, str):
            place.append(part)
    return tuple(place)


def place_text(place: tuple[str | int, ...]) -> str:
    """Write a place like ``items[2].name``, as problems name theirs; safe to show."""
    return path_text(place)


def renumbered(mapping: Mapping[Path, T], path: Path, numbers: Mapping[int, int]) -> dict[Path, T]:
    """Return what belongs to each field after the rows of ``path`` have these new numbers; other rows are gone."""
    found: dict[Path, T] = {}
    at = len(path)
    for each, value in mapping.items():
        if len(each) <= at or each[:at] != path:
            found[each] = value
        else:
            row = each[at]
            number = numbers.get(row) if isinstance(row, int) else None
            if number is not None:
                found[(*path, number, *each[at + 1 :])] = value
    return found


def numbers_with(count: int, row: int) -> dict[int, int]:
    """The new numbers of ``count`` rows, of which one more is to be ``row``."""
    return {number: number + (number >= row) for number in range(count)}


def numbers_without(count: int, row: int) -> dict[int, int]:
    """The new numbers of ``count`` rows without ``row``."""
    return {number: number - (number > row) for number in range(count) if number != row}


def numbers_swapped(count: int, row: int, other: int) -> dict[int, int]:
    """The new numbers of ``count`` rows of which two change places."""
    return {number: {row: other, other: row}.get(number, number) for number in range(count)}
