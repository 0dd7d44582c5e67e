"""The last that is known of each server: an agent sees no change while a server restarts or does not run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.servers import Servers
from mcphost.host.events import (
    EventBus,
    PromptsChanged,
    ResourcesChanged,
    ServerChanged,
    ServersChanged,
    SkillsChanged,
    ToolsChanged,
)
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.models.initialization import InitializeResult


@dataclass(slots=True)
class KnownServer:
    """A server's words about itself, and its usable items of each kind as it listed them last."""

    revision: Revision
    introduction: InitializeResult
    items: dict[CatalogKind, Sequence[Any]] = field(default_factory=dict)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        return self.introduction.capabilities


class KnownServers:
    """All servers that were ready in this run.

    ``changed`` is called with a server, the kind of items that are others now, and what they were.
    """

    def __init__(
        self, servers: Servers, bus: EventBus, changed: Callable[[str, CatalogKind, Sequence[Any]], None]
    ) -> None:
        self._servers = servers
        self._changed: Callable[[str, CatalogKind, Sequence[Any]], None] = lambda server, kind, before: None
        self._known: dict[str, KnownServer] = {}
        self.version = 0
        """Grows with each change."""
        bus.observe(self._learn_of, ServerChanged)
        bus.observe(self._learn_of, ToolsChanged)
        bus.observe(self._learn_of, ResourcesChanged)
        bus.observe(self._learn_of, PromptsChanged)
        bus.observe(self._learn_of, SkillsChanged)
        bus.observe(self._forget_removed, ServersChanged)
        for name in servers:
            self._learn(name)
        self._changed = changed

    def get(self, server: str) -> KnownServer | None:
        return self._known.get(server)

    def has_listed(self, server: str) -> bool:
        """True if the server has listed its items of all kinds that it has."""
        known, connection = self._known.get(server), self._servers.get(server)
        if known is None or connection is None:
            return known is not None
        return all(kind in known.items or not connection.listings.declared(kind) for kind in CatalogKind)

    def items(self, server: str, kind: CatalogKind) -> Sequence[Any]:
        known = self._known.get(server)
        return () if known is None else known.items.get(kind, ())

    def _learn_of(
        self, event: ServerChanged | ToolsChanged | ResourcesChanged | PromptsChanged | SkillsChanged
    ) -> None:
        self._learn(event.server)

    def _learn(self, server: str) -> None:
        connection = self._servers.get(server)
        if connection is None or connection.session is None or not connection.listings.begun:
            return
        session, known = connection.session, self._known.get(server)
        if known is None:
            known = self._known[server] = KnownServer(session.revision, session.server)
            self.version += 1
        if known.introduction is not session.server or known.revision is not session.revision:
            known.revision, known.introduction = session.revision, session.server
            self.version += 1
        for kind in CatalogKind:
            self._take(known, connection, kind)

    def _take(self, known: KnownServer, connection: Connection, kind: CatalogKind) -> None:
        listing = connection.listings.of_kind(kind)
        if listing.freshness is None and connection.listings.declared(kind):
            return  # not listed yet in this session
        before, now = known.items.get(kind), listing.items
        if before is now:
            return
        known.items[kind] = now
        if [each.received for each in before or ()] != [each.received for each in now]:
            self.version += 1
            self._changed(connection.name, kind, before or ())

    def _forget_removed(self, _: ServersChanged) -> None:
        for name in [name for name in self._known if name not in self._servers]:
            del self._known[name]
            self.version += 1
