"""What the connections of a host share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mcphost.client.client import Identity
from mcphost.config import Config
from mcphost.host.catalog import Catalog
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.events import EventBus
from mcphost.host.logs import LogBook
from mcphost.host.server_requests.service import ServerRequestService
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.transports.base import Transport


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """The configuration as it is now, and the services that a connection uses."""

    config: Callable[[], Config]
    open_transport: Callable[[Config, str], Awaitable[Transport]]
    """Opens the transport of a server, its references resolved. Raises ConfigError."""
    identity: Identity
    servers: Servers
    catalog: Catalog
    calls: CallRegistry
    consent: ConsentBroker
    server_requests: ServerRequestService
    logs: LogBook
    bus: EventBus
    mask: Callable[[str], str]
    """Removes secrets from a text."""
