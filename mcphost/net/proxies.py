"""The proxy of the environment and the certificate authorities: one rule for everything that speaks HTTP."""

from __future__ import annotations

import ssl
import urllib.request

import httpx

from mcphost.protocol.urls import is_here


def proxy_for(url: httpx.URL) -> httpx.Proxy | None:
    """The proxy that ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` mean for ``url``.

    None for this machine, whatever the environment says: a proxy is no way to it. Raises ValueError where the proxy is
    of a kind that is not spoken.
    """
    proxies = urllib.request.getproxies()
    found = proxies.get(url.scheme) or proxies.get("all")
    if not found or is_here(url.host) or urllib.request.proxy_bypass(url.netloc.decode("ascii")):
        return None
    proxy = httpx.URL(found if "://" in found else f"http://{found}")
    if proxy.scheme not in ("http", "https"):
        raise ValueError(f"the environment names a {proxy.scheme} proxy, and only http and https proxies are spoken to")
    return httpx.Proxy(proxy)


def authorities(url: httpx.URL, proxy: httpx.Proxy | None) -> ssl.SSLContext:
    """``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, else the usual ones; where no TLS is to be, nobody is trusted.

    Raises OSError where those files cannot be read.
    """
    if "https" in (url.scheme, proxy.url.scheme if proxy else ""):
        return httpx.create_ssl_context(verify=True, trust_env=True)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
