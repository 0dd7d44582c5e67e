"""Which URLs a sign-in may fetch, and which it may show to a browser.

Knows schemes, origins and kinds of addresses. Refuses to resolve a name: it judges addresses that somebody resolved.

Specification: security best practices, server-side request forgery and OAuth authorization URL validation.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

import httpx

from mcphost.errors import SignInFailed
from mcphost.protocol.display import show_line
from mcphost.protocol.urls import is_here

LONGEST: Final = 8192
"""Characters of a URL; a browser's command line and its bar take no more without trouble."""

_PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?|[0-9a-f:.]+")
"""A host as bytes on the wire; URL libraries let pass what a shell or a screen could take for something else."""

_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+", re.IGNORECASE)
_SHARED: Final = ipaddress.ip_network("100.64.0.0/10")
_TRANSLATED: Final = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def origin_of(url: str) -> str:
    """Scheme, host and port, in one spelling; the port only where it is not the scheme's own."""
    parsed = httpx.URL(url)
    host = parsed.raw_host.decode("ascii").rstrip(".").lower()
    host = f"[{host}]" if ":" in host else host
    port = "" if parsed.port in (None, _PORTS.get(parsed.scheme)) else f":{parsed.port}"
    return f"{parsed.scheme}://{host}{port}"


def host_of(url: str) -> str:
    """The host with its port, as bytes on the wire have it (punycode)."""
    return origin_of(url).partition("://")[2]


def checked_url(what: str, url: object, home: str) -> str:
    """``url`` if mcphost may use it as ``what`` for a server at ``home``; raises SignInFailed with the reason."""
    if not isinstance(url, str) or not url:
        raise SignInFailed(f"the {what} is missing")
    if len(url) > LONGEST:
        raise SignInFailed(f"the {what} is longer than {LONGEST} characters")
    if any(letter <= " " or letter == "\\" or "\x7f" <= letter <= "\xa0" for letter in url):
        raise SignInFailed(f"the {what} holds spaces, backslashes or control characters: {show_line(url, 120)}")
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise SignInFailed(f"the {what} is no URL: {show_line(url, 120)}") from None
    problem = _problem(parsed, httpx.URL(home))
    if problem:
        raise SignInFailed(f"the {what} {problem}: {show_line(url, 120)}")
    return url


def _problem(url: httpx.URL, home: httpx.URL) -> str:
    if url.scheme not in ("https", "http"):
        return "is neither https nor http"
    if not url.host:
        return "names no host"
    if not _NAME.fullmatch(url.raw_host.decode("ascii").lower()) or (url.port or 0) > 65_535:
        return "names no host that can be"
    if url.userinfo:
        return "carries a name before its host, which can hide where it leads"
    if url.fragment:
        return "has a fragment"
    literal, at_home = literal_address(url.host), literal_address(home.host)
    if literal is None and _NUMBER.fullmatch(url.host.rstrip(".").rpartition(".")[2]):
        return "spells an address in a way that hides it"
    if literal is not None and not may_reach(literal, [at_home] if at_home else []):
        return "leads into a private network, where the server does not live"
    if url.scheme == "http" and not is_here(url.host):
        return "is http, not https"
    return ""


def literal_address(host: str) -> Address | None:
    """The address that a host spells out; None for a name other than ``localhost``."""
    if f".{host}".lower().rstrip(".").endswith(".localhost"):
        return ipaddress.IPv4Address("127.0.0.1")
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    return _plain(address)


def _plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour or address
    return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF) if address in _TRANSLATED else address


def may_reach(address: Address, home: list[Address]) -> bool:
    """May metadata be fetched from here, for a server that lives at ``home``?

    Public addresses always; this machine only where the server lives on it; a private network where the server lives in
    one, or on this machine, and so in its networks; a link-local address, which cloud providers answer with secrets,
    only where it is the server's own.
    """
    address = _plain(address)
    homes = [_plain(each) for each in home]
    if address.is_link_local or address.is_unspecified or address.is_multicast:
        return address in homes
    if address.is_loopback:
        return any(each.is_loopback for each in homes)
    private = address.is_private or address.is_reserved or address in _SHARED
    return not private or any(each.is_private for each in homes)
