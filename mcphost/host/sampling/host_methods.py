"""The user's language models as servers may use them, as plain methods of the host.

Knows which desk does what. Refuses to know how. A request goes on by itself: `Sampling` is what to hold on to.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from mcphost.config import Config
from mcphost.host.connections.connection import Connection
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.events import EventBus
from mcphost.host.server_requests.pending import PendingRequests
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.protocol.models.tools import TextContent

if TYPE_CHECKING:  # imported when a model is first thought of: in most runs without a screen none is
    from mcphost.host.models import AvailableModel, ModelCatalog, ModelPort
    from mcphost.host.sampling.budgets import SamplingUsage
    from mcphost.host.sampling.request import Sampling
    from mcphost.host.sampling.service import SamplingService

SAID: Final = 16_000
"""Characters of what a server said before that are added to a prompt, where that is allowed."""


class Lending:
    """The host's methods about what servers ask of language models."""

    config: Config
    servers: dict[str, Connection]
    consent: ConsentBroker
    bus: EventBus
    _desk: ToolCallService

    def server(self, name: str) -> Connection:
        """A connection; raises UnknownName."""
        raise NotImplementedError

    def mask(self, text: str) -> str:
        """The text without secrets."""
        raise NotImplementedError

    def _warn(self, server: str, text: str) -> None:
        raise NotImplementedError

    @property
    def samplings(self) -> Mapping[int, Sampling]:
        """The requests for a model's answer by number, oldest first: all that go on, and the last that ended."""
        return self._sampling.all

    @property
    def models(self) -> tuple[AvailableModel, ...]:
        """The language models that can be asked in this run; the user too, where there is a screen to write on."""
        return self._models.all

    def spent(self, server: str) -> SamplingUsage:
        """What a server used of the models in this run, and what it may. Raises UnknownName."""
        return self._sampling.spent(self.server(server).name)

    def raise_budget(self, server: str, *, tokens: int | None = None, cost: float | None = None) -> None:
        """Let a server use so much more in this run; with neither, once more what is configured. Raises UnknownName."""
        self._sampling.raise_budget(self.server(server).name, tokens, cost)

    def _begin_lending(self, port: ModelPort | None, inquiries: PendingRequests, *, front: bool, hand: bool) -> None:
        """What the desk will be given. ``front``: somebody answers questions about it, ``hand``: and can write."""
        self._model_port, self._model_inquiries = port, inquiries
        self._front, self._hand = front, front and hand

    @cached_property
    def _models(self) -> ModelCatalog:
        from mcphost.host.models import ModelCatalog

        return ModelCatalog(lambda: self.config, self._model_port, hand=self._hand)

    @cached_property
    def _sampling(self) -> SamplingService:
        from mcphost.host.sampling.budgets import SamplingBudgets
        from mcphost.host.sampling.service import SamplingParts, SamplingService

        return SamplingService(
            SamplingParts(
                config=lambda: self.config,
                models=self._models,
                inquiries=self._model_inquiries,
                budgets=SamplingBudgets(lambda: self.config, time.monotonic),
                witness=self.consent.witness,
                publish=self.bus.publish,
                warn=self._warn,
                mask=self.mask,
                version=self._version,
                said=self._said,
                front=self._front,
            )
        )

    def _lends(self, server: str) -> Mapping[str, Any] | None:
        """The sampling capability as this server is told of it; None where nobody would answer."""
        return self._sampling.declared(server) if self.config.models or self._hand else None

    def _version(self, server: str) -> str | None:
        """The revision this server speaks; None while that is not known."""
        connection = self.servers.get(server)
        session = None if connection is None else connection.session
        return None if session is None else session.revision.version

    def _said(self, server: str) -> str:
        """What this server answered to the last calls, the newest first; of no other server anything."""
        said = "\n\n".join(self._answers_of(server))
        return said[:SAID]

    def _answers_of(self, server: str) -> Iterator[str]:
        for call in reversed(tuple(self._desk.calls.values())):
            if call.request.server == server and call.outcome is not None:
                yield from (block.text[:SAID] for block in call.outcome.content if isinstance(block, TextContent))
