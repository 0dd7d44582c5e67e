"""The address of ``mcphost tap URL``: requests go there as they came, and their heads to an observer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx

from mcphost.errors import ConnectionLost
from mcphost.serving.http_relay import Headers
from mcphost.transports.base import MessageObserver
from mcphost.transports.http.endpoint import FAILURES, PhaseTimeouts, open_client, request_head, response_head


class TappedAddress:
    """Sends requests to the origin of a URL, without redirects, cookies and repetitions."""

    def __init__(self, url: str, observer: MessageObserver, passing: Callable[[str, str], None]) -> None:
        """``passing`` takes each header of a request. Raises ConnectionLost for a URL that cannot be used."""
        self._observer, self._passing = observer, passing
        self._client = open_client(url, PhaseTimeouts())
        self._url = httpx.URL(url)

    @property
    def path(self) -> str:
        return self._url.raw_path.decode("ascii")

    @asynccontextmanager
    async def exchange(self, method: str, path: str, headers: Headers, body: bytes) -> AsyncIterator[TappedResponse]:
        """See `mcphost.serving.http_relay.Exchange`."""
        for name, value in headers:
            self._passing(name, value)
        try:
            url = self._url.copy_with(raw_path=path.encode("ascii", "replace"))
            given = [*headers, ("Accept-Encoding", "identity")]
            request = self._client.build_request(method, url, headers=given, content=body or None)
            self._observer.noted("http", request_head(method, str(url), request.headers.multi_items()))
            response = await self._client.send(request, stream=True)
        except FAILURES as error:
            raise ConnectionLost(f"{self._url.host} does not answer: {error or type(error).__name__}") from None
        try:
            found = TappedResponse(response)
            self._observer.noted("http", response_head(found.status, found.reason, found.headers))
            yield found
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        await self._client.aclose()


class TappedResponse:
    """See `mcphost.serving.http_relay.RelayedResponse`."""

    def __init__(self, response: httpx.Response) -> None:
        self.status, self.reason = response.status_code, response.reason_phrase
        self.headers: Headers = response.headers.multi_items()
        self._response = response

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response.aiter_raw():
                yield piece
        except FAILURES as error:
            raise ConnectionLost(f"the answer broke off: {error}") from None
