"""The context that the connections of a host share, with the port to the services that answer servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, Protocol

from mcphost.client.client import Identity
from mcphost.client.server_requests import InputHandler
from mcphost.config import Config
from mcphost.host.catalog import Catalog
from mcphost.host.connections.eras import EraMemory
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.reporting import Reporting
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.capabilities import ClientCapabilities
from mcphost.transports.base import Transport


class ServerRequestPort(Protocol):
    """Answers server requests.

    A protocol, because `mcphost.host.server_requests.service.ServerRequestService` needs the connections.
    """

    def handler(self, server: str) -> InputHandler:
        """Return what answers this server's requests."""

    def capabilities(self, server: str) -> ClientCapabilities:
        """Return the client capabilities to declare to this server."""

    def with_agents(self, server: str, own: ClientCapabilities) -> ClientCapabilities:
        """Return ``own`` with what the agents answer that share this server."""

    def elicitation_completed(self, server: str, elicitation: str) -> None:
        """Note that the server is done with a URL elicitation."""

    def session_ended(self, server: str) -> None:
        """Note that the server's session has ended."""


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """The current configuration, and the services that all connections of a host use."""

    config: Callable[[], Config]
    open_transport: Callable[[Config, str], Awaitable[Transport]]
    """Opens the transport of a server, its references resolved. Raises ConfigError."""
    identity: Identity
    eras: EraMemory
    catalog: Catalog
    calls: CallRegistry
    consent: ConsentBroker
    server_requests: ServerRequestPort
    reporting: Reporting
    disconnected: Callable[[str], None]
    """Called when the connection to a server has ended."""
    served_from_cache: Callable[[str, str], None]
    """Called with a server and what was not requested of it, because a kept result was fresh."""
    server_logged: Callable[[str, Mapping[str, Any]], None] = field(default=lambda server, params: None)
    """Called with a server and the params of its log message."""
    resource_updated: Callable[[str, str], None] = field(default=lambda server, uri: None)
    """Called with a server and the URI of a subscription whose resource may have changed."""
    prefetch: bool = True
    """True to list resources and prompts before anybody uses them."""
