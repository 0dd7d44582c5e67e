"""Converts between the entries of a form and its arguments, even while some entries are invalid."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from mcphost.json_values import KeyPath, as_dict
from mcphost.protocol.forms.form import (
    ABSENT,
    GROWING,
    KEY,
    FieldPath,
    Form,
    collect,
    drawn,
    fill,
    is_empty,
    place_of,
    place_text,
)
from mcphost.tui.forms.text_boxes import dump

Entries = dict[FieldPath, Any]


def first_object(schema: Any, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the raw editor starts with if there are no fields: the arguments, or the defaults."""
    if arguments is not None:
        return dict(arguments)
    named = as_dict(as_dict(schema).get("properties")).items()
    return {name: part["default"] for name, part in named if isinstance(part, dict) and part.get("default") is not None}


def to_object(form: Form, entries: Entries, base: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments typed so far; invalid entries are included as text."""
    arguments, errors = collect(form, entries, base=base)
    for field in drawn(form.fields, entries):
        entry = entries.get(field.path, ABSENT)
        if (
            field.path in errors
            and field.path[-1:] != (KEY,)
            and not isinstance(entry, int)
            and not is_empty(field, entry)
        ):
            _put(arguments, place_of(field.path, entries), entry)
    return arguments


def from_object(form: Form, entries: Entries, before: Mapping[str, Any], after: Mapping[str, Any]) -> Entries:
    """Return the entries after ``before`` was edited into ``after``; those with an equal value stay as typed."""
    fresh = fill(form, after)
    for field in list(drawn(form.fields, entries)):
        path = field.path
        if path not in fresh or path not in entries or not _same(before, after, place_of(path, entries)):
            continue
        if field.kind in GROWING:  # with all its rows, or the branch that was chosen
            fresh = {each: entry for each, entry in fresh.items() if each[: len(path)] != path}
            fresh |= {each: entry for each, entry in entries.items() if each[: len(path)] == path}
        elif place_of(path, fresh) == place_of(path, entries):
            fresh[path] = entries[path]
    return fresh


def value_at(value: Any, place: KeyPath) -> Any:
    """Return what is at ``place``, or `ABSENT`."""
    for part in place:
        held = part in value if isinstance(value, Mapping) else isinstance(value, list) and _is_index(value, part)
        if not held:
            return ABSENT
        value = value[part]
    return value


def path_at(place: str | Sequence[str | int], places: Mapping[FieldPath, KeyPath]) -> FieldPath | None:
    """Return which of the fields, given with their places, contains the place of a problem (``items[2].name``, or its
    parts); None if no single one does.
    """
    inside = [path for path, its in places.items() if _holds(its, place)]
    return max(inside, key=len, default=None)


def place_within(its: KeyPath, place: str | Sequence[str | int]) -> str:
    """Return where in the value of the field at ``its`` the place is, like ``[2].name``; empty for the whole value."""
    if not isinstance(place, str):
        return place_text(tuple(place[len(its) :]))
    return place.removeprefix(place_text(its))


def _holds(its: KeyPath, place: str | Sequence[str | int]) -> bool:
    if not isinstance(place, str):
        return tuple(place[: len(its)]) == its
    text = place_text(its)
    return not its or place == text or place.startswith((f"{text}.", f"{text}["))


def _put(target: Any, place: KeyPath, value: Any) -> None:
    for part, following in itertools.pairwise(place):
        inner = value_at(target, (part,))
        if not isinstance(inner, dict | list):
            inner = [] if isinstance(following, int) else {}
        inside = list(inner) if isinstance(inner, list) else dict(inner)
        _set(target, part, inside)
        target = inside
    _set(target, place[-1], value)


def _set(target: Any, part: str | int, value: Any) -> None:
    if isinstance(target, dict) or _is_index(target, part):
        target[part] = value


def _is_index(items: list[Any], part: str | int) -> bool:
    return isinstance(part, int) and part < len(items)


def _same(before: Mapping[str, Any], after: Mapping[str, Any], path: KeyPath) -> bool:
    old, new = value_at(before, path), value_at(after, path)
    if old is ABSENT or new is ABSENT:
        return old is new
    return dump(old) == dump(new)
