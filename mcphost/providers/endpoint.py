"""The address and API key of a model, and the rule that a key never travels unencrypted to another machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final
from urllib.parse import urlsplit

from mcphost.errors import ModelKeyRefused, ModelRefused
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.protocol.urls import is_loopback
from mcphost.redaction import MASK, MIN_SECRET

OLLAMA_PORT: Final = 11434
"""Ollama's default port, which hardly anything else uses."""


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """The address and key of one model entry."""

    entry: str
    """Its name in the configuration."""
    url: str = field(repr=False)
    """The URL that requests are posted to."""
    key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request, the key among them."""

    @property
    def origin(self) -> str:
        """Scheme, host and port; the only part of the URL that is shown."""
        parts = urlsplit(self.url)
        return show_line(f"{parts.scheme}://{parts.netloc}", 120)

    @property
    def local(self) -> bool:
        return is_loopback(urlsplit(self.url).hostname or "")

    @property
    def start_advice(self) -> str:
        """Advice if nothing answers there."""
        if self.local and urlsplit(self.url).port == OLLAMA_PORT:
            return "start Ollama with: ollama serve"
        return "is it running, and is base_url right?"

    def clean(self, text: str, limit: int = 300) -> str:
        """Foreign text as one line that is safe to show, with the key masked, which some endpoints repeat."""
        if len(self.key) >= MIN_SECRET:
            text = text.replace(self.key, MASK)
        return show_line(text.strip(), limit)


def check_endpoint(endpoint: ModelEndpoint, *, key_needed: bool) -> None:
    """Raise ModelKeyRefused for a missing or damaged key, and ModelRefused if it would travel unencrypted."""
    if key_needed and not endpoint.key:
        raise ModelKeyRefused(
            endpoint.entry, f'{endpoint.origin} wants an API key; set api_key = "${{…}}" in [models.{endpoint.entry}]'
        )
    if not (endpoint.key.isascii() and endpoint.key.isprintable()):
        raise ModelKeyRefused(endpoint.entry, "its key has characters that no key has; look at api_key")
    if endpoint.key and not endpoint.local and urlsplit(endpoint.url).scheme != "https":
        raise ModelRefused(
            endpoint.entry,
            f"its key would travel to {endpoint.origin} where anybody on the way can read it; use https in base_url, "
            "or leave api_key out",
        )


def joined(base: str, version: str, path: str) -> str:
    """``base``, ``version`` (such as ``/v1``) unless ``base`` ends in it, and ``path``.

    >>> joined("http://localhost:11434", "/v1", "/chat/completions")
    'http://localhost:11434/v1/chat/completions'
    """
    stem = base.rstrip("/")
    if stem.endswith(path):
        return stem
    return stem + path if urlsplit(stem).path.endswith(version) else stem + version + path
