"""Fetches the documents and bundles that the user asked for, from addresses that may be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from mcphost.errors import ConfigError, ConnectionLost, HttpStatusError, InvalidResult
from mcphost.imports.documents import read_document
from mcphost.net.guarded import (
    ConnectionNotMade,
    GuardedClient,
    GuardedRequest,
    GuardedResponse,
    NotReached,
    ResolveHost,
    Sink,
    resolve,
)
from mcphost.net.origins import host_of
from mcphost.protocol.display import show_line

DOCUMENT_SECONDS: Final = 15.0
DOCUMENT_BYTES: Final = 2_000_000
"""Of one document; a registry's page of a hundred servers has a fifth of that."""

DOCUMENT_ITEMS: Final = 30_000
"""Objects and lists of one document, ten times those of such a page: more of them would hold up the screen."""

MOST_SAID: Final = 16_000
"""Bytes of an error's body that is read for what it says."""

DOWNLOAD_SECONDS: Final = 600.0
DOWNLOAD_BYTES: Final = 512_000_000
"""Of a bundle; large ones, with all their libraries, have 300 MB."""


NETWORK_ADVICE: Final = "check the address, the network, and HTTPS_PROXY where there is a proxy"


class WebLocation:
    """Fetches on behalf of the user, who named ``home``; see `mcphost.net.guarded` for what is reached."""

    def __init__(self, home: str, resolve: ResolveHost = resolve) -> None:
        self._client = GuardedClient(home, resolve)

    async def document(
        self,
        url: str,
        accept: str = "application/json",
        *,
        seconds: float = DOCUMENT_SECONDS,
        most_bytes: int = DOCUMENT_BYTES,
    ) -> tuple[object, bytes]:
        """Return a JSON document, parsed and as it came.

        Redirects are followed within the origin. Raises ConnectionLost, HttpStatusError for a status other than 200,
        and InvalidResult for content that is not JSON.
        """
        response = await self._get(GuardedRequest(url, seconds, most_bytes, {"Accept": accept}))
        if sum(map(response.content.count, (b"{", b"["))) > DOCUMENT_ITEMS:
            raise InvalidResult(f"{_host(url)} sent a document of more than {DOCUMENT_ITEMS:,} objects and lists")
        try:
            return await asyncio.to_thread(read_document, response.content, "json"), response.content
        except ConfigError as error:
            raise InvalidResult(f"{_host(url)} sent a document that {error.message}") from None

    async def download(self, url: str, sink: Sink) -> str:
        """Pass what is at ``url`` to ``sink``, and return the address that it came from in the end.

        Redirects are followed to any origin, as releases are often stored elsewhere. Raises as `document`.
        """
        request = GuardedRequest(url, DOWNLOAD_SECONDS, DOWNLOAD_BYTES, {"Accept": "application/octet-stream, */*"})
        return (await self._get(request, sink)).url

    async def _get(self, request: GuardedRequest, sink: Sink | None = None) -> GuardedResponse:
        try:
            response = await self._client.follow(request, sink, other_origins=sink is not None)
        except NotReached as error:
            advice = f"; {NETWORK_ADVICE}" if isinstance(error, ConnectionNotMade) else ""
            raise ConnectionLost(f"{_host(request.url)}: {error}{advice}") from None
        if response.status != 200:
            reason = ": ".join(filter(None, (_host(request.url), _said(response))))
            raise HttpStatusError(response.status, _kind(response.headers), reason=reason)
        return response


def _host(url: str) -> str:
    return show_line(host_of(url), 200)


def _kind(headers: Mapping[str, str]) -> str:
    return show_line(headers.get("content-type", ""), 80)


def _said(response: GuardedResponse) -> str:
    """Return the message of an error's JSON, in the member that registries use for it."""
    if len(response.content) > MOST_SAID:
        return ""
    try:
        document: Any = read_document(response.content, "json")
    except ConfigError:
        return ""
    said = document.get("error") or document.get("detail") if isinstance(document, dict) else ""
    return show_line(said, 200) if isinstance(said, str) else ""
