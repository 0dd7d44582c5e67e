"""Chooses the proxy for a URL from the environment."""

from __future__ import annotations

import urllib.request

import httpx

from mcphost.protocol.urls import is_loopback


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
