"""The canonical URI of an MCP server, and whether a token for one URI is valid for another.

Specification: authorization, canonical server URI; RFC 8707 section 2; RFC 9728 section 3.3.
"""

from __future__ import annotations

import httpx

from mcphost.net.origins import origin_of


def canonical(url: str) -> str:
    """The server's URL as a resource: lower-case scheme and host, no fragment, no trailing slash after the host."""
    parsed = httpx.URL(url).copy_with(fragment=None)
    path = parsed.raw_path.decode("ascii")
    return origin_of(url) + ("" if path == "/" else path)


def is_for(resource: str, url: str) -> bool:
    """Is a token for ``resource`` valid at ``url``: for the same URL, its origin or a path above it?"""
    try:
        mine, other = httpx.URL(canonical(url)), httpx.URL(canonical(resource))
    except (httpx.InvalidURL, ValueError):
        return False
    if origin_of(mine) != origin_of(other):
        return False
    if mine.query or other.query:
        return mine.raw_path == other.raw_path or (not other.query and _covers(other.path, mine.path))
    return _covers(other.path, mine.path)


def _covers(folder: str, path: str) -> bool:
    folder = folder.rstrip("/")
    return path.rstrip("/") == folder or path.startswith(f"{folder}/")
