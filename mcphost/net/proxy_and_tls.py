"""The proxy and the certificate authorities of an HTTP connection, as the environment sets them."""

from __future__ import annotations

import ssl
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


def trusted_authorities(url: httpx.URL, proxy: httpx.Proxy | None) -> ssl.SSLContext:
    """A context that trusts ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, else the bundled authorities.

    Without TLS on the way it trusts none, which saves the time to load them. Raises OSError if they cannot be read.
    """
    if "https" in (url.scheme, proxy.url.scheme if proxy else ""):
        return httpx.create_ssl_context(verify=True, trust_env=True)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
