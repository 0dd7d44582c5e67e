"""Puts the token on every request to its server, and renews it once when the server answers 401.

Specification: authorization, token usage.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

import httpx

from mcphost.auth.session import TokenSession
from mcphost.errors import HELD_SIGN_IN
from mcphost.net.origins import origin_of

HEADER: Final = "Authorization"


class Bearer(httpx.Auth):
    """The `httpx.Auth` of one server. A configured ``Authorization`` header takes precedence."""

    def __init__(self, session: TokenSession) -> None:
        self._session = session
        self._origin = origin_of(session.url)

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if HEADER in request.headers or origin_of(request.url) != self._origin:
            yield request
            return
        token = await self._session.token()
        if token:
            request.headers[HEADER] = f"Bearer {token}"
        response = yield request
        if response.status_code == 401:
            challenge = ", ".join(response.headers.get_list("www-authenticate"))
            if other := await self._session.replacement(token, challenge):
                await _drop_body(response)
                request.headers[HEADER] = f"Bearer {other}"
                response = yield request
        if response.status_code in (401, 403):
            response.extensions[HELD_SIGN_IN] = await self._session.held()


async def _drop_body(response: httpx.Response) -> None:
    # httpx would read the whole body, however long, before it sends again.
    if isinstance(response.stream, httpx.AsyncByteStream):
        await response.stream.aclose()
    response.stream = httpx.ByteStream(b"")
