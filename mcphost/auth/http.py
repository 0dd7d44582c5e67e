"""Sends one HTTP request of a sign-in: to an address that is allowed, within limits of time and size.

Follows no redirect, keeps no cookie and no connection, and decompresses nothing.

Specification: security best practices, server-side request forgery.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final
from urllib.parse import urlencode

import httpx

from mcphost.auth.flow.steps import HttpAnswer, HttpExchange, Unreachable
from mcphost.auth.masking import content_type
from mcphost.net.addresses import LOOPBACK, Address, literal_address, may_reach
from mcphost.net.origins import port_of
from mcphost.net.proxy_and_tls import proxy_for, trusted_authorities
from mcphost.protocol.display import show_line, size_text

SECONDS: Final[Mapping[str, float]] = {"metadata": 10.0, "registration": 30.0, "token": 30.0}
"""For a whole exchange: name lookup, connection and response."""

CONNECT_SECONDS: Final = 4.0
"""For one address: a name with an unreachable address often has another one."""

MOST_BYTES: Final[Mapping[str, int]] = {"metadata": 256_000, "registration": 64_000, "token": 64_000}
"""Of a response body; real ones have a tenth of that."""

AGENT: Final = "mcphost"

ResolveHost = Callable[[str, int], Awaitable[Sequence[Address]]]
"""Resolves a name and port to addresses, best first. Raises OSError if there are none."""


async def resolve(host: str, port: int) -> Sequence[Address]:
    """The `ResolveHost` of the operating system."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ipaddress.ip_address(str(place[4][0]).partition("%")[0]) for place in found]


class Fetcher:
    """Fetches on behalf of the server at ``home``. The only private networks it reaches are that server's own."""

    def __init__(self, home: str, resolve: ResolveHost = resolve) -> None:
        self._home, self._resolve = httpx.URL(home), resolve
        self._authorities: ssl.SSLContext | None = None

    async def fetch(self, fetch: HttpExchange) -> HttpAnswer | Unreachable:
        """Return the response, whatever its status, or why there is none."""
        seconds = SECONDS[fetch.kind]
        try:
            async with asyncio.timeout(seconds):
                return await self._fetch(fetch, httpx.URL(fetch.url))
        except TimeoutError:
            return Unreachable(f"no whole answer within {seconds:g} s")
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            return Unreachable(show_line(_reason(error), 200))

    async def _fetch(self, fetch: HttpExchange, url: httpx.URL) -> HttpAnswer | Unreachable:
        if (proxy := proxy_for(url)) is not None:  # the proxy resolves the name
            return await self._exchange(fetch, url, proxy)
        addresses = await self._allowed_addresses(url)
        if not addresses:
            return Unreachable("its address is in a private network, where the server does not live; not asked")
        failure: httpx.HTTPError | None = None
        for address in addresses:
            try:
                return await self._exchange(fetch, url, None, address)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:  # nothing was sent
                failure = failure or error
        raise failure or httpx.ConnectError("no address")

    async def _allowed_addresses(self, url: httpx.URL) -> list[Address]:
        """The addresses of a host that may be reached."""
        found = dict.fromkeys(await self._addresses(url))
        if not (doubtful := [address for address in found if not may_reach(address, [])]):
            return list(found)  # without resolving the server's own name
        home = list(await self._addresses(self._home))
        return [address for address in found if address not in doubtful or may_reach(address, home)]

    async def _addresses(self, url: httpx.URL) -> Sequence[Address]:
        literal = literal_address(url.host)
        if literal is None:
            return await self._resolve(url.raw_host.decode("ascii"), port_of(url))
        is_name = url.host.rstrip(".").lower().endswith("localhost")
        return LOOPBACK if is_name else [literal]

    async def _exchange(
        self, fetch: HttpExchange, url: httpx.URL, proxy: httpx.Proxy | None, address: Address | None = None
    ) -> HttpAnswer | Unreachable:
        """Send to ``url``; to exactly ``address`` if one is given."""
        client = httpx.AsyncClient(
            verify=self._trusted(url, proxy),
            proxy=proxy,
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            follow_redirects=False,
            trust_env=False,
        )
        async with client:
            response = await client.send(_request(client, fetch, url, address), stream=True)
            async with aclosing(response):
                return await _read(response, MOST_BYTES[fetch.kind])

    def _trusted(self, url: httpx.URL, proxy: httpx.Proxy | None) -> ssl.SSLContext:
        """The trusted authorities; loaded once, since that takes long."""
        if url.scheme == "http":
            return trusted_authorities(url, proxy)
        if self._authorities is None:
            self._authorities = trusted_authorities(url, proxy)
        return self._authorities


def _request(client: httpx.AsyncClient, fetch: HttpExchange, url: httpx.URL, address: Address | None) -> httpx.Request:
    method, kind = ("GET", {}) if fetch.body is None else ("POST", {"Content-Type": content_type(fetch)})
    own = {"Host": url.netloc.decode("ascii"), "User-Agent": AGENT, "Accept-Encoding": "identity"}
    named = address is not None and literal_address(url.host) is None
    return client.build_request(
        method,
        url if address is None else url.copy_with(host=str(address)),
        headers={**own, **fetch.headers, **kind},
        content=_content(fetch),
        extensions={"sni_hostname": _tls_name(url)} if named else {},
    )


def _tls_name(url: httpx.URL) -> str:
    return url.raw_host.decode("ascii").rstrip(".")


def _content(fetch: HttpExchange) -> bytes | None:
    if fetch.body is None:
        return None
    return (json.dumps(fetch.body) if fetch.kind == "registration" else urlencode(fetch.body)).encode()


async def _read(response: httpx.Response, limit: int) -> HttpAnswer | Unreachable:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return Unreachable("its answer is compressed, which was not asked for")
    content = bytearray()
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) > limit:
            return Unreachable(f"its answer is larger than {size_text(limit)}")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return HttpAnswer(response.status_code, headers, bytes(content))


def _reason(error: BaseException) -> str:
    """The reason in the words of the deepest cause, which is the most specific."""
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {CONNECT_SECONDS:g} s"
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS with it: {error.reason}"
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower() if error.errno > 0 else str(error.strerror).lower()
    return str(error) or type(error).__name__
