"""Sentences for validation problems, to follow the name of a field.

Names and values in them are untrusted; they are shortened here and made safe to show by the caller.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mcphost.protocol.display import show_line

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

TYPE_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}

FORMAT_NAMES = {
    "email": "an email address",
    "uri": "a URI such as https://example.org/page",
    "date": "a date such as 2026-07-28",
    "date-time": "a date and time with a zone, such as 2026-07-28T09:30:00Z",
    "time": "a time with a zone, such as 09:30:00Z",
    "uuid": "a UUID",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "hostname": "a host name",
}

_PLAIN_NAME = r"(?a)[^\W\d][\w-]*"
_ZONELESS = r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2})(:[0-9]{2}(?:\.[0-9]{1,9})?)?"
_SHOWN_CHOICES = 8


def path_of(error: ValidationError) -> str:
    """Where it is wrong, like ``items[2].name``; of a missing property, where that property belongs. Safe to show."""
    parts = [*error.instance_path]
    if (missing := getattr(error.kind, "property", None)) is not None:
        parts.append(missing)
    return path_text(parts)


def path_text(parts: Sequence[str | int]) -> str:
    """Write a path like ``items[2]["odd name"].x``; safe to show."""
    text = ""
    for part in parts:
        if isinstance(part, str) and re.fullmatch(_PLAIN_NAME, part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return show_line(text)


def message_of(error: ValidationError) -> str:
    """Say what is wrong; the library's own words where we have none."""
    if type(error.kind).__name__ == "FalseSchema" and error.schema_path[-1:] == ["additionalProperties"]:
        return "has a key, but may have none"
    kind: Any = error.kind
    if type(kind).__name__ == "Format":
        return format_text(kind.format, error.instance)
    sentence = _SENTENCES.get(type(kind).__name__)
    return sentence(kind) if sentence else error.message


def format_text(name: str, value: Any) -> str:
    """Say what a value of this format must be; of a moment that lacks its zone (RFC 3339), how to write it with one."""
    if name == "date-time" and isinstance(value, str) and (found := re.fullmatch(_ZONELESS, value.strip())):
        moment = f"{found[1]}T{found[2]}{found[3] or ':00'}"
        return f"lacks a zone: add one, e.g. {moment}Z or {moment}+01:00"
    return f"must be {FORMAT_NAMES.get(name, f'a valid {name}')}"


def choices_text(values: Sequence[Any]) -> str:
    """``"a", "b" or "c"``; the first few of many."""
    shown = [show_line(json.dumps(value, ensure_ascii=False), 60) for value in values[:_SHOWN_CHOICES]]
    if len(values) > _SHOWN_CHOICES:
        return f"{', '.join(shown)}, … ({len(values)} choices)"
    return _either(shown)


def types_text(types: Sequence[str]) -> str:
    """``a number or null``."""
    return _either([TYPE_NAMES.get(name, name) for name in types])


def count_text(count: Any, thing: str) -> str:
    """``1 item``, ``3 items``."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _either(texts: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def _branches(kind: Any) -> str:
    """Merge branches that fail for the type alone; a person then reads one sentence."""
    errors = [error for branch in kind.context for error in branch]
    if errors and all(error.kind.name == "type" for error in errors):
        paths = {tuple(error.instance_path) for error in errors}
        if len(paths) == 1:
            return f"must be {types_text([name for error in errors for name in error.kind.types])}"
    return f"fits none of the {len(kind.context)} allowed forms"


def _unknown_keys(keys: Sequence[str]) -> str:
    names = ", ".join(json.dumps(name, ensure_ascii=False) for name in keys[:_SHOWN_CHOICES])
    return f"unknown keys {names}" if len(keys) > 1 else f"unknown key {names}"


_SENTENCES: dict[str, Callable[[Any], str]] = {
    "Required": lambda kind: "is required",
    "Type": lambda kind: f"must be {types_text(kind.types)}",
    "Enum": lambda kind: f"must be {choices_text(kind.options)}",
    "Constant": lambda kind: f"must be {choices_text([kind.expected_value])}",
    "Minimum": lambda kind: f"must be at least {kind.limit}",
    "Maximum": lambda kind: f"must be at most {kind.limit}",
    "ExclusiveMinimum": lambda kind: f"must be more than {kind.limit}",
    "ExclusiveMaximum": lambda kind: f"must be less than {kind.limit}",
    "MultipleOf": lambda kind: f"must be a multiple of {kind.multiple_of}",
    "MinLength": lambda kind: f"must have at least {count_text(kind.limit, 'character')}",
    "MaxLength": lambda kind: f"must have at most {count_text(kind.limit, 'character')}",
    "Pattern": lambda kind: f"must match the pattern {kind.pattern}",
    "MinItems": lambda kind: f"must have at least {count_text(kind.limit, 'item')}",
    "MaxItems": lambda kind: f"must have at most {count_text(kind.limit, 'item')}",
    "UniqueItems": lambda kind: "must not hold the same item twice",
    "MinProperties": lambda kind: f"must have at least {count_text(kind.limit, 'key')}",
    "MaxProperties": lambda kind: f"must have at most {count_text(kind.limit, 'key')}",
    "AdditionalProperties": lambda kind: _unknown_keys(kind.unexpected),
    "UnevaluatedProperties": lambda kind: _unknown_keys(kind.unexpected),
    "AnyOf": _branches,
    "OneOfNotValid": _branches,
    "OneOfMultipleValid": lambda kind: "fits more than one of the allowed forms",
    "Not": lambda kind: "is of a form that is excluded",
    "Contains": lambda kind: "lacks an item that must be in it",
    "FalseSchema": lambda kind: "is not allowed",
}
