"""Sends one HTTP request of a sign-in: to an address that is allowed, within limits of time and size.

Follows no redirect; see `mcphost.net.guarded`.

Specification: security best practices, server-side request forgery.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from mcphost.auth.flow.steps import HttpAnswer, HttpExchange, Unreachable
from mcphost.auth.masking import content_type
from mcphost.net.guarded import GuardedClient, GuardedRequest, NotReached, ResolveHost, resolve

__all__ = ["MOST_BYTES", "SECONDS", "Fetcher", "ResolveHost", "resolve"]

SECONDS: Final[Mapping[str, float]] = {"metadata": 10.0, "registration": 30.0, "token": 30.0}
"""For a whole exchange: name lookup, connection and response."""

MOST_BYTES: Final[Mapping[str, int]] = {"metadata": 256_000, "registration": 64_000, "token": 64_000}
"""Of a response body; real ones have a tenth of that."""


class Fetcher:
    """Fetches on behalf of the server at ``home``. The only private networks it reaches are that server's own.

    An exchange with a home of its own, an identity provider that the user named, reaches that one's.
    """

    def __init__(self, home: str, resolve: ResolveHost = resolve) -> None:
        self._home, self._resolve = home, resolve
        self._clients: dict[str, GuardedClient] = {}

    async def fetch(self, fetch: HttpExchange) -> HttpAnswer | Unreachable:
        """Return the response, whatever its status, or the reason why none came."""
        try:
            response = await self._client(fetch.home or self._home).send(_request(fetch))
        except NotReached as error:
            return Unreachable(str(error))
        return HttpAnswer(response.status, response.headers, response.content)

    def _client(self, home: str) -> GuardedClient:
        if home not in self._clients:
            self._clients[home] = GuardedClient(home, self._resolve)
        return self._clients[home]


def _request(fetch: HttpExchange) -> GuardedRequest:
    kind = {} if fetch.body is None else {"Content-Type": content_type(fetch)}
    headers = {**fetch.headers, **kind}
    return GuardedRequest(fetch.url, SECONDS[fetch.kind], MOST_BYTES[fetch.kind], headers, _content(fetch))


def _content(fetch: HttpExchange) -> bytes | None:
    if fetch.body is None:
        return None
    return (json.dumps(fetch.body) if fetch.kind == "registration" else urlencode(fetch.body)).encode()
