"""The HTTP headers that repeat parts of a modern request, so that gateways can route without reading bodies.

Specification: 2026-07-28 basic/transports, Streamable HTTP (``Mcp-Name``, ``Mcp-Param-*``); server/tools
(``x-mcp-header``).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcphost.errors import InvalidArguments
from mcphost.lazy_dataclass import dataclass

ANNOTATION: Final = "x-mcp-header"
PARAMETER_PREFIX: Final = "Mcp-Param-"

LARGEST_INTEGER: Final = 2**53 - 1
"""Beyond this, integers do not survive every JSON parser on the way, and a header would disagree with its body."""

_OPENING: Final = "=?base64?"
_CLOSING: Final = "?="
_PLAIN: Final = r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?"
TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
"""Pattern of a header's name and of other words in headers (RFC 9110 section 5.6.2)."""

_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {"string": str, "integer": (int, float), "boolean": bool}

_DATA: Final = frozenset({"default", "examples", "const", "enum"})
"""Keywords whose value is data, in which the annotation has no meaning."""


@dataclass(frozen=True, slots=True)
class ParameterHeader:
    """The argument at ``path``, of JSON Schema ``type``, is repeated in the header ``name``."""

    name: str
    path: tuple[str, ...]
    type: str


class InvalidAnnotation(Exception):
    """A schema whose ``x-mcp-header`` annotations break the rules; ``str()`` is a clause."""


def encode_header_value(value: str) -> str:
    """A header value for this text: itself where a header can hold it, else Base64. Raises ValueError."""
    if value == "":
        return value
    disguised = value.startswith(_OPENING) and value.endswith(_CLOSING)
    if re.fullmatch(_PLAIN, value) and not disguised:
        return value
    return f"{_OPENING}{base64.b64encode(value.encode()).decode()}{_CLOSING}"  # UnicodeEncodeError: a lone surrogate


def decode_header_value(value: str) -> str:
    """The text that a header value stands for. Raises ValueError if it cannot be decoded."""
    if not (value.startswith(_OPENING) and value.endswith(_CLOSING)):
        return value
    try:
        return base64.b64decode(value[len(_OPENING) : -len(_CLOSING)], validate=True).decode()
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def parameter_headers_of(headers: tuple[ParameterHeader, ...], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers for these arguments. Raises InvalidArguments for a value that a header cannot repeat."""
    found: dict[str, str] = {}
    for header in headers:
        value = _value_at(header.path, arguments)
        if value is None:
            continue
        try:
            found[header.name] = encode_header_value(_spelled(value, header.type))
        except ValueError as error:
            why = f"the header {header.name} cannot repeat it: {error}"
            raise InvalidArguments([(".".join(header.path), why)]) from None
    return found


def read_annotations(schema: object) -> tuple[ParameterHeader, ...]:
    """The annotations of an input schema. Raises InvalidAnnotation; a schema with one is not to be used over HTTP."""
    found: list[ParameterHeader] = []
    names: set[str] = set()
    for path, subschema in annotated(schema):
        if path is None:
            raise InvalidAnnotation(f"{ANNOTATION} is where no argument can be found by name")
        header = _read_annotation(path, subschema)
        if header.name.lower() in names:
            raise InvalidAnnotation(f"two arguments have the {ANNOTATION} {header.name[len(PARAMETER_PREFIX) :]!r}")
        names.add(header.name.lower())
        found.append(header)
    return tuple(found)


def _read_annotation(path: tuple[str, ...], schema: Mapping[str, Any]) -> ParameterHeader:
    name, kind = schema[ANNOTATION], schema.get("type")
    argument = ".".join(path)[:80]
    if not isinstance(name, str) or not re.fullmatch(TOKEN, name):
        raise InvalidAnnotation(f"the {ANNOTATION} of {argument} is not a header name")
    if not path:
        raise InvalidAnnotation(f"{ANNOTATION} is on the whole schema, not on an argument")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise InvalidAnnotation(f"{argument} has an {ANNOTATION}, but is not a string, integer or boolean")
    return ParameterHeader(f"{PARAMETER_PREFIX}{name}", path, kind)


def annotated(schema: object) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Each annotated subschema, with the path of the argument; None where it is not reached by properties alone."""
    pending: list[tuple[tuple[str, ...] | None, object]] = [((), schema)]
    while pending:
        path, here = pending.pop()
        if isinstance(here, list):
            pending += [(None, item) for item in here]
        if not isinstance(here, dict):
            continue
        if ANNOTATION in here:
            yield path, here
        for keyword, value in here.items():
            if keyword == "properties" and isinstance(value, dict):
                pending += [(None if path is None else (*path, name), each) for name, each in value.items()]
            elif keyword in ("$defs", "definitions", "patternProperties", "dependentSchemas"):
                pending += [(None, each) for each in value.values()] if isinstance(value, dict) else []
            elif keyword not in _DATA and keyword != ANNOTATION:
                pending.append((None, value))


def _value_at(path: tuple[str, ...], arguments: Mapping[str, Any]) -> object:
    value: object = arguments
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _spelled(value: object, kind: str) -> str:
    expected = _TYPES[kind]
    if not isinstance(value, expected) or (kind != "boolean" and isinstance(value, bool)):
        raise ValueError(f"it is no {kind}")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    assert isinstance(value, int | float)
    if not float(value).is_integer() or abs(value) > LARGEST_INTEGER:
        raise ValueError("it is not an integer that every JSON parser reads alike")
    return str(int(value))
