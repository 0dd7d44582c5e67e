"""Follows redirects that stay on the origin and keep the method; refuses all others with an explanation.

Neither a header nor a body ever reaches another origin.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

import httpx

from mcphost.errors import ConnectionLost, HttpStatusError
from mcphost.net.origins import origin_of
from mcphost.protocol.display import show_line
from mcphost.transports.http.failures import place
from mcphost.transports.http.responses import skip_body

MOST_WITHOUT_BODY: Final = 5
"""Redirects of a request without a body; real servers send one, for a missing slash."""

MOST_WITH_BODY: Final = 1
"""Redirects of a message: each sends it again to a server that may already have acted on it."""

_KEEPS_METHOD: Final = (307, 308)
_REDIRECTS: Final = (301, 302, 303, *_KEEPS_METHOD)


def same_origin(one: httpx.URL, other: httpx.URL) -> bool:
    """True if both have the same scheme, host and port, and ``other`` has no user name or password."""
    return origin_of(one) == origin_of(other) and not other.userinfo


async def send(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    """Send ``request``, following redirects on its origin. The caller reads and closes the response.

    Raises HttpStatusError for any other redirect, ConnectionLost for one to an invalid URL, and what the engine raises.
    """
    most = MOST_WITH_BODY if request.content else MOST_WITHOUT_BODY
    headers = request.headers.copy()  # without the token and the proof of one URL, which sending adds
    for _ in range(most + 1):
        if client.is_closed:
            raise httpx.ConnectError("the connection is closed", request=request)
        try:
            response = await client.send(request, stream=True)
        except (httpx.InvalidURL, httpx.RemoteProtocolError) as error:
            # The request's own URL is valid, so this is about the Location header.
            if not isinstance(error, httpx.InvalidURL) and not isinstance(error.__context__, httpx.InvalidURL):
                raise
            reason = f"{place(request.url)} redirects to an address that cannot be used; correct the url"
            raise ConnectionLost(reason, lasting=True) from None
        if response.status_code not in _REDIRECTS or "location" not in response.headers:
            return response
        async with aclosing(response):
            await skip_body(response)  # so that the next request can use its connection
        target = _target(request.url, response)
        request = httpx.Request(
            request.method, target, headers=headers.copy(), content=request.content, extensions=request.extensions
        )
    often = "once" if most == 1 else f"{most} times"
    raise HttpStatusError(response.status_code, reason=f"it redirected more than {often}; correct the url")


def _target(url: httpx.URL, response: httpx.Response) -> httpx.URL:
    status = response.status_code
    target = url.join(response.headers["location"])  # httpx has rejected invalid URLs
    if not same_origin(url, target):
        named = f"{show_line(target.scheme)}://{place(target)}"
        raise HttpStatusError(status, reason=f"it redirects to {named}, which is another origin and was not asked")
    if status not in _KEEPS_METHOD:
        reason = f"it redirects to {show_line(target.path)}, but not with the same method; correct the url"
        raise HttpStatusError(status, reason=reason)
    return target
