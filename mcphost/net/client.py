"""Creates every HTTP client: one policy for proxies, trusted authorities, timeouts, cookies and redirects.

A client does nothing by itself: it follows no redirect, keeps no cookie and repeats nothing.
"""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from mcphost import __version__
from mcphost.protocol.urls import is_loopback

Engine = Callable[[ssl.SSLContext, httpx.Proxy | None], httpx.AsyncBaseTransport]
"""Makes what sends the requests of a client."""

RequestHook = Callable[[httpx.Request], Awaitable[None]]


def _httpx_engine(context: ssl.SSLContext, proxy: httpx.Proxy | None) -> httpx.AsyncBaseTransport:
    return httpx.AsyncHTTPTransport(verify=context, proxy=proxy, trust_env=False)


def new_client(
    url: httpx.URL,
    *,
    connect: float,
    headers: Mapping[str, str],
    auth: httpx.Auth | None = None,
    on_request: RequestHook | None = None,
    authorities: ssl.SSLContext | None = None,
    engine: Engine = _httpx_engine,
) -> httpx.AsyncClient:
    """Return a client for the origin of ``url``. The caller bounds every wait but that for a connection.

    ``connect`` is in seconds; ``headers`` are sent with every request; ``on_request`` is awaited with each before it
    leaves, ``auth`` applied; ``authorities`` are those of an earlier client, as loading them takes long.
    Raises ValueError or OSError if the proxy or the certificates that the environment names cannot be used.
    """
    proxy = proxy_for(url)
    return httpx.AsyncClient(
        transport=engine(authorities or trusted_authorities(url, proxy), proxy),
        timeout=httpx.Timeout(None, connect=connect, pool=connect),
        headers={"User-Agent": f"mcphost/{__version__}", **headers},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        auth=auth,
        event_hooks={"request": [on_request] if on_request else []},
        follow_redirects=False,
        trust_env=False,
    )


def proxy_for(url: httpx.URL) -> httpx.Proxy | None:
    """The proxy that ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` set for ``url``.

    None for loopback URLs, which no proxy can reach. Raises ValueError if the proxy is neither http nor https.
    """
    proxies = urllib.request.getproxies()
    found = proxies.get(url.scheme) or proxies.get("all")
    if not found or is_loopback(url.host) or urllib.request.proxy_bypass(url.netloc.decode("ascii")):
        return None
    proxy = httpx.URL(found if "://" in found else f"http://{found}")
    if proxy.scheme not in ("http", "https"):
        raise ValueError(f"the environment names a {proxy.scheme} proxy, and only http and https proxies are spoken to")
    return httpx.Proxy(proxy)


def trusted_authorities(url: httpx.URL, proxy: httpx.Proxy | None) -> ssl.SSLContext:
    """A context that trusts ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, else the bundled authorities.

    Without TLS on the way it trusts none, which saves the time to load them. Raises OSError if they cannot be read.
    """
    if "https" in (url.scheme, proxy.url.scheme if proxy else ""):
        return httpx.create_ssl_context(verify=True, trust_env=True)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
