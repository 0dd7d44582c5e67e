"""Makes the HTTP client of one server: which engine, which proxy, which authorities, how long each phase may take.

Knows httpx's client and keeps it from doing anything by itself: no redirect is followed, no cookie is kept, nothing is
decoded or repeated. Refuses to know what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx

from mcphost import __version__
from mcphost.errors import ConnectionLost
from mcphost.net.proxies import proxy_for
from mcphost.net.tls import trusted_authorities
from mcphost.transports.http.engine import AiohttpEngine

FAILURES: Final = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL)
"""Whatever an exchange raises when the wire, not the program, is at fault."""


@dataclass(frozen=True, slots=True)
class Phases:
    """How long each phase of an exchange may take, in seconds. How long an answer may take is the caller's to say."""

    connect: float = 10.0
    """Address, connection and TLS, each."""
    headers: float = 30.0
    """To the first bytes of an answer nobody waits for: a notification's, a reply's."""
    ending: float = 2.0
    """For the farewell, all in all."""


def open_client(
    url: str, phases: Phases, *, headers: Mapping[str, str] | None = None, auth: httpx.Auth | None = None
) -> httpx.AsyncClient:
    """A client for the origin of ``url``; proxy and certificate authorities are the environment's, see `mcphost.net`.

    ``headers`` go along with every request. Raises ConnectionLost where the URL or those settings cannot be used.
    """
    try:
        target = httpx.URL(url)
        check_target(target)
        engine = _engine(target, proxy_for(target))
    except (httpx.InvalidURL, ValueError, OSError) as error:
        raise ConnectionLost(f"this URL cannot be used: {error}", lasting=True) from None
    return httpx.AsyncClient(
        transport=engine,
        timeout=httpx.Timeout(None, connect=phases.connect, pool=phases.connect),
        headers={"User-Agent": f"mcphost/{__version__}", "Accept-Encoding": "gzip, deflate", **(headers or {})},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        auth=auth,
        follow_redirects=False,
        trust_env=False,
    )


def check_target(url: httpx.URL) -> None:
    """Raise ValueError where ``url`` is none that a server can be reached at."""
    if url.scheme not in ("http", "https"):
        raise ValueError("it must start with http:// or https://")
    if not url.host:
        raise ValueError("it names no host")


def _engine(url: httpx.URL, proxy: httpx.Proxy | None) -> httpx.AsyncBaseTransport:
    """What does the work under httpx, chosen here and nowhere else."""
    return AiohttpEngine(trusted_authorities(url, proxy), proxy)
