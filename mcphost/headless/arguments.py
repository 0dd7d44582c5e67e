"""A tool's arguments from a command line: ``key=value`` typed by the tool's schema, ``key:=json``, ``--args JSON``.

Whether the whole fits the schema is for the host to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcphost.errors import InvalidArguments
from mcphost.protocol.forms import ABSENT, FieldError, Form, Kind, parse, read_form

_DEFINITIONS: Final = ("$defs", "definitions")


@dataclass(frozen=True, slots=True)
class Given:
    """What was typed, before the tool is known: ``texts`` still want a type."""

    values: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def read_given(pairs: Sequence[str], whole: str | None) -> Given:
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
    return Given(values, texts)


def typed(given: Given, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, each text as its property of ``schema`` wants it. Raises InvalidArguments with every mistake."""
    arguments, problems = dict(given.values), []
    for name, text in given.texts.items():
        try:
            arguments[name] = _value(name, text, schema)
        except FieldError as error:
            problems.append((name, f"{error}; {name}:=JSON takes any value"))
    if problems:
        raise InvalidArguments(problems)
    return arguments


def _value(name: str, text: str, schema: Mapping[str, Any]) -> Any:
    fields = _form(name, schema).fields
    if not fields or fields[0].kind in (Kind.STRING, Kind.TEXT):
        return text
    value = parse(fields[0], text)
    if value is ABSENT:
        raise FieldError("has no value")
    return value


def _form(name: str, schema: Mapping[str, Any]) -> Form:
    """The form of this one property, so that neither its many neighbours nor a combination of forms matter."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or name not in properties:
        return Form()
    definitions = {key: schema[key] for key in _DEFINITIONS if key in schema}
    return read_form({"type": "object", "properties": {name: properties[name]}, **definitions})


def _object(text: str) -> dict[str, Any]:
    value = _json("--args", text)
    if not isinstance(value, dict):
        raise InvalidArguments([("--args", "is not a JSON object")])
    return value


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments([(name, f"is not JSON: {error}")]) from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
