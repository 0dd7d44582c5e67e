"""Builds a provider from an entry of ``[models]``, and keeps it until the entry changes or its key is refused.

A provider's module is imported when a model is first asked.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from mcphost.composition.lookup import in_lookup_thread
from mcphost.config import Config, ModelConfig, Values, resolve_model
from mcphost.errors import ModelRefused

if TYPE_CHECKING:
    from mcphost.providers.base import ModelCapabilities, Provider
    from mcphost.providers.demo_script import DemoScript
    from mcphost.providers.http import HostedProvider

PROVIDER_CLASSES: Final[Mapping[str, tuple[str, str]]] = {
    "anthropic": ("mcphost.providers.anthropic", "AnthropicProvider"),
    "ollama": ("mcphost.providers.ollama", "OllamaProvider"),
    "openai": ("mcphost.providers.openai", "OpenAIProvider"),
}
"""The module and the class of each of `mcphost.config.model_providers.HOSTED_PROVIDERS`."""


class ConfiguredModels:
    """The host's `mcphost.host.models.ModelPort`."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._made: dict[str, tuple[ModelConfig, HostedProvider[Any] | DemoScript]] = {}
        self._making: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def able(self, model: ModelConfig) -> ModelCapabilities:
        """The content that the provider can send and the model takes, by its entry."""
        from mcphost.providers.base import IMAGES, ModelCapabilities

        return ModelCapabilities(
            images=IMAGES if "images" in model.takes else frozenset(),
            audio=_audio_types() if "audio" in model.takes and model.provider == "openai" else frozenset(),
            tools="tools" in model.takes,
        )

    async def provider(self, config: Config, name: str) -> Provider:
        entry = config.models.get(name)
        if entry is None:  # the configuration was reloaded since the model was chosen
            raise ModelRefused(name, "it is no longer configured; choose another")
        async with self._making[name]:
            made = self._made.get(name)
            if made is not None and made[0] == entry and not made[1].key_refused:
                return made[1]
            provider = await in_lookup_thread(lambda: self._make(config, name), f"models.{name}")
            await self._forget(name)
            self._made[name] = entry, provider
            return provider

    async def aclose(self) -> None:
        for name in tuple(self._made):
            await self._forget(name)

    async def _forget(self, name: str) -> None:
        """Close a provider whose entry changed or that is no longer needed."""
        if name in self._made:
            await self._made.pop(name)[1].aclose()

    def _make(self, config: Config, name: str) -> HostedProvider[Any] | DemoScript:
        """Build a provider. Imports and the keychain take time: call it in a thread."""
        entry = config.models[name]
        if entry.provider == "demo":
            from mcphost.providers.demo_script import DemoScript

            return DemoScript(name, self.able(entry))
        if entry.provider not in PROVIDER_CLASSES:
            raise ModelRefused(name, "a person writes its answers, and none is asked here")
        module, kind = PROVIDER_CLASSES[entry.provider]
        model, make = resolve_model(config, self._values, name), getattr(import_module(module), kind)
        place = {"key": model.api_key or "", "base_url": model.base_url}
        known = {"capabilities": self.able(entry), "context_tokens": entry.context_tokens}
        made: HostedProvider[Any] = make(name, model.model or "", **place, **known)
        return made


def _audio_types() -> frozenset[str]:
    # late: brings httpx with it, a tenth of the time to the first frame, and most models take no audio
    from mcphost.providers.openai import AUDIO

    return frozenset(AUDIO)
