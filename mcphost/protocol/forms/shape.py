"""Says the shape of a JSON value in one line, and makes a skeleton of it to fill in. Bounded for any schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from mcphost.json_values import as_dict, as_list, is_number, texts_in
from mcphost.protocol.schema.traversal import Unresolvable, follow

MOST_LEVELS: Final = 3
"""Levels of a shape."""

MOST_NAMES: Final = 6
"""Properties of an object, or forms of a choice, that a shape names."""

SHAPE_PARTS: Final = 40
"""Schemas that are looked at for a shape."""

SKELETON_LEVELS: Final = 4
SKELETON_PARTS: Final = 100
"""Levels and values of a skeleton."""

_TYPES: Final = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "null"}


def shape_of(root: Any, schema: Any) -> str:
    """The shape, such as ``list of {sku*, qty ≥ 1}``, a star for what is required; empty if anything may stand there.

    Names in it are the server's own.
    """
    return _shape(root, schema, MOST_LEVELS, iter(range(SHAPE_PARTS)))


def _shape(root: Any, schema: Any, levels: int, parts: Iterator[int]) -> str:
    if next(parts, None) is None:
        return "…"
    schema = _followed(root, schema)
    if values := _values(schema):
        return _some([json.dumps(value, ensure_ascii=False)[:40] for value in values], " | ", _length(schema))
    for keyword in ("anyOf", "oneOf"):
        if branches := as_list(schema.get(keyword)):
            if not levels:
                return "…"
            return _some(
                [_shape(root, branch, levels - 1, parts) or "anything" for branch in branches[:MOST_NAMES]], " or "
            )
    declared = schema.get("type")
    if isinstance(declared, list):
        return " or ".join(_shape(root, {**schema, "type": each}, levels, parts) for each in declared[:MOST_NAMES])
    if declared == "array" or (declared is None and "items" in schema):
        item = _shape(root, schema.get("items"), levels - 1, parts) if levels else ""
        return f"list of {item}" if item else "list"
    if declared == "object" or (declared is None and "properties" in schema):
        return _object(root, schema, levels, parts)
    return _scalar(schema)


def _object(root: Any, schema: dict[str, Any], levels: int, parts: Iterator[int]) -> str:
    properties, required = as_dict(schema.get("properties")), set(texts_in(schema.get("required")))
    if not properties:
        value = _shape(root, schema.get("additionalProperties"), levels - 1, parts) if levels else ""
        return f"{{any key: {value}}}" if value else "object"
    if not levels:
        return "{…}"
    names = list(properties)[:MOST_NAMES]
    texts = [_property(root, name, properties[name], name in required, levels - 1, parts) for name in names]
    return f"{{{', '.join(texts)}{', …' if len(properties) > len(names) else ''}}}"


def _property(root: Any, name: str, schema: Any, required: bool, levels: int, parts: Iterator[int]) -> str:
    label, schema = f"{name[:40]}{'*' if required else ''}", _followed(root, schema)
    if bounds := _range(schema):
        return f"{label} {bounds}"
    inner = _shape(root, schema, levels, parts)
    return label if inner in ("", "text") else f"{label}: {inner}"


def _scalar(schema: dict[str, Any]) -> str:
    declared = schema.get("type")
    name = _TYPES.get(declared, declared) if isinstance(declared, str) else ""
    return " ".join(filter(None, [name, _range(schema)]))


def _range(schema: dict[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if is_number(low) and is_number(high):
        return f"{low} to {high}"
    return f"≥ {low}" if is_number(low) else f"≤ {high}" if is_number(high) else ""


def skeleton(root: Any, schema: Any) -> Any:
    """A value with everything that is required, and empty texts: something to fill in."""
    return _skeleton(root, schema, SKELETON_LEVELS, iter(range(SKELETON_PARTS)))


def _skeleton(root: Any, schema: Any, levels: int, parts: Iterator[int]) -> Any:
    schema = _followed(root, schema)
    if "default" in schema:
        return schema["default"]
    if values := _values(schema):
        return values[0]
    for keyword in ("anyOf", "oneOf", "allOf"):
        if (branches := as_list(schema.get(keyword))) and levels:
            return _skeleton(root, branches[0], levels - 1, parts)
    declared = schema.get("type")
    if isinstance(declared, list) and declared:
        declared = declared[0]
    if not levels or next(parts, None) is None:
        return None
    if declared == "array" or (declared is None and "items" in schema):
        return [_skeleton(root, schema["items"], levels - 1, parts)] if isinstance(schema.get("items"), dict) else []
    if declared == "object" or (declared is None and "properties" in schema):
        return _skeleton_object(root, schema, levels, parts)
    if declared in ("integer", "number"):
        return schema["minimum"] if is_number(schema.get("minimum")) else 0
    return {"string": "", "boolean": False}.get(declared) if isinstance(declared, str) else None


def _skeleton_object(root: Any, schema: dict[str, Any], levels: int, parts: Iterator[int]) -> dict[str, Any]:
    properties, required = as_dict(schema.get("properties")), set(texts_in(schema.get("required")))
    names = [name for name in properties if name in required] or list(properties)
    if not names and isinstance(schema.get("additionalProperties"), dict):
        return {"": _skeleton(root, schema["additionalProperties"], levels - 1, parts)}
    return {name: _skeleton(root, properties[name], levels - 1, parts) for name in names[:SKELETON_PARTS]}


def _followed(root: Any, schema: Any) -> dict[str, Any]:
    with suppress(Unresolvable):
        return as_dict(follow(root, schema))
    return {}


def _values(schema: dict[str, Any]) -> list[Any]:
    return [schema["const"]] if "const" in schema else as_list(schema.get("enum"))[: MOST_NAMES + 1]


def _length(schema: dict[str, Any]) -> int:
    return len(as_list(schema.get("enum"))) or 1


def _some(texts: list[str], between: str, length: int = 0) -> str:
    more = [] if max(length, len(texts)) <= MOST_NAMES else ["…"]
    return between.join([*texts[:MOST_NAMES], *more])
