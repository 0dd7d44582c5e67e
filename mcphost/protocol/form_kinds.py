"""With what a schema is edited, and the choices it gives."""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Any

from mcphost.protocol.form_rules import number

MAX_GROUPS = 3
"""Objects inside objects that become groups; deeper ones are edited as JSON."""

LONG_TEXT = 200
"""Characters allowed above which a text field has several lines."""

Choices = tuple[tuple[Any, str], ...]
"""Pairs of a value and its label."""


class FieldKind(Enum):
    """What a field is edited with."""

    STRING = "string"
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    CHOICES = "choices"
    LIST = "list"
    GROUP = "group"
    JSON = "json"


SCALARS = frozenset(
    {FieldKind.STRING, FieldKind.TEXT, FieldKind.INTEGER, FieldKind.NUMBER, FieldKind.BOOLEAN, FieldKind.CHOICE}
)
"""What a list that is edited line by line may hold."""

_KINDS = {
    "string": FieldKind.STRING,
    "integer": FieldKind.INTEGER,
    "number": FieldKind.NUMBER,
    "boolean": FieldKind.BOOLEAN,
}
_LONG_NAMES = frozenset(
    {"body", "code", "comment", "content", "contents", "diff", "html", "markdown", "message", "patch", "prompt"}
    | {"query", "script", "snippet", "sql", "source", "template", "text"}
)


def kind_of(schema: dict[str, Any], path: tuple[str, ...]) -> tuple[FieldKind, Choices]:
    """The kind, and the choices of a `FieldKind.CHOICE` or `FieldKind.CHOICES`; a list may be no plain one."""
    if choices := choices_of(schema):
        return FieldKind.CHOICE, choices
    if any(keyword in schema for keyword in ("anyOf", "oneOf", "allOf", "not", "if")):
        return FieldKind.JSON, ()
    declared = schema.get("type")
    if declared == "string":
        return (FieldKind.TEXT if _is_long(schema, path[-1]) else FieldKind.STRING), ()
    if declared == "array":
        return _array_kind(schema)
    if declared in ("object", None) and _has_properties(schema) and len(path) <= MAX_GROUPS:
        return FieldKind.GROUP, ()
    return (_KINDS.get(declared, FieldKind.JSON) if isinstance(declared, str) else FieldKind.JSON), ()


def _array_kind(schema: dict[str, Any]) -> tuple[FieldKind, Choices]:
    items = schema.get("items")
    if not isinstance(items, dict) or "prefixItems" in schema:
        return FieldKind.JSON, ()
    if choices := choices_of({"anyOf": items["anyOf"]} if isinstance(items.get("anyOf"), list) else items):
        return FieldKind.CHOICES, choices
    return FieldKind.LIST, ()


def choices_of(schema: dict[str, Any]) -> Choices:
    """Read ``enum`` (with ``enumNames``), ``const``, and lists of ``const`` with ``title``; empty when it is none."""
    if isinstance(values := schema.get("enum"), list):
        names = schema.get("enumNames")
        titles = names if isinstance(names, list) and len(names) == len(values) else [None] * len(values)
        return tuple((value, _label(value, title)) for value, title in zip(values, titles, strict=True))
    if "const" in schema:
        return ((schema["const"], _label(schema["const"], None)),)
    for keyword in ("oneOf", "anyOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and branches and all(isinstance(b, dict) and "const" in b for b in branches):
            return tuple((branch["const"], _label(branch["const"], branch.get("title"))) for branch in branches)
    return ()


def _label(value: Any, title: Any) -> str:
    if isinstance(title, str) and title:
        return title
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_long(schema: dict[str, Any], name: str) -> bool:
    longest = number(schema.get("maxLength"))
    if "format" in schema or (longest is not None and longest <= LONG_TEXT):
        return False
    last_word = re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", name)[-1].lower()
    return longest is not None or "contentMediaType" in schema or last_word in _LONG_NAMES


def _has_properties(schema: dict[str, Any]) -> bool:
    properties = schema.get("properties")
    return isinstance(properties, dict) and bool(properties)
