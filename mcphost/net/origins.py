"""Compares URLs by origin: scheme, host and port."""

from __future__ import annotations

from typing import Final

import httpx

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def origin_of(url: httpx.URL | str) -> str:
    """Scheme, host (punycode) and port in one spelling; the port only if it is not the scheme's default."""
    parsed = httpx.URL(url)
    host = parsed.raw_host.decode("ascii").rstrip(".").lower()
    host = f"[{host}]" if ":" in host else host
    port = "" if parsed.port in (None, DEFAULT_PORTS.get(parsed.scheme)) else f":{parsed.port}"
    return f"{parsed.scheme}://{host}{port}"


def host_of(url: httpx.URL | str) -> str:
    """The host (punycode) of a URL, with its port if that is not the scheme's default."""
    return origin_of(url).partition("://")[2]


def port_of(url: httpx.URL) -> int:
    """The port that a URL names or implies; 0 for a scheme other than http and https."""
    return url.port or DEFAULT_PORTS.get(url.scheme, 0)
