"""The differences between two definitions of a tool, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mcphost.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """A changed field; None where it is absent."""

    field: str
    before: str | None
    after: str | None


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Field by field what changed, in the order of the new definition, removed fields last."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    fields = [*new, *(field for field in old if field not in new)]
    return [_difference(f, old.get(f), new.get(f)) for f in fields if old.get(f) != new.get(f)]


def _difference(field: str, before: str | None, after: str | None) -> Difference:
    shown = Difference(field, _plain(before), _plain(after))
    return Difference(field, before, after) if shown.before == shown.after else shown


def _plain(leaf: str | None) -> str | None:
    """A string without its quotes; other values as they are."""
    if leaf is None or not leaf.startswith('"'):
        return leaf
    text: str = json.loads(leaf)
    return text


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value that holds no other, as JSON, by its place. No two have the same place."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            step = json.dumps(key, ensure_ascii=False) if not key or set(key) & set('."[') else key
            yield from _leaves(item, f"{path}.{step}" if path else step)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, json.dumps(value, ensure_ascii=False)
