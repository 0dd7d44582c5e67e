"""Walks JSON Schemas: subschemas, size, local references and patterns.

Positions matter: a property called ``$ref`` is not a reference; ``enum`` and ``default`` hold data. Fetches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

IN_ONE = frozenset(
    {"not", "if", "then", "else", "additionalProperties", "unevaluatedProperties", "propertyNames", "contains"}
    | {"items", "additionalItems", "unevaluatedItems", "contentSchema"}
)
"""Keywords whose value is a schema."""

IN_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
"""Keywords whose value is a list of schemas."""

IN_MAP = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
"""Keywords whose value maps names to schemas."""

DATA = frozenset({"default", "const", "example"})
"""Keywords whose value may be null: it is data."""

SHOWN = frozenset({"title", "description", "$comment"})
"""Keywords that are only shown."""

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

BACKTRACKING = 1_000_000_000
"""The weight of a pattern that needs backtracking."""

_SAME_IN_ONE = ("not", "if", "then", "else")
_SAME_IN_LIST = ("allOf", "anyOf", "oneOf")
_HOPS = 16
_COUNTED = r"\{(\d{1,9})(?:,(\d{0,9}))?\}"
_NEEDS_BACKTRACKING = r"\(\?(?:<?[=!])|\\[1-9]|\\k"


class Unresolvable(LookupError):
    """A local reference points to nothing, or to itself."""


def subschemas(schema: Any) -> Iterator[Any]:
    """Yield the schemas directly inside ``schema``, and nothing that is data."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in IN_MAP and isinstance(value, dict):
            yield from (sub for sub in value.values() if isinstance(sub, dict | bool))
        elif keyword in IN_LIST and isinstance(value, list):
            yield from value
        elif keyword in IN_ONE:
            yield value


def walk(schema: Any) -> Iterator[Any]:
    """Yield ``schema`` and every schema inside it, however deep; references are not followed."""
    waiting = [schema]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(subschemas(current))


def plain_schema(schema: Any) -> Any:
    """The schema without keywords that are null, or that are only shown and are not texts; data keeps its nulls.

    Serializers that know no absence write null for it. The same object if there is nothing to change. Recursive, so
    only for schemas whose depth is bounded.
    """
    return _plain(schema) if any(map(_deviates, walk(schema))) else schema


def _deviates(schema: Any) -> bool:
    return isinstance(schema, dict) and any(_is_absent(keyword, value) for keyword, value in schema.items())


def _is_absent(keyword: str, value: Any) -> bool:
    return keyword not in DATA if value is None else keyword in SHOWN and not isinstance(value, str)


def _plain(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in IN_MAP and isinstance(value, dict):
            plain[keyword] = {name: _plain(sub) for name, sub in value.items()}
        elif keyword in IN_LIST and isinstance(value, list):
            plain[keyword] = [_plain(sub) for sub in value]
        elif not _is_absent(keyword, value):
            plain[keyword] = _plain(value) if keyword in IN_ONE else value
    return plain


def reachable(root: Any) -> Iterator[Any]:
    """Yield what `walk` does, and the targets of local references elsewhere."""
    waiting, seen = [root], set[int]()
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict):
            if id(current) in seen:
                continue
            seen.add(id(current))
            with suppress(Unresolvable):
                waiting.append(resolve(root, str(current.get("$ref", ""))))
        yield current
        waiting.extend(subschemas(current))


def leads_back(root: Any) -> bool:
    """True if some schema in ``root`` applies itself to the same value, which would never end."""
    done: set[int] = set()
    return any(_leads_back(root, start, done) for start in walk(root))


def _leads_back(root: Any, start: Any, done: set[int]) -> bool:
    open_, way = {id(start)}, [(start, _same_value(root, start))]
    while way:
        schema, nexts = way[-1]
        following = next((each for each in nexts if isinstance(each, dict) and id(each) not in done), None)
        if following is None:
            way.pop()
            open_.discard(id(schema))
            done.add(id(schema))
        elif id(following) in open_:
            return True
        else:
            open_.add(id(following))
            way.append((following, _same_value(root, following)))
    return False


def _same_value(root: Any, schema: Any) -> Iterator[Any]:
    """Yield the schemas that are applied to the same value as ``schema``, not to a part of it."""
    if not isinstance(schema, dict):
        return
    if isinstance(reference := schema.get("$ref"), str):
        with suppress(Unresolvable):
            yield resolve(root, reference)
    for keyword in _SAME_IN_ONE:
        yield schema.get(keyword)
    for keyword in _SAME_IN_LIST:
        if isinstance(several := schema.get(keyword), list):
            yield from several
    if isinstance(by_name := schema.get("dependentSchemas"), dict):
        yield from by_name.values()


def patterns(schema: Any) -> Iterator[str]:
    """Yield the regular expressions that ``schema`` itself holds."""
    if isinstance(schema, dict):
        if isinstance(pattern := schema.get("pattern"), str):
            yield pattern
        if isinstance(by_pattern := schema.get("patternProperties"), dict):
            yield from by_pattern


def resolve(root: Any, reference: str) -> Any:
    """Return what the pointer ``#/…`` stands for in ``root``; raises `Unresolvable`, also for ``#anchor``."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        raise Unresolvable(reference)
    target = root
    for part in reference[2:].split("/"):
        target = _step(target, _unescape(part), reference)
    return target


def follow(root: Any, schema: Any) -> Any:
    """Replace a schema that is a local ``$ref`` by its target, its own keywords on top; raises `Unresolvable`."""
    for _ in range(_HOPS):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            return schema
        target = resolve(root, schema["$ref"])
        beside = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
        schema = {**target, **beside} if isinstance(target, dict) else target
    raise Unresolvable("a circle of $ref")


def nodes(value: Any, limit: int) -> int:
    """The size of a JSON value: one for each part and each 100 characters; stops soon after ``limit``."""
    count, waiting = 0, [value]
    while waiting and count <= limit:
        current = waiting.pop()
        count += 1
        if isinstance(current, str):
            count += len(current) // 100
        elif isinstance(current, dict):
            waiting.extend(current.values())
            count += sum(map(len, current)) // 100
        elif isinstance(current, list):
            waiting.extend(current)
    return count


def depth(value: Any, limit: int) -> int:
    """The nesting depth of a JSON value; stops at ``limit`` + 1."""
    deep, level = 0, [value]
    while level and deep <= limit:
        level = [part for outer in level if isinstance(outer, dict | list) for part in _parts(outer)]
        deep += bool(level)
    return deep


def pattern_weight(pattern: str) -> int:
    """Estimate the size of a compiled regular expression, in states; `BACKTRACKING` if it must backtrack."""
    if re.search(_NEEDS_BACKTRACKING, pattern):
        return BACKTRACKING
    weight = len(pattern) * (50 if r"\p" in pattern or r"\P" in pattern else 1)
    for low, high in re.findall(_COUNTED, pattern):
        weight *= max(int(low), int(high or 0), 1)
    return min(weight, BACKTRACKING - 1)


def _parts(value: Mapping[str, Any] | list[Any]) -> list[Any]:
    return value if isinstance(value, list) else list(value.values())


def _step(target: Any, part: str, reference: str) -> Any:
    if isinstance(target, dict) and part in target:
        return target[part]
    if isinstance(target, list) and part.isdecimal() and len(part) < 9 and int(part) < len(target):
        return target[int(part)]
    raise Unresolvable(reference)


def _unescape(part: str) -> str:
    if "%" in part:
        part = unquote(part)
    return part.replace("~1", "/").replace("~0", "~")
