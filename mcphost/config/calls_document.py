"""Edits the text of ``calls.toml`` with tomlkit, so that comments, order and layout last. Imported only for writing.

The text must be valid TOML. Each edit is checked: what it does not concern reads as before.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array, InlineTable, Item, Table

from mcphost.config.key_lines import KeyLines
from mcphost.errors import ConfigError

_OF_A_TEST: Final = ("expect", "max_seconds")
"""Saving a call again leaves them as they are, unless another thing is called."""

_UNSAFE: Final = "calls.toml is written in a way that mcphost cannot change safely; edit it by hand"


def names_in(text: str) -> list[object]:
    """The names of all calls, valid or not."""
    return [each.get("name") for each in _entries(tomllib.loads(text))]


def with_call(text: str, call: Mapping[str, Any]) -> str:
    """``text`` with this entry at its end, or in place of the first one of its name. Raises ConfigError."""

    def change(document: tomlkit.TOMLDocument, plain: dict[str, Any]) -> None:
        entries = _entries(plain)
        at = next((place for place, each in enumerate(entries) if each.get("name") == call["name"]), None)
        if at is None:
            _append(document, call)
            plain["call"] = [*entries, call]
            return
        entry, before = document["call"][at], entries[at]
        kept = _OF_A_TEST if _what(before) == _what(call) else ()
        for key in [name for name in before if name not in call and name not in kept]:
            del entry[key], before[key]
        for key, value in call.items():
            _set(entry, key, value)
            before[key] = value

    return _edited(text, change)


def with_expectation(text: str, name: str, expect: Mapping[str, Any]) -> str:
    """``text`` with this ``expect`` in the first call of this name; else unchanged. Raises ConfigError."""

    def change(document: tomlkit.TOMLDocument, plain: dict[str, Any]) -> None:
        for at, entry in enumerate(_entries(plain)):
            if entry.get("name") == name:
                _set(document["call"][at], "expect", expect)
                entry["expect"] = expect
                return

    return _edited(text, change)


def _what(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of an entry that say what is called: server, and tool, prompt or resource."""
    return {key: value for key, value in entry.items() if key not in ("arguments", *_OF_A_TEST)}


def without_call(text: str, name: str) -> str:
    """``text`` without the calls of this name. Raises ConfigError."""
    plain, lines = tomllib.loads(text), KeyLines(text)
    kept = [each for each in _entries(plain) if each.get("name") != name]
    numbers = [place for place, each in enumerate(_entries(plain)) if each.get("name") == name]
    # By lines, since to tomlkit a comment above the next call is part of the call before it.
    rows = text.split("\n")
    for number in reversed(numbers):
        first = lines.line_of(("call", number)) or 1
        end = lines.line_of(("call", number + 1)) if lines.holds(("call", number + 1)) else None
        last = len(rows) if end is None else end - 1
        while last > first and end is not None and rows[last - 1].lstrip().startswith("#"):
            last -= 1
        del rows[first - 1 : last]
    made = "\n".join(rows)
    plain.pop("call", None)
    if {**plain, **({"call": kept} if kept else {})} != _loaded(made):
        raise ConfigError(_UNSAFE)
    return f"{made.rstrip()}\n"


def _loaded(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError:
        return {"": None}


def _edited(text: str, change: Callable[[tomlkit.TOMLDocument, dict[str, Any]], None]) -> str:
    """The text after ``change`` was made in the document and in its plain data, which must then be the same."""
    plain = tomllib.loads(text)
    try:
        document = tomlkit.parse(text if text.endswith("\n\n") or not text else f"{text}\n")
        change(document, plain)
        made = f"{tomlkit.dumps(document).rstrip()}\n"
        same = tomllib.loads(made) == plain
    except (TOMLKitError, ValueError, RecursionError):
        same = False
    if not same:
        raise ConfigError(_UNSAFE)
    return made


def _entries(plain: Mapping[str, Any]) -> list[Any]:
    entries = plain.get("call", [])
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise ConfigError("calls.toml: call must be a list of tables, [[call]]")
    return entries


def _append(document: tomlkit.TOMLDocument, call: Mapping[str, Any]) -> None:
    entries = document.setdefault("call", tomlkit.aot())
    entry: Table | InlineTable = tomlkit.inline_table() if isinstance(entries, Array) else tomlkit.table()
    for key, value in call.items():
        _set(entry, key, value)
    entries.append(entry)


def _set(table: MutableMapping[str, Any], key: str, value: Any) -> None:
    """Set a value; in a table that is there already, only the keys that differ."""
    there = table.get(key)
    if isinstance(value, dict) and isinstance(there, MutableMapping):
        for old in [name for name in there if name not in value]:
            del there[old]
        for name, each in value.items():
            _set(there, name, each)
    elif isinstance(value, dict) and isinstance(table, Table) and key == "arguments":
        table[key] = tomlkit.table()
        for name, each in value.items():  # one a line, so that a change is seen line by line
            _set(table[key], name, each)
    elif key not in table:
        _add(table, key, _item(value))
    elif repr(_unwrapped(there)) != repr(value):  # 1, 1.0 and true are equal to Python
        table[key] = _item(value)


def _add(table: MutableMapping[str, Any], key: str, item: Item) -> None:
    """Add a key behind the last one: to tomlkit, a comment above the next table is part of the table before it."""
    body = table.value.body if isinstance(table, Table) else []
    last = max((place for place, (name, _) in enumerate(body) if name is not None), default=-1)
    after = body[last + 1 :]
    del body[last + 1 :]
    table[key] = item
    body.extend(after)


def _unwrapped(value: Any) -> Any:
    return value.unwrap() if isinstance(value, Item) else value


def _item(value: Any, *, lines: bool = True) -> Item:
    """``lines``: it may take several lines."""
    # Readers may take a carriage return in text of several lines for a part of the line's end.
    if isinstance(value, str) and lines and "\n" in value.strip("\n") and "\r" not in value:
        return tomlkit.string(value, multiline=True)
    if isinstance(value, dict):
        made = tomlkit.inline_table()
        for name, each in value.items():
            made[name] = _item(each, lines=False)
        return made
    if isinstance(value, list):
        complex_ones = any(isinstance(each, dict | list) for each in value)
        listed = tomlkit.array().multiline(lines and len(value) > 1 and complex_ones)
        for each in value:
            listed.append(_item(each, lines=False))
        return listed
    item: Item = tomlkit.item(value)
    return item
