"""The resources that one agent is subscribed to: a subscription of the host each, which sessions share.

Specification: server/resources; 2026-07-28 basic/patterns/subscriptions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from mcphost.errors import McphostError
from mcphost.host.resources import ResourceService
from mcphost.serving.negotiation import RpcError


class EndpointSubscriptions:
    """The subscriptions of one session.

    ``find`` returns the entry of an exposed URI, and the URI there; it raises RpcError. ``lease`` returns the running
    server of an entry. ``start`` runs work in the background.
    """

    def __init__(
        self,
        resources: ResourceService,
        find: Callable[[str], tuple[str, str]],
        lease: Callable[[str], Awaitable[str]],
        origin: Callable[[], str],
        start: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        self._resources, self._find, self._lease, self._origin, self._start = resources, find, lease, origin, start
        self._held: dict[str, tuple[str, str]] = {}
        """The server and the URI there, by the exposed URI."""
        self._beginning: set[str] = set()
        self._wanted: frozenset[str] = frozenset()

    async def begin(self, exposed: str) -> None:
        """Subscribe. Raises RpcError, McphostError."""
        entry, uri = self._find(exposed)
        self._beginning.add(exposed)
        try:
            server = await self._lease(entry)
            await self._resources.subscribe(server, uri, origin=self._origin(), holder=self)
            self._held[exposed] = server, uri
        except BaseException:
            self._beginning.discard(exposed)
            raise

    def wanted(self, exposed: frozenset[str]) -> None:
        """The agent is subscribed to these now: begin and end what is missing for that."""
        self._wanted = exposed
        self._beginning -= exposed & self._held.keys()
        for uri in exposed - self._held.keys() - self._beginning:
            self._start(self._begin_quietly(uri), "subscribe for an agent")
        for uri in self._held.keys() - exposed - self._beginning:
            self._end(uri)

    def exposed(self, server: str, uri: str) -> list[str]:
        """The exposed URIs that stand for this resource."""
        return [exposed for exposed, held in self._held.items() if held == (server, uri)]

    def close(self) -> None:
        for uri in list(self._held):
            self._end(uri)

    async def _begin_quietly(self, exposed: str) -> None:
        with suppress(McphostError, RpcError):  # as with a server that never announces a change
            await self.begin(exposed)
        self._beginning.discard(exposed)
        if exposed in self._held and exposed not in self._wanted:
            self._end(exposed)

    def _end(self, exposed: str) -> None:
        server, uri = self._held.pop(exposed)
        self._start(self._end_quietly(server, uri), "unsubscribe for an agent")

    async def _end_quietly(self, server: str, uri: str) -> None:
        with suppress(McphostError):  # the server is not configured any more
            await self._resources.unsubscribe(server, uri, holder=self)
