"""Opens a session for each agent that mcphost serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from mcphost.config.profiles import in_profile
from mcphost.errors import McphostError, UnknownName
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.connection import Connection
from mcphost.host.endpoint.context import EndpointContext, EndpointOptions
from mcphost.host.endpoint.drift import Drift
from mcphost.host.endpoint.known_servers import KnownServers
from mcphost.host.endpoint.session import EndpointSession
from mcphost.host.events import CallChanged, CallFinished, Event, GrantsChanged, ServerChanged, ServersChanged
from mcphost.protocol.models.logging import LogLevel

__all__ = ["EndpointContext", "EndpointOptions", "EndpointService"]


class EndpointService:
    """The sessions of agents that mcphost serves."""

    def __init__(self, context: EndpointContext) -> None:
        self._context = context
        self._sessions: dict[int, EndpointSession] = {}
        self._numbers = count(1)
        self._levels: dict[str, LogLevel] = {}
        """The level of log messages that each server was asked for last."""
        bus = context.reporting.bus
        self._drift = Drift(context.config, context.servers, context.consent)
        self.known = KnownServers(context.servers, bus, self._changed)
        for name in context.servers:
            self._drift.note(name, self.known.items(name, CatalogKind.TOOLS))
        bus.observe(self._call_changed, CallChanged, CallFinished)
        bus.observe(self._approvals_changed, GrantsChanged)
        bus.observe(self._server_changed, ServerChanged)
        bus.observe(self._servers_changed, ServersChanged)

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
        session = EndpointSession(
            next(self._numbers), options, self._context, self.known, self._drift, self._levels_changed, self._ended
        )
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
            for session in tuple(self._sessions.values()):
                session.calls.call_changed(event.call)

    def _approvals_changed(self, _: GrantsChanged) -> None:
        if self._drift.approvals_changed():
            for session in self.sessions:
                session.may_have_changed(CatalogKind.TOOLS, CatalogKind.SKILLS)

    def _server_changed(self, event: ServerChanged) -> None:
        self._fit_level(event.server)

    def _servers_changed(self, _: ServersChanged) -> None:
        for session in self.sessions:
            session.may_have_changed(*CatalogKind)

    def server_logged(self, server: str, params: Mapping[str, Any]) -> None:
        """Pass on a log message of a server: to the one session that runs a call there, or to all if no call runs."""
        users = [session for session in self.sessions if session.hears(server)]
        running = [session for session in users if session.calls.runs_at(server)]
        sent, known = self._context.calls.sent(server), sum(len(each.calls.runs_at(server)) for each in running)
        if len(running) <= 1 and len(sent) <= known:  # else it is not certain whose call it is about
            for session in running or users:
                session.logged(server, params)

    def resource_updated(self, server: str, uri: str) -> None:
        """Pass on that a resource may have changed."""
        for session in self.sessions:
            session.resource_updated(server, uri)

    def _levels_changed(self, changed: EndpointSession) -> None:
        for entry in changed.entries:
            self._fit_level(changed.server_of(entry))

    def _fit_level(self, server: str) -> None:
        """Ask a server for the log messages that any session wants, once."""
        connection, known = self._context.servers.get(server), self.known.get(server)
        if connection is None or known is None or not self._sessions or "logging" not in known.capabilities:
            return
        levels = [session.wanted_level(known.revision) for session in self.sessions if session.uses(server)]
        levels.append(LogLevel.read(connection.config.log_level))
        wanted = min((level for level in levels if level is not None), default=None)
        if wanted is not None and wanted not in (connection.level, self._levels.get(server)):
            self._levels[server] = wanted
            self._context.background.start_if_open(_set_level(connection, wanted), "set a log level")

    def _changed(self, server: str, kind: CatalogKind, before: Sequence[Any]) -> None:
        if kind is CatalogKind.TOOLS:
            self._drift.note(server, (*before, *self.known.items(server, kind)))
        for session in self.sessions:
            session.items_changed(server, kind)


async def _set_level(connection: Connection, level: LogLevel) -> None:
    if not connection.ready:
        connection.level = level  # the next session begins with it
        return
    with suppress(McphostError):  # the server goes on as before
        await connection.set_level(level)
