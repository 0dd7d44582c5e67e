"""From an entry of ``[models]`` to a provider, kept until the entry changes or its key is refused.

Knows which providers there are. Refuses to know what a model is asked, and who asks. Nothing of them is imported
before a model is asked.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from mcphost.composition.transports import in_time
from mcphost.config import Config, ModelConfig, Values, resolve_model
from mcphost.errors import ModelRefused

if TYPE_CHECKING:
    from mcphost.providers.base import ModelCapabilities, Provider
    from mcphost.providers.http import HostedProvider

_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "anthropic": ("mcphost.providers.anthropic", "AnthropicProvider"),
    "ollama": ("mcphost.providers.ollama", "OllamaProvider"),
    "openai": ("mcphost.providers.openai", "OpenAIProvider"),
}
"""The module and the class of each provider."""


class ConfiguredModels:
    """The host's `mcphost.host.models.ModelPort`."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._made: dict[str, tuple[ModelConfig, HostedProvider[Any]]] = {}
        self._making: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def able(self, model: ModelConfig) -> ModelCapabilities:
        """What its provider can be told, as far as the entry says that the model takes it."""
        from mcphost.providers.base import IMAGES, ModelCapabilities
        from mcphost.providers.openai import AUDIO

        hears = "audio" in model.takes and model.provider == "openai"
        return ModelCapabilities(
            images=IMAGES if "images" in model.takes else frozenset(),
            audio=frozenset(AUDIO) if hears else frozenset(),
            tools="tools" in model.takes,
        )

    async def provider(self, config: Config, name: str) -> Provider:
        """See `mcphost.host.models.ModelPort.provider`."""
        entry = config.models.get(name)
        if entry is None:  # the file was read again since it was chosen
            raise ModelRefused(name, "it is no longer configured; choose another")
        async with self._making[name]:
            made = self._made.get(name)
            if made is not None and made[0] == entry and not made[1].key_refused:
                return made[1]
            provider = await in_time(lambda: self._make(config, name), f"models.{name}")
            await self._forget(name)
            self._made[name] = entry, provider
            return provider

    async def aclose(self) -> None:
        """Drop all connections."""
        for name in tuple(self._made):
            await self._forget(name)

    async def _forget(self, name: str) -> None:
        """One that is another by now, or no longer needed."""
        if name in self._made:
            await self._made.pop(name)[1].aclose()

    def _make(self, config: Config, name: str) -> HostedProvider[Any]:
        """Takes long, at a keychain and in imports: not on the event loop."""
        entry = config.models[name]
        if entry.provider not in _KINDS:
            raise ModelRefused(name, "a person writes its answers, and none is asked here")
        module, kind = _KINDS[entry.provider]
        model, make = resolve_model(config, self._values, name), getattr(import_module(module), kind)
        place = {"key": model.api_key or "", "base_url": model.base_url}
        known = {"capabilities": self.able(entry), "context_tokens": entry.context_tokens}
        made: HostedProvider[Any] = make(name, model.model or "", **place, **known)
        return made
