"""Creates the HTTP client of one server: engine, proxy, trusted authorities and timeouts.

The client does nothing by itself: it follows no redirect, keeps no cookie, decodes and repeats nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx

from mcphost import __version__
from mcphost.errors import ConnectionLost
from mcphost.lazy_dataclass import dataclass
from mcphost.net.proxy_and_tls import proxy_for, trusted_authorities
from mcphost.transports.http.engine import AiohttpEngine

RequestHook = Callable[[httpx.Request], Awaitable[None]]

FAILURES: Final = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL)
"""What an exchange raises for failures of the network."""


@dataclass(frozen=True, slots=True)
class Phases:
    """Timeouts of the phases of an exchange, in seconds. The caller bounds the wait for a response."""

    connect: float = 10.0
    """For name lookup, connection and TLS, each."""
    headers: float = 30.0
    """For the response head of a POST that has no JSON-RPC response."""
    ending: float = 2.0
    """For closing, including the DELETE that ends the session."""


def open_client(
    url: str,
    phases: Phases,
    *,
    headers: Mapping[str, str] | None = None,
    auth: httpx.Auth | None = None,
    on_request: RequestHook | None = None,
) -> httpx.AsyncClient:
    """A client for the origin of ``url``, with the proxy and authorities that `mcphost.net` chooses.

    ``headers`` are sent with every request; ``on_request`` is awaited with each before it leaves, ``auth`` applied.
    Raises ConnectionLost if the URL or those settings cannot be used.
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
        event_hooks={"request": [on_request] if on_request else []},
        follow_redirects=False,
        trust_env=False,
    )


def check_target(url: httpx.URL) -> None:
    """Raise ValueError unless ``url`` is an http or https URL with a host."""
    if url.scheme not in ("http", "https"):
        raise ValueError("it must start with http:// or https://")
    if not url.host:
        raise ValueError("it names no host")


def _engine(url: httpx.URL, proxy: httpx.Proxy | None) -> httpx.AsyncBaseTransport:
    # The only place that chooses the engine under httpx.
    return AiohttpEngine(trusted_authorities(url, proxy), proxy)
