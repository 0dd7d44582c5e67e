"""Estimates the cost of a validation by walking schema and value together.

One unit is about a microsecond of the validator. The walk is bounded by its budget, so that the estimate of a hostile
schema is cheap too. Whatever cannot be estimated counts as too expensive.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcphost.json_values import as_dict, as_list
from mcphost.protocol.schema.traversal import Unresolvable, nodes, pattern_weight, patterns, resolve, walk

_COMPILE_WEIGHT = 20_000
"""States of all regular expressions of a schema that may be compiled at once: about a millisecond."""

_OPAQUE = frozenset({"$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems"})
"""Keywords whose cost depends on the dynamic scope, or doubles with every level."""

_BRANCH = 5
"""The cost of an error inside anyOf or oneOf, which is copied and wrapped, in plain errors."""

_PLAIN = frozenset({
    "$comment", "$schema", "additionalProperties", "const", "default", "deprecated", "description", "examples",
    "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maxLength", "maxProperties", "maximum",
    "minItems", "minLength", "minProperties", "minimum", "multipleOf", "properties", "readOnly", "required", "title",
    "type", "writeOnly",
})  # fmt: skip
"""Keywords by which each part of a value is looked at once."""

_BESIDE = ("not", "if", "then", "else")
_EACH_VALUE = ("additionalProperties",)
_EACH_ITEM = ("items", "additionalItems", "contains")


def within(budget: int, schema: Any, instance: Any, *, plain: bool = False) -> bool:
    """True if validating ``instance`` by a ``schema`` that `compiles_cheaply` costs at most ``budget`` units.

    ``plain``: the schema `is_plain`; then most values need no walk.
    """
    parts = nodes(instance, budget * 4)
    left = budget - parts // 4
    if plain and parts <= left:
        return True
    try:
        waiting = [(schema, instance, 1)]
        while waiting and left >= 0:
            current, value, price = waiting.pop()
            left -= price
            if isinstance(current, dict):
                left -= _own_cost(current, value)
                waiting.extend(_next(schema, current, value))
    except Unresolvable:
        return False
    return left >= 0


def compiles_cheaply(schema: Any) -> bool:
    """True if the cost of ``schema`` can be estimated, and its patterns are cheap to compile."""
    weight = 0
    for part in walk(schema):
        if isinstance(part, dict):
            if not _OPAQUE.isdisjoint(part) or part.get("format") == "regex":
                return False
            weight += sum(map(pattern_weight, patterns(part)))
    return weight <= _COMPILE_WEIGHT


def is_plain(schema: Any) -> bool:
    """True if the cost of ``schema`` depends on the size of a value alone."""
    return all(
        not isinstance(part, dict) or (part.keys() <= _PLAIN and not isinstance(part.get("items"), list))
        for part in walk(schema)
    )


def _own_cost(schema: dict[str, Any], value: Any) -> int:
    # A state of a pattern takes about 1 ns a character, a comparison with a choice 50 ns.
    cost = 0
    if isinstance(value, str) and "pattern" in schema:
        cost += len(value) * sum(map(pattern_weight, patterns(schema))) // 1000
    if isinstance(choices := schema.get("enum"), list):
        cost += len(choices) // 20
    if isinstance(value, list) and schema.get("uniqueItems") is True:
        cost += len(value)
    if isinstance(value, dict) and "patternProperties" in schema:
        cost += sum(map(len, value)) * sum(map(pattern_weight, patterns(schema))) // 1000
    return cost


_Step = tuple[Any, Any, int]


def _next(root: Any, schema: dict[str, Any], value: Any) -> Iterator[_Step]:
    if isinstance(reference := schema.get("$ref"), str):
        yield resolve(root, reference), value, 2
    for keyword in _BESIDE:
        if keyword in schema:
            yield schema[keyword], value, 1
    for keyword, price in (("allOf", 1), ("anyOf", _BRANCH), ("oneOf", _BRANCH)):
        for branch in as_list(schema.get(keyword)):
            yield branch, value, price
    if isinstance(value, dict):
        yield from _into_object(schema, value)
    elif isinstance(value, list):
        yield from _into_array(schema, value)


def _into_object(schema: dict[str, Any], value: dict[str, Any]) -> Iterator[_Step]:
    properties = as_dict(schema.get("properties"))
    for name in properties.keys() & value.keys():
        yield properties[name], value[name], 1
    for keyword in _EACH_VALUE:
        if isinstance(schema.get(keyword), dict):
            yield from ((schema[keyword], part, 1) for name, part in value.items() if name not in properties)
    for each in as_dict(schema.get("patternProperties")).values():
        yield from ((each, part, 1) for part in value.values())
    if "propertyNames" in schema:
        yield from ((schema["propertyNames"], name, 1) for name in value)
    for keyword in ("dependentSchemas", "dependencies"):
        yield from ((dependent, value, 1) for dependent in as_dict(schema.get(keyword)).values())


def _into_array(schema: dict[str, Any], value: list[Any]) -> Iterator[_Step]:
    for keyword in ("prefixItems", "items"):
        yield from ((item, part, 1) for item, part in zip(as_list(schema.get(keyword)), value, strict=False))
    for keyword in _EACH_ITEM:
        if isinstance(schema.get(keyword), dict):
            yield from ((schema[keyword], part, 1) for part in value)
