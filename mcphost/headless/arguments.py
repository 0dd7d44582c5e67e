"""A tool's arguments from a command line: ``key=value`` typed by the tool's schema, ``key:=json``, ``--args JSON``.

``--args -`` is JSON that comes through stdin.

Whether the whole fits the schema is for the host to say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcphost.errors import InvalidArguments
from mcphost.protocol.display import size_text

MOST_BYTES: Final = 16_000_000
"""That ``--args -`` takes from stdin."""

_DEFINITIONS: Final = ("$defs", "definitions")


@dataclass(frozen=True, slots=True)
class GivenArguments:
    """What was typed, before the tool is known: ``texts`` still want a type."""

    values: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def read_given(pairs: Sequence[str], whole: str | None) -> GivenArguments:
    """Take a command line apart. Raises InvalidArguments."""
    values: dict[str, Any] = {} if whole is None else _object(whole)
    texts: dict[str, str] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.rstrip(":"):
            raise InvalidArguments([(pair, "is neither key=value nor key:=json")])
        name = key.removesuffix(":")
        if name in texts or (name in values and whole is None):
            raise InvalidArguments([(name, "is given twice")])
        values.pop(name, None)
        if key.endswith(":"):
            values[name] = _json(name, text)
        else:
            texts[name] = text
    return GivenArguments(values, texts)


def typed(given: GivenArguments, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, each text as its property of ``schema`` wants it. Raises InvalidArguments with every mistake."""
    arguments = dict(given.values)
    problems: list[tuple[str, str]] = []
    for name, text in given.texts.items():
        part = _property(schema, name)
        if part is None or part.get("type") == "string":
            arguments[name] = text
        else:
            _add(arguments, problems, name, text, schema)
    if problems:
        raise InvalidArguments(problems)
    return arguments


def _property(schema: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    properties = schema.get("properties")
    part = properties.get(name) if isinstance(properties, Mapping) else None
    return part if isinstance(part, Mapping) else None


def _add(
    arguments: dict[str, Any], problems: list[tuple[str, str]], name: str, text: str, schema: Mapping[str, Any]
) -> None:
    """Read ``text`` as a form would."""
    from mcphost.protocol.forms import ABSENT, FieldError, FieldKind, parse, read_form  # late: most arguments are text

    # Of this one property, so that neither its many neighbours nor a combination of forms matter.
    definitions = {key: schema[key] for key in _DEFINITIONS if key in schema}
    one = {"type": "object", "properties": {name: schema["properties"][name]}, **definitions}
    (field,) = read_form(one).fields or (None,)
    if field is None or field.kind in (FieldKind.STRING, FieldKind.TEXT):
        arguments[name] = text
        return
    try:
        value = parse(field, text)
    except FieldError as error:
        problems.append((name, f"{error}; {name}:=JSON takes any value"))
        return
    if value is ABSENT:
        problems.append((name, "has no value"))
    arguments[name] = value


def _object(text: str) -> dict[str, Any]:
    value = _json("--args", _piped() if text == "-" else text)
    if not isinstance(value, dict):
        raise InvalidArguments([("--args", "is not a JSON object")])
    return value


def _piped() -> str:
    try:
        data = b"" if sys.stdin is None else sys.stdin.buffer.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise InvalidArguments([("--args -", f"stdin holds more than {size_text(MOST_BYTES)}")])
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArguments([("--args -", f"stdin cannot be read: {error}")]) from None


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise InvalidArguments([(name, "is nested too deeply")]) from None
    except ValueError as error:
        raise InvalidArguments([(name, f"is not JSON: {error}")]) from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
