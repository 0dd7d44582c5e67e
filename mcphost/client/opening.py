"""Opens a session: finds out which revision the server speaks, and exchanges what that revision wants to know first.

Specification: basic/lifecycle; 2026-07-28 basic/versioning and server/discover.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mcphost.client.requests import result_of
from mcphost.errors import ConnectionLost, McphostError, ProbeFailed, RequestTimeout
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.negotiation import Agreed, DiscoverAttempt, InitializeAttempt, Negotiation, Outcome
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.lifecycle.session import ClientMetadata, ModernRules
from mcphost.protocol.wire.jsonrpc import Request, RequestId
from mcphost.transports.base import Transport

Declare = Callable[[Revision], Mapping[str, Any]]
"""The capabilities to declare in this revision."""

MOST_PROBE_SECONDS: Final = 10.0
"""For the answer to ``server/discover`` over a pipe: a cold server on a busy machine takes up to 6 s."""

PROBE_SHARE: Final = 3
"""The probe may take this part of the time for opening: a server that ignores it needs time for ``initialize``."""


@dataclass(frozen=True, slots=True)
class Identity:
    """How mcphost introduces itself: name and version, nothing about the machine."""

    version: str
    name: str = "mcphost"

    def as_object(self) -> dict[str, str]:
        """The ``clientInfo``."""
        return {"name": self.name, "title": self.name, "version": self.version}


class SessionOpening:
    """Opens one session over ``transport``, within ``seconds`` that somebody else watches.

    ``handshake_begins`` is called before the first ``initialize`` is sent: from then on the server may send requests.
    """

    def __init__(
        self,
        transport: Transport,
        ids: Iterator[RequestId],
        identity: Identity,
        declare: Declare,
        seconds: float,
        handshake_begins: Callable[[], None],
    ) -> None:
        self._transport, self._ids, self._identity, self._declare = transport, ids, identity, declare
        self._probe_seconds = min(MOST_PROBE_SECONDS, seconds / PROBE_SHARE)
        self._handshake_begins = handshake_begins
        self.probe_unanswered = False
        """Did the process behind a pipe leave ``server/discover`` without an answer?"""

    async def negotiate(self, negotiation: Negotiation) -> Agreed:
        """Make the attempts that ``negotiation`` demands. Raises what it raises, and ProbeFailed."""
        attempt = next(negotiation)
        while True:
            outcome = await self._outcome(attempt)
            try:
                attempt = negotiation.send(outcome)
            except StopIteration as agreed:
                value: Agreed = agreed.value
                return value

    async def _outcome(self, attempt: DiscoverAttempt | InitializeAttempt) -> Outcome:
        try:
            if isinstance(attempt, DiscoverAttempt):
                return await self._discover(attempt.revision)
            return await self._initialize(attempt.offer)
        except McphostError as error:
            return error

    async def _discover(self, revision: Revision) -> Mapping[str, Any]:
        metadata = ClientMetadata(self._identity.as_object(), lambda: self._declare(revision))
        rules = ModernRules(revision, metadata)
        request = rules.stamped(Request(next(self._ids), "server/discover"))
        if self._transport.own_stream:
            return result_of(await self._transport.request(request, rules.headers(request)), request.method)
        self.probe_unanswered = True
        try:
            async with asyncio.timeout(self._probe_seconds):
                response = await self._transport.request(request, {})
        except TimeoutError:
            raise RequestTimeout(request.method, self._probe_seconds) from None
        except ConnectionLost as lost:
            raise probe_failed("exited when it was asked for its protocol versions", lost) from None
        self.probe_unanswered = False
        return result_of(response, request.method)

    async def _initialize(self, offer: Revision) -> Mapping[str, Any]:
        self._handshake_begins()
        params = {
            "protocolVersion": offer.version,
            "capabilities": self._declare(offer),
            "clientInfo": self._identity.as_object(),
        }
        try:
            response = await self._transport.request(Request(next(self._ids), "initialize", params), {})
        except ConnectionLost as lost:
            if self.probe_unanswered:
                raise probe_failed("exited after it was asked for its protocol versions", lost) from None
            raise
        return result_of(response, "initialize")


def probe_failed(what: str, lost: ConnectionLost | None = None) -> ProbeFailed:
    """The failure of a process that the probe was too much for; ``what`` it did, as a clause."""
    message = f"the server {what} (server/discover)"
    if lost is None:
        return ProbeFailed(message)
    return ProbeFailed(message, exit_code=lost.exit_code, stderr_tail=lost.stderr_tail)
