"""What a connection may ask of the host that runs it, so that it need not know the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mcphost.client.inputs import InputHandler
from mcphost.config import Config
from mcphost.host.catalog import CatalogKind
from mcphost.host.logs import LogSource
from mcphost.protocol.declared import ClientCapabilities
from mcphost.protocol.types import LogLevel
from mcphost.transports.base import Transport


class Surroundings(Protocol):
    """What a connection is given by its host."""

    async def open_transport(self, name: str) -> Transport:
        """The transport for a server, its references resolved. Raises ConfigError."""

    def current_config(self) -> Config:
        """The configuration as it is now."""

    def now(self) -> float:
        """Seconds of a monotonic clock."""

    def random(self) -> float:
        """Between 0 and 1."""

    def mask(self, text: str) -> str:
        """The text without secrets."""

    def busy(self, server: str) -> bool:
        """Is a call running on it?"""

    def log(self, server: str, source: LogSource, level: LogLevel, text: str, logger: str = "") -> None:
        """Keep a line."""

    def state_changed(self, server: str) -> None:
        """The connection's state changed."""

    def listed(self, server: str, kind: CatalogKind, items: Sequence[Any]) -> None:
        """These are the server's offers of this kind now: `Tool`, `Resource`, `ResourceTemplate` or `Prompt`."""

    def answers_for(self, server: str) -> tuple[InputHandler, ClientCapabilities]:
        """Who answers what this server asks, and what it is told that it may ask."""

    def elicitation_completed(self, server: str, elicitation: str) -> None:
        """The server says that a page is done with."""

    def resource_updated(self, server: str, uri: str) -> None:
        """The watch of a resource changed."""
