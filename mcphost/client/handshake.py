"""The ``initialize`` handshake.

Specification: basic/lifecycle.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcphost.client.requests import result_of
from mcphost.errors import ServerError
from mcphost.protocol.lifecycle.negotiation import Agreed, negotiate
from mcphost.protocol.lifecycle.revisions import NEWEST_REVISION, Revision
from mcphost.protocol.wire.jsonrpc import Response

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Response]]
"""Sends a request of this method and params."""

Declare = Callable[[Revision], Mapping[str, Any]]
"""The capabilities to declare when offering this revision."""


@dataclass(frozen=True, slots=True)
class Identity:
    """How mcphost introduces itself: name and version, nothing about the machine."""

    version: str
    name: str = "mcphost"

    def as_object(self) -> dict[str, str]:
        """The ``clientInfo`` of the handshake."""
        return {"name": self.name, "title": self.name, "version": self.version}


async def shake_hands(ask: Ask, identity: Identity, declare: Declare, minimum: Revision) -> Agreed:
    """Negotiate a revision. Raises VersionRefused, InvalidResult or ServerError, and what ``ask`` raises."""
    negotiation = negotiate(newest=NEWEST_REVISION, minimum=minimum)
    attempt = next(negotiation)
    while True:
        outcome = await _initialize(ask, identity, declare(attempt.offer), attempt.offer)
        try:
            attempt = negotiation.send(outcome)
        except StopIteration as agreed:
            value: Agreed = agreed.value
            return value


async def _initialize(
    ask: Ask, identity: Identity, capabilities: Mapping[str, Any], offer: Revision
) -> Mapping[str, Any] | ServerError:
    params = {
        "protocolVersion": offer.version,
        "capabilities": capabilities,
        "clientInfo": identity.as_object(),
    }
    response = await ask("initialize", params)
    try:
        return result_of(response, "initialize")
    except ServerError as error:
        return error
