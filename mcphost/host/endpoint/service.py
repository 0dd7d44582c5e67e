"""Opens a session for each agent that mcphost serves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from mcphost.config.profiles import in_profile
from mcphost.errors import UnknownName
from mcphost.host.catalog import CatalogKind
from mcphost.host.endpoint.context import EndpointContext, EndpointOptions
from mcphost.host.endpoint.known_servers import KnownServers
from mcphost.host.endpoint.session import EndpointSession
from mcphost.host.events import CallChanged, CallFinished, Event

__all__ = ["EndpointContext", "EndpointOptions", "EndpointService"]


class EndpointService:
    """The sessions of agents that mcphost serves."""

    def __init__(self, context: EndpointContext) -> None:
        self._context = context
        self._sessions: dict[int, EndpointSession] = {}
        self._numbers = count(1)
        bus = context.reporting.bus
        self.known = KnownServers(context.servers, bus, self._changed)
        bus.observe(self._call_changed, CallChanged, CallFinished)

    @property
    def sessions(self) -> Sequence[EndpointSession]:
        """The open ones, oldest first."""
        return tuple(self._sessions.values())

    def open(self, options: EndpointOptions) -> EndpointSession:
        """Open a session. Raises UnknownName for a server, ConfigError for a profile."""
        config, _ = in_profile(self._context.config(), options.profile)
        for name in options.servers:
            if name not in config.servers:
                known = ", ".join(config.servers) or "none"
                raise UnknownName(f"no server is called {name!r}; there are: {known}")
        session = EndpointSession(next(self._numbers), options, self._context, self.known, self._ended)
        self._sessions[session.number] = session
        return session

    def close(self) -> None:
        """End all sessions."""
        for session in self.sessions:
            session.closed()

    def _ended(self, session: EndpointSession) -> None:
        self._sessions.pop(session.number, None)

    def _call_changed(self, event: Event) -> None:
        if isinstance(event, CallChanged | CallFinished):
            for session in self.sessions:
                session.calls.call_changed(event.call)

    def _changed(self, server: str, kind: CatalogKind) -> None:
        for session in self.sessions:
            session.items_changed(server, kind)
