"""Parses ``WWW-Authenticate``: the parameters of Bearer and DPoP challenges, even if their syntax is slightly off.

Specification: RFC 9110 section 11.6.1; RFC 6750 section 3; RFC 9728 section 5.1; RFC 9449 section 7.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from mcphost.protocol.wire.headers import TOKEN

MOST_CHARACTERS: Final = 16_384
"""Characters of the header that are parsed; no honest challenge needs more."""

# Strings, not compiled patterns: `re` compiles and caches them on first use, and most runs read no challenge.
_SEPARATOR: Final = r"[\s,;]*"
_FIRST_SCHEME: Final = rf"({TOKEN})(?=[ \t,]|$)"
_SCHEME: Final = rf"({TOKEN})(?=[ \t]*(?:,|$)|[ \t]+(?:{TOKEN}[ \t]*=|[A-Za-z0-9\-._~+/]+=*[ \t]*(?:,|$)))"
_TOKEN68: Final = r"[ \t]+[A-Za-z0-9\-._~+/]+=*(?=[ \t]*(?:,|$))"
_PARAMETER: Final = (
    rf"""({TOKEN})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^'"]*)'(?=[\s,;]|$)|([^\s,;"']?[^\s,;"]*)(?=[\s,;]|$))"""
)
_WORD: Final = r"[^\s,;]+"


class Challenge(NamedTuple):
    """The parameters of Bearer and DPoP challenges: untrusted text, not made safe to show."""

    parameters: Mapping[str, str] = MappingProxyType({})
    unread: str = ""
    """The first part that cannot be read; empty if all could."""
    dpop: Mapping[str, str] | None = None
    """The parameters of the DPoP challenge alone; None if there is no such challenge."""

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

    @property
    def description(self) -> str:
        """The server's reason for the refusal; empty if not given."""
        return self.parameters.get("error_description", "")


def read_challenge(header: str) -> Challenge:
    """The challenges of a header value (several headers joined by commas); the first of equal parameters wins.

    Also accepted are values without quotes or in single ones, parameters separated by semicolons
    or blanks, and parameters without a scheme.
    """
    if len(header) > MOST_CHARACTERS:
        return Challenge(unread=header[:100])
    reader = _Reader(header)
    reader.read()
    parameters, unread, dpop = dict[str, str](), "", None
    for scheme, challenge in reader.challenges:
        if scheme in ("bearer", "dpop", ""):
            parameters = {**challenge.parameters, **parameters}
            unread = unread or challenge.unread
        if scheme == "dpop":
            dpop = {**challenge.parameters, **(dpop or {})}
    return Challenge(parameters, unread, dpop)


class _Reader:
    def __init__(self, header: str) -> None:
        self._header, self._position = header, 0
        self._scheme: str | None = None
        self._parameters: dict[str, str] = {}
        self._unread = ""
        self._open = ""
        """The parameter whose unquoted value the next word may continue."""
        self.challenges: list[tuple[str, Challenge]] = []

    def read(self) -> None:
        while True:
            separator = self._match(_SEPARATOR)
            assert separator is not None
            self._position = separator.end()
            if self._position == len(self._header):
                break
            starts = self._scheme is None
            if not ((starts or "," in separator[0]) and self._take_scheme(starts)):
                self._take_parameter(separator[0])
        self._end_challenge()

    def _match(self, pattern: str) -> re.Match[str] | None:
        return re.compile(pattern).match(self._header, self._position)

    def _take_scheme(self, first: bool) -> bool:
        match = self._match(_FIRST_SCHEME if first else _SCHEME)
        if match is None or (first and self._match(_PARAMETER)):
            return False
        self._end_challenge()
        self._scheme, self._position = match[1].lower(), match.end()
        if (token := self._match(_TOKEN68)) is not None:
            self._position = token.end()
        return True

    def _take_parameter(self, separator: str) -> None:
        self._scheme = self._scheme or ""
        match = self._match(_PARAMETER)
        if match is not None:
            name, quoted, single, plain = match[1].lower(), *match.groups()[1:]
            known = name in self._parameters
            if quoted is not None:
                self._parameters.setdefault(name, re.sub(r"\\(.)", r"\1", quoted))
            else:
                self._parameters.setdefault(name, plain if single is None else single)
            self._open = name if plain and not known else ""
            self._position = match.end()
            return
        word = self._match(_WORD)
        assert word is not None
        if self._open and '"' not in word[0]:
            self._parameters[self._open] += f"{separator.strip() and ','} {word[0]}"
        else:
            self._unread = self._unread or self._header[self._position : self._position + 100]
        self._position = word.end()

    def _end_challenge(self) -> None:
        if self._scheme is not None:
            self.challenges.append((self._scheme, Challenge(self._parameters, self._unread)))
        self._scheme, self._parameters, self._unread, self._open = None, {}, "", ""
