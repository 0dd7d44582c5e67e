"""Fills a form, edits its rows and branches, and collects the arguments from what was entered.

The entry of a list or map is its number of rows, that of a choice the number of its branch. Rows are added, removed and
moved by renumbering the paths behind them. `collect` checks each field by itself;
`mcphost.host.tool_calls.validation` checks the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from mcphost.json_values import KeyPath
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.protocol.forms.fields import (
    ABSENT,
    GROWING,
    KEY,
    FieldKind,
    FieldLimits,
    FieldPath,
    Form,
    FormField,
    leaves,
    read_form,
)
from mcphost.protocol.forms.values import FieldError, check_size, is_empty, parse, render, same
from mcphost.protocol.schema.messages import path_text

__all__ = ["ABSENT", "GROWING", "FieldError", "FieldKind", "FieldLimits", "FieldPath", "Form", "FormField"]
__all__ += ["collect", "drawn", "fill", "fill_part", "is_empty", "leaves", "outside_elicitation", "parse", "read_form"]
__all__ += ["KEY", "RowsChanged", "add_row", "choose", "move_row", "place_of", "place_text", "remove_row", "render"]
__all__ += ["renumbered", "row_of"]

MOST_ROWS: Final = 50
"""Rows of one list; a longer one is edited as JSON."""

MOST_DRAWN: Final = 250
"""Fields and titles of a whole form, with all rows."""

BASE: Final = -1_000
"""In a path behind a row: the object that the row was filled from, which may hold keys without fields."""

CHOSEN: Final = -1_001
"""In a path behind a choice: the branch that the value chose from which the form was filled."""

T = TypeVar("T")

_PRIMITIVES = ("string", "number", "integer", "boolean")


def fill(form: Form, arguments: Mapping[str, Any] | None = None) -> dict[FieldPath, Any]:
    """Return what to put into each field: for ``arguments``, or without any for the defaults of the schema.

    A growing field gets the number of its rows, or of its branch; JSON text if the value has too many parts to draw, or
    is of another kind.
    """
    filling = _Filling(fresh=arguments is None)
    start = _defaults(form.fields) if arguments is None else arguments
    for field in form.fields:
        filling.put(field, _value_in(start, field))
    return filling.entries


def fill_part(part: FormField) -> dict[FieldPath, Any]:
    """Return what to put into the fields of a new row or branch: its defaults."""
    filling = _Filling(fresh=True)
    filling.put(part, _default(part))
    return filling.entries


@dataclass(frozen=True, slots=True)
class RowsChanged:
    """The entries after rows of a list or map were added, removed or moved, and the new numbers of its rows."""

    entries: dict[FieldPath, Any]
    numbers: Mapping[int, int]


def add_row(form: Form, field: FormField, entries: Mapping[FieldPath, Any], row: int) -> RowsChanged | None:
    """Add a row to a list or map, with its defaults; None where it has as many as can be drawn."""
    count = entries[field.path] if has_rows(field, entries) else 0
    numbers = numbers_with(count, row)
    changed = {**renumbered(entries, field.path, numbers), field.path: count + 1}
    for part in parts_of(field, changed):
        if part.path[: len(field.path) + 1] == (*field.path, row):
            changed |= fill_part(part)
    many = count >= MOST_ROWS or len(list(drawn(form.fields, changed))) > MOST_DRAWN
    return None if many else RowsChanged(changed, numbers)


def remove_row(field: FormField, entries: Mapping[FieldPath, Any], row: int) -> RowsChanged:
    """Remove a row; an optional list without rows is left out."""
    count = entries[field.path]
    numbers = numbers_without(count, row)
    left = count - 1 if count > 1 or field.required else ABSENT
    return RowsChanged({**renumbered(entries, field.path, numbers), field.path: left}, numbers)


def move_row(field: FormField, entries: Mapping[FieldPath, Any], row: int, step: int) -> RowsChanged | None:
    """Let a row and its neighbour change places; None at the end."""
    count, other = entries[field.path], row + step
    if not 0 <= other < count:
        return None
    numbers = numbers_swapped(count, row, other)
    return RowsChanged(renumbered(entries, field.path, numbers), numbers)


def choose(field: FormField, entries: Mapping[FieldPath, Any]) -> dict[FieldPath, Any]:
    """Return the entries with those of the branch that ``field`` has chosen: as they were, or its defaults."""
    parts = parts_of(field, entries)
    return {**(fill_part(parts[0]) if parts else {}), **entries}


class _Filling:
    """Turns values into entries, counting what would be drawn."""

    def __init__(self, *, fresh: bool = False) -> None:
        self.entries: dict[FieldPath, Any] = {}
        self._fresh = fresh
        self._left = MOST_DRAWN
        self._tries = MOST_DRAWN

    def put(self, field: FormField, value: Any) -> None:
        self._left -= 1
        match field.kind:
            case FieldKind.GROUP:
                inside = value if isinstance(value, Mapping) else {}
                for each in field.fields:
                    self.put(each, inside.get(each.name, ABSENT))
            case FieldKind.ROWS | FieldKind.MAP | FieldKind.BRANCH:
                self._put_parts(field, value)
            case _:
                self.entries[field.path] = render(field, ABSENT if self._is_blank(field, value) else value)

    def _put_parts(self, field: FormField, value: Any) -> None:
        blank = self._is_blank(field, value)
        if blank and not (field.required and field.kind is FieldKind.BRANCH):
            value = ABSENT
        if self._fresh and value is ABSENT and field.kind is FieldKind.ROWS and field.required:
            value = self._first_rows(field)
        if value is ABSENT:
            self.entries[field.path] = ABSENT
            return
        before, left = self.entries, self._left
        self.entries = {}
        put = self._put_branch if field.kind is FieldKind.BRANCH else self._put_rows
        if not put(field, value) or self._left < 0:
            self.entries, self._left = {field.path: render(field, ABSENT if blank else value)}, left
        self.entries = {**before, **self.entries}

    def _is_blank(self, field: FormField, value: Any) -> bool:
        """True for a default that the field does not show, and does not send unless someone enters it."""
        return self._fresh and field.has_blank_default and same(value, field.default)

    def _first_rows(self, field: FormField) -> Any:
        """A required list shows its first rows, unless it is itself in a row."""
        if any(isinstance(part, int) for part in field.path):
            return ABSENT
        count = min(max(field.rules.shortest or 1, 1), MOST_ROWS)
        return [_default(part) for part in parts_of(field, {field.path: count})]

    def _put_rows(self, field: FormField, value: Any) -> bool:
        is_map = field.kind is FieldKind.MAP
        if not isinstance(value, Mapping if is_map else list) or len(value) > MOST_ROWS:
            return False
        assert field.source is not None
        self.entries[field.path] = len(value)
        items: Iterable[tuple[Any, Any]] = (
            value.items() if isinstance(value, Mapping) else ((None, each) for each in value)
        )
        for index, (key, item) in enumerate(items):
            part = field.source.part(field, index)
            if is_map:
                key_field = field.source.key(field, index)
                self.entries[key_field.path] = render(key_field, key)
            if isinstance(item, Mapping):
                self.entries[(*field.path, index, BASE)] = item
            elif part.kind is FieldKind.GROUP and item is not ABSENT:
                return False
            self.put(part, item)
            if self._left < 0:
                return False
        return True

    def _put_branch(self, field: FormField, value: Any) -> bool:
        """Choose the first branch that gives the value back."""
        assert field.source is not None
        before, left = self.entries, self._left
        for index, branch in enumerate(field.source.branches):
            self._tries -= 1
            if self._tries < 0:
                break
            if not _may_be(branch, value):
                continue
            part = field.source.part(field, index)
            self.entries, self._left = {}, left
            self.put(part, value)
            errors: dict[FieldPath, str] = {}
            found = _read(part, self.entries, value, errors)
            if self._left >= 0 and not errors and same(found, value):
                self.entries = {**before, field.path: index, (*field.path, CHOSEN): index, **self.entries}
                return True
        self.entries = before
        return False


def _may_be(branch: Mapping[str, Any], value: Any) -> bool:
    """Look at the constants of an object: they tell branches apart."""
    properties = branch.get("properties")
    if not isinstance(value, Mapping) or not isinstance(properties, Mapping):
        return True
    constants = [
        (name, part["const"]) for name, part in properties.items() if isinstance(part, dict) and "const" in part
    ]
    return all(name not in value or same(value[name], constant) for name, constant in constants)


def collect(
    form: Form, entries: Mapping[FieldPath, Any], *, base: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[FieldPath, str]]:
    """Return the arguments that the ``entries`` (by path, as `parse` takes them) make, and a sentence for each error.

    Optional fields with nothing in them are left out, and so is an optional group in which nothing is filled. ``base``
    is the object the form was filled from: its keys without fields, its values without an entry, and its empty
    lists and objects that the user did not touch are kept.
    """
    errors: dict[FieldPath, str] = {}
    before = base or {}
    if not all(leaf.path in entries for leaf in form.leaves()):
        entries = {**fill(form, before), **entries}
    return _collect(form.fields, entries, before, errors), errors


def outside_elicitation(schema: Any) -> str | None:
    """Say why ``schema`` is outside the flat subset an elicitation may use (client/elicitation#schema), or None."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "the schema is not an object schema"
    if not isinstance(properties := schema.get("properties"), dict):
        return "the schema has no properties"
    for name, part in properties.items():
        if not _is_primitive(part):
            return f"the field {show_line(name, 80)!r} is not text, a number, a boolean or a choice"
    form = read_form(schema)
    return "the schema combines several forms" if form.fields and not form.fields[0].path else form.raw_only


def _is_primitive(schema: Any) -> bool:
    if not isinstance(schema, dict) or "$ref" in schema:
        return False
    if schema.get("type") == "array":
        items = schema.get("items")
        return isinstance(items, dict) and ("enum" in items or "anyOf" in items) and "$ref" not in items
    return schema.get("type") in _PRIMITIVES or ("type" not in schema and ("enum" in schema or "oneOf" in schema))


def _defaults(fields: tuple[FormField, ...]) -> dict[str, Any]:
    values = {field.name: _default(field) for field in fields if field.path}
    return {name: value for name, value in values.items() if value is not ABSENT}


def _default(field: FormField) -> Any:
    if field.default is ABSENT and field.kind is FieldKind.GROUP:
        return _defaults(field.fields) or ABSENT
    return field.default


def _value_in(arguments: Mapping[str, Any], field: FormField) -> Any:
    """The value of a field of the first level; a field without a path holds all the arguments."""
    if not field.path:
        return arguments or ABSENT
    return arguments.get(field.name, ABSENT)


def _collect(
    fields: tuple[FormField, ...],
    entries: Mapping[FieldPath, Any],
    before: Mapping[str, Any],
    errors: dict[FieldPath, str],
) -> dict[str, Any]:
    collected = dict(before)
    for field in fields:
        if not field.path:
            value = _read(field, entries, before or ABSENT, errors)
            return value if isinstance(value, dict) else {}
        value = _read(field, entries, before.get(field.name, ABSENT), errors)
        if value is ABSENT:
            collected.pop(field.name, None)
        else:
            collected[field.name] = value
    return collected


def _read(field: FormField, entries: Mapping[FieldPath, Any], before: Any, errors: dict[FieldPath, str]) -> Any:
    if field.kind is FieldKind.GROUP:
        return _group(field, entries, before, errors)
    if has_rows(field, entries):
        return _parts(field, entries, before, errors)
    return _leaf(field, entries, before, errors)


def _parts(field: FormField, entries: Mapping[FieldPath, Any], before: Any, errors: dict[FieldPath, str]) -> Any:
    """Read the rows or the branch. What is wrong in a row is null in the list, so that the others keep their place."""
    parts = parts_of(field, entries)
    if field.kind is FieldKind.BRANCH:
        was_chosen = entries.get((*field.path, CHOSEN)) == entries[field.path]
        return _read(parts[0], entries, before if was_chosen else ABSENT, errors) if parts else ABSENT
    values = [
        _read(part, entries, entries.get((*part.path, BASE), ABSENT), errors) for part in parts if part.path[-1] != KEY
    ]
    found: Any = [None if value is ABSENT else value for value in values]
    try:
        if field.kind is FieldKind.MAP:
            found = _mapping(field, [part for part in parts if part.path[-1] == KEY], found, entries, errors)
        else:
            check_size(field, found)
    except FieldError as error:
        errors[field.path] = str(error)
    return found


def _mapping(
    field: FormField,
    keys: list[FormField],
    values: list[Any],
    entries: Mapping[FieldPath, Any],
    errors: dict[FieldPath, str],
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in zip(keys, values, strict=True):
        name = _leaf(key, entries, ABSENT, errors)
        name = "" if name is ABSENT else name
        if name in found:
            errors[key.path] = "is here twice"
        found[name] = value
    return found


def _leaf(field: FormField, entries: Mapping[FieldPath, Any], before: Any, errors: dict[FieldPath, str]) -> Any:
    raw = entries.get(field.path, ABSENT)
    try:
        value = parse(field, raw)
    except FieldError as error:
        errors[field.path] = str(error)
        return ABSENT
    untouched = raw == render(field, before) or (field.has_blank_default and same(before, field.default))
    return before if value is ABSENT and untouched else value


def _group(field: FormField, entries: Mapping[FieldPath, Any], before: Any, errors: dict[FieldPath, str]) -> Any:
    inner: dict[FieldPath, str] = {}
    kept: Mapping[str, Any] = before if isinstance(before, Mapping) else {}
    value = _collect(field.fields, entries, kept, inner)
    typed = any(not is_empty(leaf, entries.get(leaf.path, ABSENT)) for leaf in leaves(field.fields))
    if not typed and not field.required and kept.keys().isdisjoint(value):
        return _empty_group(field, before)
    errors.update(inner)
    return value


def _empty_group(field: FormField, before: Any) -> Any:
    if before == {}:
        return {}
    return None if field.null_when_empty or (before is None and field.nullable) else ABSENT


def has_rows(field: FormField, entries: Mapping[FieldPath, Any]) -> bool:
    """True if there are rows, or a branch is chosen; else the field is empty, or holds JSON text."""
    entry = entries.get(field.path, ABSENT)
    return field.kind in GROWING and isinstance(entry, int) and not isinstance(entry, bool)


def parts_of(field: FormField, entries: Mapping[FieldPath, Any]) -> tuple[FormField, ...]:
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


def drawn(fields: tuple[FormField, ...], entries: Mapping[FieldPath, Any]) -> Iterator[FormField]:
    """Yield every field that is on screen, each group and each growing field before its parts."""
    for field in fields:
        yield field
        yield from drawn(field.fields if field.kind is FieldKind.GROUP else parts_of(field, entries), entries)


def row_of(path: FieldPath) -> tuple[FieldPath, int] | None:
    """The list or map, and the number of the row in it, that hold ``path``; the innermost ones."""
    for place in reversed(range(len(path))):
        part = path[place]
        if isinstance(part, int) and part >= 0:
            return path[:place], part
    return None


def place_of(path: FieldPath, entries: Mapping[FieldPath, Any]) -> KeyPath:
    """Where the value of a field is in the arguments."""
    place: list[str | int] = []
    for end, part in enumerate(path):
        if isinstance(part, int) and part >= 0:
            key = entries.get((*path[: end + 1], KEY))
            place.append(part if key is None else str(key))
        elif isinstance(part, str):
            place.append(part)
    return tuple(place)


def place_text(place: KeyPath) -> str:
    """Write a place like ``items[2].name``, as problems name theirs; safe to show."""
    return path_text(place)


def renumbered(mapping: Mapping[FieldPath, T], path: FieldPath, numbers: Mapping[int, int]) -> dict[FieldPath, T]:
    """Return what belongs to each field after the rows of ``path`` have these new numbers; other rows are gone."""
    found: dict[FieldPath, T] = {}
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
