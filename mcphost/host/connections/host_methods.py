"""What connections ask of the host that runs them, and tell it, as methods of the host: see `Surroundings`.

Knows who keeps what a server says, and which fact it is to the fronts. Refuses to know how a connection lives.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mcphost.config import Config
from mcphost.host.catalog import Catalog, CatalogKind
from mcphost.host.connections.connection import Connection
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.dependencies import Dependencies
from mcphost.host.events import (
    Event,
    EventBus,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    ServerChanged,
    ToolsChanged,
)
from mcphost.host.logs import LogBook, LogSource
from mcphost.host.server_requests.host_methods import ServerRequestServices
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.protocol.models.tools import LogLevel
from mcphost.transports.base import Transport

_LISTED: Final[Mapping[CatalogKind, Callable[[str], Event]]] = {
    CatalogKind.TOOLS: ToolsChanged,
    CatalogKind.RESOURCES: ResourcesChanged,
    CatalogKind.TEMPLATES: ResourcesChanged,
    CatalogKind.PROMPTS: PromptsChanged,
}


class Hearing:
    """With `Answering`, all of `Surroundings`."""

    config: Config
    servers: dict[str, Connection]
    bus: EventBus
    logs: LogBook
    catalog: Catalog
    _fittings: Dependencies
    consent: ConsentBroker
    _desk: ToolCallService
    _desks: ServerRequestServices

    async def open_transport(self, name: str) -> Transport:
        """The transport of a server. Raises ConfigError."""
        return await self._fittings.open_transport(self.config, name)

    def current_config(self) -> Config:
        """The configuration as it is now."""
        return self.config

    def now(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    def random(self) -> float:
        """Between 0 and 1."""
        return random.random()

    def mask(self, text: str) -> str:
        """The text without secrets."""
        return self._fittings.mask(text)

    def busy(self, server: str) -> bool:
        """Is a call running on it?"""
        return self._desk.newest_on(server) is not None

    def log(self, server: str, source: LogSource, level: LogLevel, text: str, logger: str = "") -> None:
        """Keep a line, with the call that was running then."""
        self.logs.add(server, source, level, text, logger=logger, call=self._desk.newest_on(server))

    def state_changed(self, server: str) -> None:
        """Tell the fronts; what was asked about a server that is gone need not be answered."""
        connection = self.servers.get(server)
        if connection is None or not connection.ready:
            self.consent.withdraw(server)
            self._desks.elicitation.gone(server)
        self.bus.publish(ServerChanged(server))

    def listed(self, server: str, kind: CatalogKind, items: Sequence[Any]) -> None:
        """Keep what a server offers and tell the fronts."""
        if server in self.servers:
            self.catalog.keep_kind(server, kind, items)
        else:
            self.catalog.forget(server)
        self.bus.publish(_LISTED[kind](server))

    def resource_updated(self, server: str, uri: str) -> None:
        """Tell the fronts."""
        self.bus.publish(ResourceUpdated(server, uri))
