"""The arguments of a tool or prompt as rows of text, for tables on screen and on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from mcphost.json_values import as_dict, texts_in
from mcphost.protocol.display import show_line
from mcphost.protocol.forms.form import ABSENT, FieldKind, FormField, place_text, read_form

MOST_ARGUMENTS: Final = 40
"""Rows of a table: more are for the form."""

_WITHOUT_BRANCHES: Final = ("type", "properties", "required", "$defs", "definitions")
"""Keywords of a schema that make a table of it, even if it combines several forms."""


class ListedArgument(NamedTuple):
    """One argument; all texts are safe to show."""

    name: str
    """Of an argument inside an object with the object's: ``place.city``."""
    needed: bool = False
    type: str = ""
    default: str = ""
    meaning: str = ""


class ListedArguments(NamedTuple):
    rows: Sequence[ListedArgument]
    left_out: str = ""
    """The rows that are left out, in words."""
    raw_only: str = ""
    """The reason why the arguments can only be given as JSON, in words."""


def schema_arguments(schema: dict[str, Any]) -> ListedArguments:
    """Read the arguments from an input schema, those inside of objects too, and those that are required first."""
    properties = as_dict(schema.get("properties"))
    if more := max(0, len(properties) - MOST_ARGUMENTS):  # all of them would take longer than a frame
        needed = set(texts_in(schema.get("required")))
        first = sorted(properties, key=lambda name: name not in needed)[:MOST_ARGUMENTS]
        schema = {**schema, "properties": {name: properties[name] for name in first}}
    form = read_form(schema)
    raw_only = form.raw_only or ""
    if raw_only:
        form = read_form({name: schema[name] for name in _WITHOUT_BRANCHES if name in schema})
    rows = [row for field in sorted(form.fields, key=lambda each: not each.required) for row in _rows(field)]
    rows = rows or [ListedArgument(show_line(name, 60)) for name in as_dict(schema.get("properties"))]
    more += max(0, len(rows) - MOST_ARGUMENTS)
    return ListedArguments(rows[:MOST_ARGUMENTS], f"… {more:,} more" if more else "", raw_only)


def _rows(field: FormField) -> Iterator[ListedArgument]:
    default = "" if field.default is ABSENT else show_line(json.dumps(field.default, ensure_ascii=False), 60)
    name = place_text(tuple(part for part in field.path if isinstance(part, str))) or "(all)"
    title = "" if _words(field.title) == _words(name) else field.title
    yield ListedArgument(name, field.required, _type(field), default, meaning_of(field.description or title))
    for each in field.fields:
        yield from _rows(each)


def _words(name: str) -> list[str]:
    """The words of a name: libraries make a title such as "Repo Path" of ``repo_path``, which adds nothing."""
    return name.replace("_", " ").replace("-", " ").casefold().split()


def meaning_of(text: str) -> str:
    """A description on one line."""
    return show_line(" ".join(text[:2_000].split()), 400)


def _type(field: FormField) -> str:
    """The type in the words of the form."""
    labels = " | ".join(show_line(label, 30) for _, label in field.choices[:8])
    match field.kind:
        case FieldKind.BOOLEAN:
            return "true or false"
        case FieldKind.CHOICE:
            return labels
        case FieldKind.CHOICES:
            return f"some of {labels}"
        case FieldKind.BRANCH:
            return labels.replace(" | ", " or ")
        case FieldKind.GROUP:
            return "object"
        case FieldKind.LIST if field.item is not None:
            return f"list of {_type(field.item)}"
    return field.constraints.removeprefix("JSON: ")
