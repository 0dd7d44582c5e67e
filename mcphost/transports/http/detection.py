"""Finds out which of the two HTTP transports a URL speaks, by its first responses.

Specification: basic/transports, backwards compatibility.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from mcphost.errors import ConnectionLost, HttpStatusError, TransportError
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.wire.jsonrpc import Notification, Request, Response
from mcphost.transports.base import Inbound, ProcessReport, Transport

Kind = Literal["http", "sse"]

OLD_SERVER: Final = (400, 404, 405)
"""Statuses with which a server of 2024-11-05 answers a POST to its GET endpoint."""

INCONCLUSIVE: Final = (403, 408, 425, 429)
"""Statuses of a GET that say nothing about the transport."""


class DetectedTransport:
    """A `Transport` over Streamable HTTP, or over its predecessor if the first response shows that.

    ``found`` is the result, None until the first response; ``learned`` is called with it. The ``remembered`` result of
    an earlier connection is tried first, and detected again if the server's status contradicts it.
    """

    def __init__(
        self,
        streamable: Callable[[], Transport],
        older: Callable[[], Transport],
        *,
        remembered: Kind | None = None,
        learned: Callable[[Kind], None] = lambda kind: None,
    ) -> None:
        self.found: Kind | None = None
        self._streamable, self._older = streamable, older
        self._learned = learned
        # Streamable HTTP is tried first anyway, so that remembering it changes nothing.
        self._remembered_older = remembered == "sse"
        self._use(older() if self._remembered_older else streamable())
        self._inbound: Inbound | None = None

    async def open(self, inbound: Inbound) -> None:
        self._inbound = inbound
        if self._remembered_older:
            await self._open_as_remembered(inbound)
        else:
            await self._transport.open(inbound)

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        """See `Transport.request`. The first result, or the refusal of ``initialize``, decides.

        If both transports fail, raises the newer one's error.
        """
        if self.found is not None:
            return await self._transport.request(request, headers)
        if request.method != "initialize":  # an old server refuses what it does not know, and is asked again
            response = await self._transport.request(request, headers)
            if response.error is None:
                self._decide("http")
            return response
        try:
            response = await self._transport.request(request, headers)
        except HttpStatusError as error:
            if error.status not in OLD_SERVER:
                raise
            return await self._request_the_old_way(request, headers, error)
        self._decide("http")
        return response

    def agreed(self, revision: Revision) -> None:
        self._transport.agreed(revision)

    async def send(self, message: Notification | Response) -> None:
        await self._transport.send(message)

    async def listen(self) -> None:
        await self._transport.listen()

    async def aclose(self) -> None:
        await self._transport.aclose()

    def report(self) -> ProcessReport:
        return self._transport.report()

    async def _open_as_remembered(self, inbound: Inbound) -> None:
        try:
            await self._transport.open(inbound)
        except HttpStatusError as error:
            if not _denies_older(error):
                raise
            await self._transport.aclose()
            self._use(self._streamable())
            await self._transport.open(inbound)
        else:
            self._decide("sse")

    async def _request_the_old_way(
        self, request: Request, headers: Mapping[str, str], first: HttpStatusError
    ) -> Response:
        if self._inbound is None:
            raise ConnectionLost("the connection is not open")
        await self._transport.aclose()
        self._use(self._older())
        try:
            await self._transport.open(self._inbound)
        except TransportError as second:
            # A server that opened an event stream speaks the old transport, whatever else is wrong.
            raise (second if isinstance(second, ConnectionLost) and second.lasting else first) from None
        self._decide("sse")
        return await self._transport.request(request, headers)

    def _use(self, transport: Transport) -> None:
        self._transport = transport
        self.own_stream = transport.own_stream
        self.handshake_only = transport.handshake_only

    def _decide(self, kind: Kind) -> None:
        self.found = kind
        self._learned(kind)


def _denies_older(error: HttpStatusError) -> bool:
    """True if this response to a GET rules out the old transport, as a 2xx without an ``endpoint`` event does."""
    return 200 <= error.status < 300 or (400 <= error.status < 500 and error.status not in INCONCLUSIVE)
