"""Carries out one exchange of a sign-in: to an address that may be asked, within a time and a size.

Knows names, addresses and limits. Follows no redirect, keeps no cookie, decodes nothing; refuses to read what came.

Specification: security best practices, server-side request forgery.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import httpx

from mcphost.auth.addresses import Address, literal_address, may_reach
from mcphost.auth.masking import content_type
from mcphost.auth.wire import Fetch, Fetched, Unreachable
from mcphost.protocol.display import show_line

SECONDS: Final[Mapping[str, float]] = {"metadata": 10.0, "registration": 30.0, "token": 30.0}
"""For a whole exchange: its name, its connection and its answer."""

MOST_BYTES: Final[Mapping[str, int]] = {"metadata": 256 << 10, "registration": 64 << 10, "token": 64 << 10}
"""Of an answer's body; real ones have a tenth of that."""

AGENT: Final = "mcphost"


class Fetcher:
    """Fetches on behalf of the server at ``home``, whose own network is the only private one it goes to."""

    def __init__(self, home: str) -> None:
        self._home = httpx.URL(home)
        self._client: httpx.AsyncClient | None = None

    async def fetch(self, fetch: Fetch) -> Fetched | Unreachable:
        """The answer, whatever its status; a reason where there is none."""
        seconds = SECONDS[fetch.kind]
        try:
            async with asyncio.timeout(seconds):
                return await self._fetch(fetch)
        except TimeoutError:
            return Unreachable(f"no whole answer within {seconds:g} s")
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            return Unreachable(show_line(str(error) or type(error).__name__, 200))

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _fetch(self, fetch: Fetch) -> Fetched | Unreachable:
        url = httpx.URL(fetch.url)
        if _proxied(url):  # the proxy finds the address, and goes where it may
            return await self._exchange(fetch, url, {})
        addresses = await _resolve(url)
        homes = await _resolve(self._home)
        allowed = [address for address in addresses if may_reach(address, homes)]
        if not allowed:
            return Unreachable("its address is in a private network, where the server does not live; not asked")
        pinned = url.copy_with(host=str(allowed[0]))  # the address that was judged, and no other
        return await self._exchange(fetch, pinned, {"Host": url.netloc.decode("ascii")}, server_name=url.host)

    async def _exchange(
        self, fetch: Fetch, url: httpx.URL, headers: Mapping[str, str], *, server_name: str = ""
    ) -> Fetched | Unreachable:
        named = url.scheme == "https" and server_name and literal_address(server_name) is None
        request = self._opened().build_request(
            "GET" if fetch.body is None else "POST",
            url,
            headers={"User-Agent": AGENT, "Accept-Encoding": "identity", **headers, **fetch.headers, **_kind(fetch)},
            content=_content(fetch),
            extensions={"sni_hostname": server_name} if named else {},
        )
        response = await self._opened().send(request, stream=True)
        try:
            return await _read(response, MOST_BYTES[fetch.kind])
        finally:
            await response.aclose()

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(follow_redirects=False, timeout=None, trust_env=True)
        return self._client


async def _read(response: httpx.Response, limit: int) -> Fetched | Unreachable:
    if response.headers.get("content-encoding", "identity") != "identity":
        return Unreachable("its answer is compressed, which was not asked for")
    content = bytearray()
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) > limit:
            return Unreachable(f"its answer is larger than {limit >> 10} kB")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Fetched(response.status_code, headers, bytes(content))


def _kind(fetch: Fetch) -> dict[str, str]:
    return {} if fetch.body is None else {"Content-Type": content_type(fetch)}


def _content(fetch: Fetch) -> bytes | None:
    if fetch.body is None:
        return None
    return _json(fetch.body) if fetch.kind == "registration" else urlencode(fetch.body).encode()


def _json(body: Mapping[str, Any]) -> bytes:
    import json

    return json.dumps(body).encode()


def _proxied(url: httpx.URL) -> bool:
    proxies = urllib.request.getproxies()
    named = proxies.get(url.scheme) or proxies.get("all")
    return bool(named) and not urllib.request.proxy_bypass(url.netloc.decode("ascii"))


async def _resolve(url: httpx.URL) -> list[Address]:
    """The addresses of a URL's host. Raises OSError where it has none."""
    port = url.port or (443 if url.scheme == "https" else 80)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(url.raw_host.decode("ascii"), port, type=socket.SOCK_STREAM)
    return [ipaddress.ip_address(str(place[4][0]).partition("%")[0]) for place in found]
