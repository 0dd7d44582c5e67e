"""Reads URLs that a server wants a person to visit, and warns about deceptive ones. Nothing is fetched.

Specification: client/elicitation, safe URL handling.
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv6Address, ip_address
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from mcphost.errors import InvalidResult
from mcphost.protocol.display import hidden_count, readable_label

URL_CHARACTERS: Final = 8192
"""Longer URLs fit no dialog, and few browsers accept them."""

_UNFIT: Final = re.compile(r"[\x00-\x20\x7f\\<>\"]")
_NUMERIC: Final = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*\.?", re.IGNORECASE)
_NAME: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")
_LABEL: Final = 63


class PageAddress(NamedTuple):
    url: str
    """The URL as the server wrote it."""
    opens: str
    """The URL in ASCII, for the browser."""
    host: str
    """The host in ASCII (punycode), without the port."""
    readable_host: str
    """The host with punycode decoded; not safe to show."""
    doubts: tuple[str, ...] = ()
    """Sentences about what is suspicious."""


def read_address(url: Any) -> PageAddress:
    """Read an https URL, or http on this machine. Raises InvalidResult with why it cannot be opened."""
    if not isinstance(url, str):
        raise InvalidResult("url must be text")
    if len(url) > URL_CHARACTERS:
        raise InvalidResult(f"the URL has {len(url)} characters; more than {URL_CHARACTERS} are not opened")
    if _UNFIT.search(url) or hidden_count(url):
        raise InvalidResult("the URL holds characters that no URL may hold")
    parts = _split(url)
    host = _ascii_host(parts.hostname or "")
    if parts.scheme == "http" and not is_loopback(host):
        raise InvalidResult("the URL is not https, which only addresses of this machine need not be")
    readable = ".".join(map(readable_label, host.split(".")))
    doubts = tuple(_doubts(host, readable, parts))
    return PageAddress(url, _for_browser(parts, host), host, readable, doubts)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise InvalidResult("the URL cannot be read") from None
    if parts.scheme not in ("http", "https"):
        raise InvalidResult("the URL is not one of the web (https)")
    if "@" in parts.netloc:
        raise InvalidResult("the URL holds a user name or password")
    return parts


def _ascii_host(hostname: str) -> str:
    if ":" in hostname:
        return hostname  # an IPv6 address, which urlsplit has validated
    host = ".".join(map(_encoded, unicodedata.normalize("NFKC", hostname).lower().split(".")))
    if not _NAME.fullmatch(host):
        raise InvalidResult("the URL names no host")
    return host


def _encoded(label: str) -> str:
    if label.isascii():
        return label
    encoded = f"xn--{label.encode('punycode').decode('ascii')}"
    if len(encoded) > _LABEL:
        raise InvalidResult("the URL names no host")
    return encoded


def _for_browser(parts: SplitResult, host: str) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    netloc = bracketed if parts.port is None else f"{bracketed}:{parts.port}"
    rest = (quote(part, safe="%/:?#[]@!$&'()*+,;=-._~") for part in (parts.path, parts.query, parts.fragment))
    path, query, fragment = rest
    return parts._replace(netloc=netloc, path=path, query=query, fragment=fragment).geturl()


def _doubts(host: str, readable: str, parts: SplitResult) -> list[str]:
    doubts = []
    if host != readable:
        doubts.append("The host is written in letters of another script: it may only look like one you know.")
        if len(_scripts(readable)) > 1:
            doubts.append("It mixes letters of several scripts.")
    if (parts.hostname or "").lower() not in (host, readable):
        doubts.append("The host is written in a disguise.")
    if _NUMERIC.fullmatch(host) or ":" in host:
        doubts.append("The host is a number, not a name.")
    if parts.port is not None and not is_loopback(host):
        doubts.append(f"It uses the unusual port {parts.port}.")
    return doubts


def _scripts(text: str) -> set[str]:
    """The scripts of the letters, by the first word of their names."""
    return {unicodedata.name(letter, "?").split()[0] for letter in text if letter.isalpha()}


def is_loopback(host: str) -> bool:
    """True if ``host`` is loopback, by its name or address alone."""
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
