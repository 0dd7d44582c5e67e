"""Sends single HTTP requests to addresses that may be reached, within limits of time and size.

Keeps no cookie and no connection, and decompresses nothing.

Specification: security best practices, server-side request forgery.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import field
from typing import Final

import httpx

from mcphost.lazy_dataclass import dataclass
from mcphost.net.addresses import LOOPBACK, Address, literal_address, may_reach
from mcphost.net.client import new_client, proxy_for, trusted_authorities
from mcphost.net.origins import host_of, origin_of, port_of
from mcphost.protocol.display import show_line, size_text

CONNECT_SECONDS: Final = 4.0
"""For one address: a name with an unreachable address often has another one."""

MOST_REDIRECTS: Final = 5
"""Of one document or download; real ones need one or two."""

REFUSAL_BYTES: Final = 256_000
"""Of the response that comes in place of a download."""

AGENT: Final = "mcphost"

_QUOTES_NOTHING: Final = ("Server disconnected", "peer closed connection", "Receive buffer too long")
"""Beginnings of httpx's messages about a broken response that quote nothing of it."""

_REDIRECTS: Final = (301, 302, 303, 307, 308)

ResolveHost = Callable[[str, int], Awaitable[Sequence[Address]]]
"""Resolves a name and port to addresses, best first. Raises OSError without any."""

Sink = Callable[[bytes], object]
"""Takes the body of a successful response piece by piece."""


class NotReached(Exception):
    """No whole response came. ``str()`` is the reason, safe to show."""


class ConnectionNotMade(NotReached):
    """The network, a proxy or the other side let no exchange happen."""


@dataclass(frozen=True, slots=True)
class GuardedRequest:
    """One request, and its limits: ``seconds`` for the whole exchange, ``most_bytes`` of the response's body."""

    url: str
    seconds: float
    most_bytes: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)
    """None: GET, else POST."""


@dataclass(frozen=True, slots=True)
class GuardedResponse:
    """A response. Header names are in lower case; ``url`` is what answered."""

    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)


async def resolve(host: str, port: int) -> Sequence[Address]:
    """The `ResolveHost` of the operating system."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ipaddress.ip_address(str(place[4][0]).partition("%")[0]) for place in found]


class GuardedClient:
    """Reaches public addresses; of private networks only those in which ``home`` is, an address that the user named."""

    def __init__(self, home: str, resolve: ResolveHost = resolve) -> None:
        self._home, self._resolve = httpx.URL(home), resolve
        self._authorities: ssl.SSLContext | None = None

    async def send(self, request: GuardedRequest, sink: Sink | None = None) -> GuardedResponse:
        """Return the response, whatever its status; follow no redirect. Raises NotReached.

        With a ``sink``, the body of a response with status 200 goes there, and the response's content is empty.
        """
        try:
            async with asyncio.timeout(request.seconds):
                return await self._send(request, httpx.URL(request.url), sink)
        except TimeoutError:
            raise NotReached(f"no whole answer within {request.seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise ConnectionNotMade(show_line(_reason(error), 200)) from None

    async def follow(
        self, request: GuardedRequest, sink: Sink | None = None, *, other_origins: bool = False
    ) -> GuardedResponse:
        """As `send`, and follow redirects within the origin; with ``other_origins`` to others, but not to plain http.

        Each address is checked again. Raises NotReached, also for a redirect that is not followed.
        """
        for _ in range(MOST_REDIRECTS + 1):
            response = await self.send(request, sink)
            if response.status not in _REDIRECTS or "location" not in response.headers:
                return response
            target = _redirect_target(request.url, response.headers["location"], other_origins)
            request = GuardedRequest(target, request.seconds, request.most_bytes, request.headers)
        raise NotReached(f"it redirects more than {MOST_REDIRECTS} times")

    async def _send(self, request: GuardedRequest, url: httpx.URL, sink: Sink | None) -> GuardedResponse:
        if proxy_for(url) is not None:  # the proxy resolves the name
            return await self._exchange(request, url, sink)
        addresses = await self._allowed_addresses(url)
        if not addresses:
            raise NotReached("its address is in a private network, where the server does not live; not asked")
        failure: httpx.HTTPError | None = None
        for address in addresses:
            try:
                return await self._exchange(request, url, sink, address)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:  # nothing was sent
                failure = failure or error
        raise failure or httpx.ConnectError("no address")

    async def _allowed_addresses(self, url: httpx.URL) -> list[Address]:
        """The addresses of a host that may be reached."""
        found = dict.fromkeys(await self._addresses(url))
        if not (doubtful := [address for address in found if not may_reach(address, [])]):
            return list(found)  # without resolving the home's own name
        home = list(await self._addresses(self._home))
        return [address for address in found if address not in doubtful or may_reach(address, home)]

    async def _addresses(self, url: httpx.URL) -> Sequence[Address]:
        literal = literal_address(url.host)
        if literal is None:
            return await self._resolve(url.raw_host.decode("ascii"), port_of(url))
        return LOOPBACK if _is_name(url.host) else [literal]

    async def _exchange(
        self, request: GuardedRequest, url: httpx.URL, sink: Sink | None, address: Address | None = None
    ) -> GuardedResponse:
        """Send to ``url``; to exactly ``address`` if one is given."""
        async with self._client(url) as client:
            response = await client.send(_built(client, request, url, address), stream=True)
            async with aclosing(response):
                if sink is None or response.status_code == 200:
                    content = await _read(response, request.most_bytes, sink)
                else:  # in memory, and no download
                    content = await _read(response, min(request.most_bytes, REFUSAL_BYTES), None)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return GuardedResponse(request.url, response.status_code, headers, content)

    def _client(self, url: httpx.URL) -> httpx.AsyncClient:
        if url.scheme == "https" and self._authorities is None:
            self._authorities = trusted_authorities(url, None)  # kept, since loading them takes long
        authorities = self._authorities if url.scheme == "https" else None
        headers = {"User-Agent": AGENT, "Accept-Encoding": "identity"}
        return new_client(url, connect=CONNECT_SECONDS, headers=headers, authorities=authorities)


def _built(
    client: httpx.AsyncClient, request: GuardedRequest, url: httpx.URL, address: Address | None
) -> httpx.Request:
    named = address is not None and _is_name(url.host)
    return client.build_request(
        "GET" if request.content is None else "POST",
        url if address is None else url.copy_with(host=str(address)),
        headers={"Host": url.netloc.decode("ascii"), **request.headers},
        content=request.content,
        extensions={"sni_hostname": url.raw_host.decode("ascii").rstrip(".")} if named else {},
    )


def _is_name(host: str) -> bool:
    return literal_address(host) is None or host.rstrip(".").lower().endswith("localhost")


async def _read(response: httpx.Response, limit: int, sink: Sink | None) -> bytes:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise NotReached("its answer is compressed, which was not asked for")
    content, size = bytearray(), 0
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > limit:
            raise NotReached(f"its answer is larger than {size_text(limit)}")
        if sink is None:
            content += chunk
        else:
            sink(chunk)
    return bytes(content)


def _redirect_target(url: str, location: str, other_origins: bool) -> str:
    try:
        here, target = httpx.URL(url), httpx.URL(url).join(location)
        origin = origin_of(target)
    except (httpx.InvalidURL, ValueError):
        raise NotReached("it redirects to an invalid address") from None
    if target.userinfo or target.scheme not in ("https", "http") or not target.host:
        raise NotReached("it redirects to something other than a plain web address")
    if origin == origin_of(here):
        return str(target)
    place = show_line(f"{target.scheme}://{host_of(target)}", 200)
    if not other_origins:
        raise NotReached(f"it redirects to {place}, which is another origin and was not asked")
    if here.scheme == "https" and target.scheme == "http":
        raise NotReached(f"it redirects to {place}, which is not https; not asked")
    return str(target)


def _reason(error: BaseException) -> str:
    """The reason in the words of the deepest cause, which is the most specific."""
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {CONNECT_SECONDS:g} s"
    if isinstance(error, httpx.RemoteProtocolError) and isinstance(error.__context__, httpx.InvalidURL | ValueError):
        return "it redirects to an invalid address"  # httpx looks at the Location header of every redirect
    if isinstance(error, httpx.RemoteProtocolError) and not str(error).startswith(_QUOTES_NOTHING):
        return "it did not answer in HTTP"  # httpx quotes what came, which may be a token
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS with it: {error.reason}"
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower() if error.errno > 0 else str(error.strerror).lower()
    return str(error) or type(error).__name__
