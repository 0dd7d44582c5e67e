"""Chooses the certificate authorities that HTTPS connections trust."""

from __future__ import annotations

import ssl

import httpx


def trusted_authorities(url: httpx.URL, proxy: httpx.Proxy | None) -> ssl.SSLContext:
    """A context that trusts ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, else the bundled authorities.

    Without TLS on the way it trusts none, which saves the time to load them. Raises OSError if they cannot be read.
    """
    if "https" in (url.scheme, proxy.url.scheme if proxy else ""):
        return httpx.create_ssl_context(verify=True, trust_env=True)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
