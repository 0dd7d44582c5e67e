"""Opens the HTTP client of one server, with our engine under the policies of `mcphost.net.client`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import httpx

from mcphost.errors import ConnectionLost
from mcphost.lazy_dataclass import dataclass
from mcphost.net.client import RequestHook, new_client
from mcphost.transports.http.engine import AiohttpEngine

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
    """As `new_client`. Raises ConnectionLost if the URL, the proxy or the certificates cannot be used."""
    try:
        target = httpx.URL(url)
        check_target(target)
        return new_client(
            target,
            connect=phases.connect,
            headers={"Accept-Encoding": "gzip, deflate", **(headers or {})},
            auth=auth,
            on_request=on_request,
            engine=AiohttpEngine,
        )
    except (httpx.InvalidURL, ValueError, OSError) as error:
        raise ConnectionLost(f"this URL cannot be used: {error}", lasting=True) from None


def check_target(url: httpx.URL) -> None:
    """Raise ValueError unless ``url`` is an http or https URL with a host."""
    if url.scheme not in ("http", "https"):
        raise ValueError("it must start with http:// or https://")
    if not url.host:
        raise ValueError("it names no host")
