"""Decides which URLs a sign-in may fetch or open in a browser.

Specification: security best practices, server-side request forgery and OAuth authorization URL validation.
"""

from __future__ import annotations

import re
from typing import Final

import httpx

from mcphost.errors import SignInFailed
from mcphost.net.addresses import literal_address, may_reach
from mcphost.protocol.display import show_line
from mcphost.protocol.urls import is_loopback

LONGEST: Final = 8192
"""Characters of a URL; longer ones cause trouble on command lines and in address bars."""

_NAME: Final = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?|[0-9a-f:.]+")
"""A host in ASCII. URL libraries accept characters that a shell or a screen could misread."""

_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+", re.IGNORECASE)


def checked_url(what: str, url: object, home: str) -> str:
    """Return ``url`` if mcphost may use it as ``what`` for a server at ``home``; raise SignInFailed otherwise."""
    if not isinstance(url, str) or not url:
        raise SignInFailed(f"the {what} is missing")
    if len(url) > LONGEST:
        raise SignInFailed(f"the {what} is longer than {LONGEST} characters")
    if any(letter <= " " or letter == "\\" or "\x7f" <= letter <= "\xa0" for letter in url):
        raise SignInFailed(f"the {what} holds spaces, backslashes or control characters: {show_line(url, 120)}")
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise SignInFailed(f"the {what} is not a URL: {show_line(url, 120)}") from None
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
    if url.scheme == "http" and not is_loopback(url.host):
        return "is http, not https"
    return ""
