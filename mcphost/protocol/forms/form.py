"""Fills a form, and collects the arguments from what was entered.

`collect` checks each field by itself; `mcphost.host.tool_calls.validation` checks the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcphost.protocol.display import show_line
from mcphost.protocol.forms.fields import ABSENT, FieldKind, FieldLimits, Form, FormField, leaves, read_form
from mcphost.protocol.forms.values import FieldError, is_empty, parse, render

__all__ = ["ABSENT", "FieldError", "FieldKind", "FieldLimits", "Form", "FormField", "Path"]
__all__ += ["collect", "fill", "is_empty", "leaves", "outside_elicitation", "parse", "read_form", "render"]

Path = tuple[str, ...]

_PRIMITIVES = ("string", "number", "integer", "boolean")


def fill(form: Form, arguments: Mapping[str, Any] | None = None) -> dict[Path, Any]:
    """Return what to put into each field: for ``arguments``, or without any for the defaults of the schema."""
    start = _defaults(form.fields) if arguments is None else arguments
    return {field.path: render(field, _at(start, field.path)) for field in form.leaves()}


def collect(
    form: Form, entries: Mapping[Path, Any], *, base: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[Path, str]]:
    """Return the arguments that the ``entries`` (by path, as `parse` takes them) make, and a sentence for each error.

    Optional fields with nothing in them are left out, and so is an optional group in which nothing is filled. ``base``
    is the object the form was filled from: its keys that are no fields, its values without an entry, and its empty
    lists and objects that nobody touched are kept.
    """
    errors: dict[Path, str] = {}
    before = base or {}
    return _collect(form.fields, {**fill(form, before), **entries}, before, errors), errors


def outside_elicitation(schema: Any) -> str | None:
    """Say why ``schema`` is outside the flat subset an elicitation may use (client/elicitation#schema), or None."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "the schema is not an object schema"
    if not isinstance(properties := schema.get("properties"), dict):
        return "the schema has no properties"
    for name, part in properties.items():
        if not _is_primitive(part):
            return f"the field {show_line(name, 80)!r} is not text, a number, a yes or no, or a choice"
    return read_form(schema).raw_only


def _is_primitive(schema: Any) -> bool:
    if not isinstance(schema, dict) or "$ref" in schema:
        return False
    if schema.get("type") == "array":
        items = schema.get("items")
        return isinstance(items, dict) and ("enum" in items or "anyOf" in items) and "$ref" not in items
    return schema.get("type") in _PRIMITIVES or ("type" not in schema and ("enum" in schema or "oneOf" in schema))


def _defaults(fields: tuple[FormField, ...]) -> dict[str, Any]:
    found = {}
    for field in fields:
        value = field.default
        if value is ABSENT and field.kind is FieldKind.GROUP:
            value = _defaults(field.fields) or ABSENT
        if value is not ABSENT:
            found[field.name] = value
    return found


def _at(value: Any, path: Path) -> Any:
    for name in path:
        value = value[name] if isinstance(value, Mapping) and name in value else ABSENT
    return value


def _collect(
    fields: tuple[FormField, ...], entries: Mapping[Path, Any], before: Mapping[str, Any], errors: dict[Path, str]
) -> dict[str, Any]:
    collected = dict(before)
    for field in fields:
        read = _group if field.kind is FieldKind.GROUP else _leaf
        value = read(field, entries, before.get(field.name, ABSENT), errors)
        if value is ABSENT:
            collected.pop(field.name, None)
        else:
            collected[field.name] = value
    return collected


def _leaf(field: FormField, entries: Mapping[Path, Any], before: Any, errors: dict[Path, str]) -> Any:
    raw = entries[field.path]
    try:
        value = parse(field, raw)
    except FieldError as error:
        errors[field.path] = str(error)
        return ABSENT
    return before if value is ABSENT and raw == render(field, before) else value


def _group(field: FormField, entries: Mapping[Path, Any], before: Any, errors: dict[Path, str]) -> Any:
    inner: dict[Path, str] = {}
    kept: Mapping[str, Any] = before if isinstance(before, Mapping) else {}
    value = _collect(field.fields, entries, kept, inner)
    typed = any(not is_empty(leaf, entries[leaf.path]) for leaf in leaves(field.fields))
    if not typed and not field.required and kept.keys().isdisjoint(value):
        return _empty_group(field, before)
    errors.update(inner)
    return value


def _empty_group(field: FormField, before: Any) -> Any:
    if before == {}:
        return {}
    return None if field.null_when_empty or (before is None and field.nullable) else ABSENT
