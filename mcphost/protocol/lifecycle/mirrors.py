"""Compares the headers of a modern HTTP request with the values of its body that they repeat.

Specification: 2026-07-28 basic/transports, Streamable HTTP (standard headers; -32020 HeaderMismatch).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mcphost.json_values import as_dict
from mcphost.protocol.lifecycle.revisions import META_PREFIX
from mcphost.protocol.lifecycle.session import NAMED_BY
from mcphost.protocol.wire.headers import PARAMETER_PREFIX, decode_header_value

VERSION_HEADER: Final = "MCP-Protocol-Version"
METHOD_HEADER: Final = "Mcp-Method"
NAME_HEADER: Final = "Mcp-Name"

MOST_LEAVES: Final = 10_000
"""Values among which one is looked for that a parameter's header repeats."""


class Mirror(NamedTuple):
    """A header and the value that it repeats. None: it is not there."""

    header: str
    value: str | None
    """As decoded; as it came where it cannot be decoded."""
    place: str
    """The value's place in the body, such as ``params.name``; empty if that is not known."""
    body: str | None
    agrees: bool

    def __str__(self) -> str:
        shown = "not sent" if self.value is None else self.value
        if self.agrees:
            return f"{self.header}: {shown} = {self.place or 'an argument'}"
        there = "absent" if self.body is None else self.body
        return f"{self.header}: {shown} ≠ {self.place or 'any argument'}{f': {there}' if self.place else ''}"


def mirrors_of(headers: Mapping[str, str], body: Mapping[str, Any], *, hidden: str = "") -> list[Mirror]:
    """Each header that repeats a part of this request, and each that is missing; empty for one of older revisions.

    A header whose value is ``hidden`` was masked, and agrees.
    """
    given = {name.lower(): value for name, value in headers.items()}
    params = as_dict(body.get("params"))
    version = as_dict(params.get("_meta")).get(f"{META_PREFIX}protocolVersion")
    if version is None and METHOD_HEADER.lower() not in given:
        return []
    return list(_mirrors(given, body.get("method"), params, version, hidden))


def _mirrors(
    given: Mapping[str, str], method: object, params: Mapping[str, Any], version: object, hidden: str
) -> Iterator[Mirror]:
    yield _mirror(given, VERSION_HEADER, "params._meta protocolVersion", version, hidden)
    yield _mirror(given, METHOD_HEADER, "method", method, hidden)
    member = NAMED_BY.get(method) if isinstance(method, str) else None
    if member is not None or NAME_HEADER.lower() in given:
        place = f"params.{member}" if member else "params"
        yield _mirror(given, NAME_HEADER, place, params.get(member) if member else None, hidden)
    named = [name for name in given if name.startswith(PARAMETER_PREFIX.lower())]
    if not named:
        return
    leaves = set(_leaves(params.get("arguments")))
    for name in named:
        value = _decoded(given[name])
        header = f"{PARAMETER_PREFIX}{name[len(PARAMETER_PREFIX) :]}"
        yield Mirror(header, value, "", None, given[name] == hidden or value in leaves)


def _mirror(given: Mapping[str, str], header: str, place: str, in_body: object, hidden: str) -> Mirror:
    sent = given.get(header.lower())
    value = None if sent is None else _decoded(sent)
    body = in_body if isinstance(in_body, str) else None if in_body is None else str(in_body)
    return Mirror(header, value, place, body, value == body or (sent == hidden and bool(hidden)))


def _decoded(value: str) -> str:
    try:
        return decode_header_value(value)
    except ValueError:
        return value


def _leaves(arguments: object) -> Iterator[str]:
    """The values that a header may repeat, as it spells them."""
    pending, seen = [arguments], 0
    while pending and seen < MOST_LEAVES:
        value, seen = pending.pop(), seen + 1
        if isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, bool):
            yield "true" if value else "false"
        elif isinstance(value, str):
            yield value
        elif isinstance(value, int | float) and float(value).is_integer():
            yield str(int(value))
