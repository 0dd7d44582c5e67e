"""A model at an address: what every API over HTTP is asked alike, whatever its words are.

Knows checks, patience, connections, and that a refusal may hint at another way to ask. Refuses to know a request's
shape: each API's own module does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, ClassVar, Generic, TypeVar

from mcphost.errors import ModelError
from mcphost.providers.base import ModelCapabilities, ModelRequest, ProviderEvent, check
from mcphost.providers.endpoint import ModelEndpoint, checked, joined
from mcphost.providers.exchange import ModelConnections, RefusedAnswer, StreamReader, events_of, persistently
from mcphost.providers.framings import StreamFraming, events
from mcphost.providers.patience import RetryLimits
from mcphost.providers.refusals import Refusal
from mcphost.providers.room import fitted
from mcphost.providers.spelling import NameMapping, tool_names

Dialect = TypeVar("Dialect")
"""The ways in which servers of one API want to be asked: a value that can be compared and hashed."""


class HostedProvider(ABC, Generic[Dialect]):
    """A model of an API's, or of whoever speaks like it at ``base_url``; see `Provider`."""

    HOME: ClassVar[str]
    """The API's own address."""
    VERSION: ClassVar[str] = "/v1"
    """What follows an address that does not end in it."""
    PATH: ClassVar[str]
    """Where its answers are asked for, below its version."""
    CAPABILITIES: ClassVar[ModelCapabilities]
    """What its models take, where nothing else is known."""
    KEY_AT_HOME: ClassVar[bool] = True
    """Does its own address want a key?"""
    FRAMING: ClassVar[StreamFraming] = staticmethod(events)
    """How its streams are read."""

    def __init__(
        self,
        entry: str,
        model: str,
        *,
        key: str = "",
        base_url: str | None = None,
        plain_http: bool = False,
        patience: RetryLimits = RetryLimits(),  # noqa: B008 - a frozen value
        capabilities: ModelCapabilities | None = None,
        context_tokens: int | None = None,
    ) -> None:
        """``plain_http``: the user accepts that the key travels unencrypted to a host that is not this machine.

        ``context_tokens``: the most that it reads and writes for one answer; None: not known.
        """
        self.entry, self.capabilities = entry, capabilities or self.CAPABILITIES
        self.key_refused = False
        """Was its key not accepted? Another may be kept under the same name by now."""
        self._model, self._plain, self._context = model, plain_http, context_tokens
        self._key_needed = base_url is None and self.KEY_AT_HOME
        self._dialect = self._first_dialect(at_home=base_url is None)
        url = joined(base_url or self.HOME, self.VERSION, self.PATH)
        self._endpoint = ModelEndpoint(entry, url, key, self._headers(key))
        self._exchanges = ModelConnections(self._endpoint, patience, self.FRAMING)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """See `Provider.stream`."""
        checked(self._endpoint, key_needed=self._key_needed, plain=self._plain)
        check(self.entry, request, self.capabilities)
        patience, fitting = self._exchanges.patience, fitted(self.entry, request, self._context)
        async with aclosing(persistently(self._endpoint, patience, lambda: self._attempt(fitting))) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """See `Provider.aclose`."""
        await self._exchanges.aclose()

    async def _attempt(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask, and again in each other way that a refusal hints at; the one that is taken is kept.

        What a refusal hints at follows from how this request was asked, whatever others learned meanwhile.
        """
        names, dialect = tool_names(request), self._dialect
        tried = {dialect}
        while True:
            asking = events_of(self._exchanges, self._body(request, names, dialect), self._reading(request, names))
            try:
                async with aclosing(asking) as events:
                    async for event in events:
                        yield event
                return
            except RefusedAnswer as refused:
                self.key_refused |= refused.refusal.status == 401
                other = self._remedy(refused.refusal, dialect)
                if other is None or other in tried:
                    raise self._told(refused) from None
                tried.add(other)
                self._dialect = dialect = other

    @abstractmethod
    def _headers(self, key: str) -> Mapping[str, str]:
        """What every request carries; ``key`` may be empty."""

    @abstractmethod
    def _first_dialect(self, *, at_home: bool) -> Dialect:
        """How a server is asked of which nothing is known yet."""

    @abstractmethod
    def _body(self, request: ModelRequest, names: NameMapping, dialect: Dialect) -> dict[str, Any]:
        """The request as the API takes it, in this dialect."""

    @abstractmethod
    def _reading(self, request: ModelRequest, names: NameMapping) -> StreamReader:
        """What reads the answer to it."""

    def _remedy(self, refusal: Refusal, dialect: Dialect) -> Dialect | None:
        """The dialect to ask in instead of the one that was refused, where the refusal hints at one."""
        return None

    def _told(self, refused: RefusedAnswer) -> ModelError:
        """What a person is told of a refusal."""
        return refused.error
