"""Converts between the entries of a form and its arguments, even while some entries are invalid."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcphost.protocol.forms.form import ABSENT, Form, Path, collect, fill, is_empty
from mcphost.tui.forms.text_boxes import dump

Entries = dict[Path, Any]

_PLAIN_NAME: Final = re.compile(r"[^\W\d][\w-]*", re.ASCII)


def first_object(schema: Any, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the raw editor starts with if there are no fields: the arguments, or the defaults."""
    if arguments is not None:
        return dict(arguments)
    parts = schema.get("properties") if isinstance(schema, dict) else None
    named = parts.items() if isinstance(parts, dict) else ()
    return {name: part["default"] for name, part in named if isinstance(part, dict) and "default" in part}


def to_object(form: Form, entries: Entries, base: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments typed so far; invalid entries are included as text."""
    arguments, errors = collect(form, entries, base=base)
    for field in form.leaves():
        if field.path in errors and not is_empty(field, entry := entries.get(field.path, ABSENT)):
            _put(arguments, field.path, entry)
    return arguments


def from_object(form: Form, entries: Entries, before: Mapping[str, Any], after: Mapping[str, Any]) -> Entries:
    """Return the entries after ``before`` was edited into ``after``; those with an equal value stay as typed."""
    fresh = fill(form, after)
    return {
        path: entries[path] if path in entries and _same(before, after, path) else entry
        for path, entry in fresh.items()
    }


def value_at(value: Any, path: Path) -> Any:
    """Return what is at ``path``, or `ABSENT`."""
    for name in path:
        value = value[name] if isinstance(value, Mapping) and name in value else ABSENT
    return value


def path_at(place: str | Sequence[str | int], paths: Sequence[Path]) -> Path | None:
    """Return which of ``paths`` contains the place of a problem (``items[2].name``, or its parts); None if no single
    one does.
    """
    inside = [path for path in paths if _holds(path, place)]
    return max(inside, key=len, default=None)


def place_within(path: Path, place: str | Sequence[str | int]) -> str:
    """Return where in the value of the field at ``path`` the place is, like ``[2].name``; empty for the whole value."""
    if not isinstance(place, str):
        return "".join(f"[{part}]" if isinstance(part, int) else _part(part) for part in place[len(path) :])
    return place.removeprefix("".join(map(_part, path)).removeprefix("."))


def _holds(path: Path, place: str | Sequence[str | int]) -> bool:
    if not isinstance(place, str):
        return tuple(place[: len(path)]) == path
    text = "".join(map(_part, path)).removeprefix(".")
    return place == text or place.startswith((f"{text}.", f"{text}["))


def _part(name: str) -> str:
    return f".{name}" if _PLAIN_NAME.fullmatch(name) else f"[{json.dumps(name, ensure_ascii=False)}]"


def _put(target: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        inner = target.get(name)
        inside: dict[str, Any] = dict(inner) if isinstance(inner, Mapping) else {}
        target[name] = inside
        target = inside
    target[path[-1]] = value


def _same(before: Mapping[str, Any], after: Mapping[str, Any], path: Path) -> bool:
    old, new = value_at(before, path), value_at(after, path)
    if old is ABSENT or new is ABSENT:
        return old is new
    return dump(old) == dump(new)
