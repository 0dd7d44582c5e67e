"""Checks a call's arguments against the tool's own schema, as far as the demo's schemas go, and fills in defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcphost.demo.tools import Json

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def with_defaults(schema: Json, given: Json) -> Json:
    """The arguments given, and the schema's defaults for those that were not."""
    fields = schema["properties"]
    return {name: field["default"] for name, field in fields.items() if "default" in field} | given


def complaints(schema: Json, value: Any, where: str = "") -> Iterator[str]:
    """Yield what is wrong with ``value``, each as a phrase that starts with the place."""
    kind = schema["type"]
    if not _is(kind, value):
        yield f"{where}: should be of type {kind}"
        return
    yield from _wrong_choice(schema, value, where)
    yield from _out_of_range(schema, value, where)
    if kind == "object":
        yield from _wrong_members(schema, value, where)
    elif kind == "array":
        for number, item in enumerate(value):
            yield from complaints(schema["items"], item, f"{where}[{number}]")


def _is(kind: str, value: Any) -> bool:
    """Whether the value is of that type; true is no number here, although Python thinks so."""
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _wrong_choice(schema: Json, value: Any, where: str) -> Iterator[str]:
    choices = schema.get("enum") or [choice["const"] for choice in schema.get("oneOf", ())]
    if choices and value not in choices:
        yield f"{where}: should be one of {', '.join(map(str, choices))}"


def _out_of_range(schema: Json, value: Any, where: str) -> Iterator[str]:
    size = len(value) if isinstance(value, str | list) else value
    least = schema.get("minimum", schema.get("minLength"))
    most = schema.get("maximum", schema.get("maxLength", schema.get("maxItems")))
    if least is not None and size < least:
        yield f"{where}: {size} is below {least}"
    if most is not None and size > most:
        yield f"{where}: {size} is above {most}"


def _wrong_members(schema: Json, value: Json, where: str) -> Iterator[str]:
    fields, prefix = schema["properties"], f"{where}." if where else ""
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{prefix}{name}: is required"
    for name, member in value.items():
        if name in fields:
            yield from complaints(fields[name], member, prefix + name)
        else:
            yield f"{prefix}{name}: no such argument"
