"""A model at an address: what every API over HTTP is asked alike, whatever its words are.

Knows checks, patience and connections. Refuses to know a request's shape: each API's own module does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import ClassVar

from mcphost.providers.base import Capabilities, Event, ModelRequest, check
from mcphost.providers.endpoint import Endpoint, checked, joined
from mcphost.providers.exchange import Exchanges, persistently
from mcphost.providers.patience import Patience


class HostedProvider(ABC):
    """A model of an API's, or of whoever speaks like it at ``base_url``; see `Provider`."""

    HOME: ClassVar[str]
    """The API's own address."""
    PATH: ClassVar[str]
    """Where its answers are asked for, below its version."""
    CAPABILITIES: ClassVar[Capabilities]
    """What its models take, where nothing else is known."""

    def __init__(
        self,
        entry: str,
        model: str,
        *,
        key: str = "",
        base_url: str | None = None,
        plain_http: bool = False,
        patience: Patience = Patience(),  # noqa: B008 - a frozen value
        capabilities: Capabilities | None = None,
    ) -> None:
        """``plain_http``: the user accepts that the key travels unencrypted to a host that is not this machine."""
        self.entry, self.capabilities = entry, capabilities or self.CAPABILITIES
        self._model, self._at_home, self._plain = model, base_url is None, plain_http
        url = joined(base_url or self.HOME, "/v1", self.PATH)
        self._endpoint = Endpoint(entry, url, key, self._headers(key))
        self._exchanges = Exchanges(self._endpoint, patience)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        """See `Provider.stream`."""
        checked(self._endpoint, key_needed=self._at_home, plain=self._plain)
        check(self.entry, request, self.capabilities)
        patience = self._exchanges.patience
        async with aclosing(persistently(self._endpoint, patience, lambda: self._attempt(request))) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """See `Provider.aclose`."""
        await self._exchanges.aclose()

    @abstractmethod
    def _headers(self, key: str) -> Mapping[str, str]:
        """What every request carries; ``key`` may be empty."""

    @abstractmethod
    def _attempt(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        """Ask once."""
