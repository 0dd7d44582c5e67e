"""Finds out which of the two HTTP transports a URL speaks, by its first answer.

Knows the order in which to try. Refuses to remember the outcome beyond one connection: that is the caller's.

Specification: basic/transports, backwards compatibility.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from mcphost.errors import ConnectionLost, HttpStatusError, TransportError
from mcphost.protocol.jsonrpc import Notification, Request, Response
from mcphost.protocol.revisions import Revision
from mcphost.transports.base import Inbound, ProcessReport, Transport

Kind = Literal["http", "sse"]

OLD_SERVER: Final = (400, 404, 405)
"""What a server of 2024-11-05 answers to a POST where it only knows GET. Any other status says something else."""


class DetectedTransport:
    """A `Transport` that speaks Streamable HTTP, or what came before it where the first answer shows that.

    ``found`` tells which; None until the first answer.
    """

    def __init__(self, streamable: Callable[[], Transport], older: Callable[[], Transport]) -> None:
        self.found: Kind | None = None
        self._older = older
        self._transport = streamable()
        self.own_stream = self._transport.own_stream
        self._inbound: Inbound | None = None

    async def open(self, inbound: Inbound) -> None:
        """See `Transport.open`."""
        self._inbound = inbound
        await self._transport.open(inbound)

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        """See `Transport.request`; the first one decides. Where neither works, the error is that of the newer one."""
        if self.found is not None:
            return await self._transport.request(request, headers)
        try:
            response = await self._transport.request(request, headers)
        except HttpStatusError as error:
            if error.status not in OLD_SERVER:
                raise
            return await self._request_the_old_way(request, headers, error)
        self.found = "http"
        return response

    def agreed(self, revision: Revision) -> None:
        """See `Transport.agreed`."""
        self._transport.agreed(revision)

    async def send(self, message: Notification | Response) -> None:
        """See `Transport.send`."""
        await self._transport.send(message)

    async def listen(self) -> None:
        """See `Transport.listen`."""
        await self._transport.listen()

    async def aclose(self) -> None:
        """See `Transport.aclose`."""
        await self._transport.aclose()

    def report(self) -> ProcessReport:
        """See `Transport.report`."""
        return self._transport.report()

    async def _request_the_old_way(
        self, request: Request, headers: Mapping[str, str], first: HttpStatusError
    ) -> Response:
        if self._inbound is None:
            raise ConnectionLost("the connection is not open")
        await self._transport.aclose()
        self._transport = self._older()
        self.own_stream = self._transport.own_stream
        try:
            await self._transport.open(self._inbound)
        except TransportError:
            raise first from None
        self.found = "sse"
        return await self._transport.request(request, headers)
