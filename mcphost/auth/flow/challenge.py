"""Parses ``WWW-Authenticate``: the schemes that a server names, and their parameters.

Specification: RFC 9110 section 11.6.1; RFC 6750 section 3; RFC 9728 section 5.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final

from mcphost.lazy_dataclass import dataclass

MOST_CHARACTERS: Final = 16_384
"""Characters of the header that are parsed; no honest challenge needs more."""

_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_PIECE: Final = re.compile(
    rf"""[\s,]*(?:
        (?P<name>{_TOKEN})[ \t]*=[ \t]*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>{_TOKEN}))(?=[ \t]*(?:,|$))
      | (?P<scheme>{_TOKEN})(?=[ \t]|,|$)(?:[ \t]+(?P<token68>[A-Za-z0-9\-._~+/]+=*)(?=[ \t]*(?:,|$)))?
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Challenge:
    """The parameters of a Bearer challenge: foreign text, not made safe."""

    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def resource_metadata(self) -> str:
        """The URL of the protected resource metadata; empty if not given."""
        return self.parameters.get("resource_metadata", "")

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that would be sufficient."""
        return tuple(dict.fromkeys(self.parameters.get("scope", "").split()))

    @property
    def error(self) -> str:
        """The error code, such as ``insufficient_scope``; empty if not given."""
        return self.parameters.get("error", "")


def read_challenge(header: str) -> Challenge:
    """The first Bearer challenge of a header value (several headers joined by commas); empty if there is none."""
    if len(header) > MOST_CHARACTERS:
        return Challenge()
    for scheme, parameters in _challenges(header):
        if scheme == "bearer":
            return Challenge(parameters)
    return Challenge()


def _challenges(header: str) -> Iterator[tuple[str, dict[str, str]]]:
    scheme, parameters, position = "", dict[str, str](), 0
    while (match := _PIECE.match(header, position)) is not None:
        position = match.end()
        if match["scheme"] is not None:
            if scheme:
                yield scheme, parameters
            scheme, parameters = match["scheme"].lower(), {}
        else:
            parameters.setdefault(match["name"].lower(), _value(match))
    if scheme:
        yield scheme, parameters


def _value(match: re.Match[str]) -> str:
    return str(match["plain"]) if match["quoted"] is None else re.sub(r"\\(.)", r"\1", match["quoted"])
