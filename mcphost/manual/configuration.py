"""The reference of the configuration's keys, made from the models and their docstrings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mcphost.config.schema import config_schema


class DocumentedKey(NamedTuple):
    """A key of the configuration. ``choices`` are TOML literals; without any, ``kind`` names what may stand there."""

    name: str
    kind: str
    choices: tuple[str, ...]
    limits: str
    """Bounds and default, such as ``at least 1, default 5``; may be empty."""
    about: str


class DocumentedTable(NamedTuple):
    path: str
    """Without brackets, such as ``servers.NAME.oauth``."""
    about: str
    keys: tuple[DocumentedKey, ...]


REFERENCES: Final = {
    "${NAME}": "an environment variable",
    "${NAME:-default}": "the same, or a default where it is not set",
    "${keyring:NAME}": "an item of the system's keychain, under the service mcphost",
    "${file:PATH}": "the content of a file",
    "$${": "a literal ${",
}
"""References that strings of the configuration may hold."""

_KINDS: Final = {
    "string": "string", "integer": "whole number", "number": "number", "array": "list", "object": "table",
}  # fmt: skip
_BOUNDS: Final = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}


def documented_tables() -> Iterator[DocumentedTable]:
    """Yield each table of the configuration before the tables within it. Descriptions are Markdown."""
    schema = config_schema()
    for name, section in schema["properties"].items():
        if name != "mcp_servers":  # only another name of servers
            yield from _tables(name, section, schema["$defs"])


def _tables(path: str, found: Mapping[str, Any], tables: Mapping[str, Any]) -> Iterator[DocumentedTable]:
    further = found.get("additionalProperties")
    if isinstance(further, dict) and "$ref" in further:
        path, found = f"{path}.{'TOOL' if path.endswith('.tools') else 'NAME'}", further
    table = tables[found["$ref"].rpartition("/")[2]]
    keys: list[DocumentedKey] = []
    inner: list[tuple[str, Mapping[str, Any]]] = []
    for name, key in table["properties"].items():
        nested = key.get("additionalProperties")
        if "$ref" in key or (isinstance(nested, dict) and "$ref" in nested):
            inner.append((name, key))
            continue
        keys.append(_key(name, key))
        items = key.get("items", {})
        inner += [(f"{name}[]", shape) for shape in (items, *items.get("anyOf", ())) if "$ref" in shape]
    about = re.sub(r"^`\[.+?\]`: (.)", lambda found: found[1].upper(), table.get("description", ""))
    yield DocumentedTable(path, about, tuple(keys))
    for name, key in inner:
        if (path, name) == ("servers.NAME", "limits"):
            yield DocumentedTable(f"{path}.limits", f"{key['description']} The keys are those of [limits].", ())
        else:
            yield from _tables(f"{path}.{name}", key, tables)


def _key(name: str, key: Mapping[str, Any]) -> DocumentedKey:
    boolean = (True, False) if key.get("type") == "boolean" else ()
    choices = tuple(map(_toml, key.get("enum", boolean)))
    bounds = [f"{word} {key[bound]:g}" for bound, word in _BOUNDS.items() if bound in key]
    default = [f"default {_toml(key['default'])}"] if "default" in key else []
    kind = _KINDS.get(str(key.get("type")), "")
    return DocumentedKey(name, kind, choices, ", ".join([*bounds, *default]), key["description"])


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f"{value:g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def configuration_reference() -> str:
    """Return the tables and their keys as Markdown."""
    return "\n".join(line for table in documented_tables() for line in _lines(table))


def _lines(table: DocumentedTable) -> Iterator[str]:
    yield f"## [{table.path}]\n"
    yield f"{table.about}\n"
    for key in table.keys:
        value = " | ".join(f"`{each}`" for each in key.choices) or f"*{key.kind}*"
        yield f"- **`{key.name}`** = {value}{f' ({key.limits})' if key.limits else ''}  \n  {key.about}"
    if table.keys:
        yield ""
