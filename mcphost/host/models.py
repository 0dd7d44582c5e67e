"""The language models that may answer: which there are, what each takes and costs, and which one a request gets.

Specification: client/sampling (model preferences, capabilities).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from mcphost.config import Config, ModelConfig, entry_of
from mcphost.errors import ModelRefused
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.sampling import ModelPreferences
from mcphost.providers.base import IMAGES, ModelCapabilities, ModelRequest, Price, Provider, lacking
from mcphost.providers.choice import ModelCandidate, choose

HAND: Final = "manual"
"""The entry that is there without a configuration: the user is the model."""

HUMAN: Final = "human"
"""The model that a server sees where the user wrote the answer."""

BY_HAND: Final = ModelCapabilities(images=IMAGES)
"""A person sees what the screen shows, and writes text."""

FREE: Final = Price(0.0, 0.0)


class ModelPort(Protocol):
    """The language models of a run, as whoever built the host wired them."""

    def able(self, model: ModelConfig) -> ModelCapabilities:
        """The media that a model takes besides text, as far as is known before it is asked."""

    async def provider(self, config: Config, name: str) -> Provider:
        """An entry of ``[models]``, its references resolved. Raises ConfigError, ModelError."""


@dataclass(frozen=True, slots=True)
class AvailableModel:
    """One model that may answer."""

    entry: str
    """Its name in the configuration."""
    able: ModelCapabilities
    candidate: ModelCandidate
    price: Price | None = None
    """For a million tokens; None: not known."""
    by_hand: bool = False
    """True if the user writes the answers."""

    @property
    def name(self) -> str:
        """The name that a server sees, unless the model reports a better one."""
        return self.candidate.model or (HUMAN if self.by_hand else self.entry)


_HAND: Final = AvailableModel(HAND, BY_HAND, ModelCandidate(HAND), FREE, by_hand=True)


class ModelCatalog:
    """All models. ``port`` None: only the user can be asked; ``hand``: the user can write answers."""

    def __init__(self, config: Callable[[], Config], port: ModelPort | None, *, hand: bool) -> None:
        self._config, self._port, self._hand = config, port, hand

    @property
    def all(self) -> tuple[AvailableModel, ...]:
        """The models that the user may choose from, oneself last."""
        configured = tuple(self._configured())
        named = {model.entry for model in configured}
        return (*configured, _HAND) if self._hand and HAND not in named else configured

    def for_server(self, server: str) -> tuple[AvailableModel, ...]:
        """The models that may answer this server unasked: the configured ones; oneself only without any."""
        only, configured = self._only(server), tuple(self._configured())
        if only is not None:
            return tuple(model for model in configured if model.entry == only)
        return configured or ((_HAND,) if self._hand else ())

    def find(self, entry: str) -> AvailableModel | None:
        return next((model for model in self.all if model.entry == entry), None)

    def choose(self, server: str, request: ModelRequest, preferences: ModelPreferences) -> tuple[AvailableModel, str]:
        """The model for a request, and why, in a line that is safe to show. Raises ModelRefused where none takes it."""
        models = self.for_server(server)
        fitting = [model for model in models if not lacking(request, model.able)]
        if not fitting:
            kinds = sorted({lacking(request, model.able) for model in models})
            raise ModelRefused(server, f"no model here takes {' or '.join(kinds) or 'anything'}")
        chosen = choose([model.candidate for model in fitting], preferences)
        model = next(model for model in fitting if model.entry == chosen.entry)
        return model, self._reason(server, models, fitting, chosen.reason)

    async def provider(self, model: AvailableModel) -> Provider:
        """Return the provider of this model. Raises ConfigError, ModelError."""
        if self._port is None or model.by_hand:
            raise ModelRefused(model.entry, "it cannot be asked here")
        return await self._port.provider(self._config(), model.entry)

    def _reason(
        self, server: str, models: Sequence[AvailableModel], fitting: Sequence[AvailableModel], reason: str
    ) -> str:
        if self._only(server) is not None:
            return f"servers.{server}.sampling.model names it"
        if models == (_HAND,):
            return "no model is configured, so you write the answer"
        return (
            f"{reason}; {len(models) - len(fitting)} cannot take the request" if len(fitting) < len(models) else reason
        )

    def _only(self, server: str) -> str | None:
        """The model that the server's entry names; a server behind an agent's gate has no entry."""
        settings = self._config().servers.get(entry_of(server))
        return None if settings is None else settings.sampling.model

    def _configured(self) -> Sequence[AvailableModel]:
        return [
            found for name, model in self._config().models.items() if (found := self._model(name, model)) is not None
        ]

    def _model(self, name: str, model: ModelConfig) -> AvailableModel | None:
        """None where it cannot be asked in this run."""
        by_hand = model.provider == "manual"
        if not (self._hand if by_hand else self._port):
            return None
        able = BY_HAND if by_hand or self._port is None else self._port.able(model)
        candidate = ModelCandidate(name, model.model or "", model.cost, model.speed, model.intelligence)
        return AvailableModel(name, able, candidate, FREE if by_hand else _price(model), by_hand)


def _price(model: ModelConfig) -> Price | None:
    if model.input_price is None or model.output_price is None:
        return None
    return Price(model.input_price, model.output_price)
