"""Where a model is, and whether it may be asked there.

Knows addresses and keys. Refuses to let a key travel where others can read it, and to show it anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from mcphost.errors import ModelKeyRefused, ModelRefused
from mcphost.protocol.display import show_line
from mcphost.protocol.urls import is_loopback
from mcphost.redaction import MASK, MIN_SECRET

OLLAMA_PORT: Final = 11434
"""Where Ollama listens unless told otherwise, and hardly anything else does."""


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """One entry's address and key."""

    entry: str
    """Its name in the configuration."""
    url: str = field(repr=False)
    """Where requests go."""
    key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request; the key is in one of them."""

    @property
    def origin(self) -> str:
        """Its scheme, host and port: all of the address that is shown."""
        parts = urlsplit(self.url)
        return show_line(f"{parts.scheme}://{parts.netloc}", 120)

    @property
    def local(self) -> bool:
        """Is it on this machine?"""
        return is_loopback(urlsplit(self.url).hostname or "")

    @property
    def starting(self) -> str:
        """What to do where nobody answers there."""
        if self.local and urlsplit(self.url).port == OLLAMA_PORT:
            return "start Ollama with: ollama serve"
        return "is it running, and is base_url right?"

    def clean(self, text: str, limit: int = 300) -> str:
        """Foreign text on one line, safe to show, and without the key, which some endpoints repeat."""
        if len(self.key) >= MIN_SECRET:
            text = text.replace(self.key, MASK)
        return show_line(text.strip(), limit)


def checked(endpoint: ModelEndpoint, *, key_needed: bool, plain: bool) -> ModelEndpoint:
    """The endpoint, if it may be asked. ``plain``: the user accepts that a key travels unencrypted.

    Raises ModelKeyRefused or ModelRefused before anything is sent.
    """
    if key_needed and not endpoint.key:
        raise ModelKeyRefused(
            endpoint.entry, f'{endpoint.origin} wants an API key; set api_key = "${{…}}" in [models.{endpoint.entry}]'
        )
    if not (endpoint.key.isascii() and endpoint.key.isprintable()):
        raise ModelKeyRefused(endpoint.entry, "its key has characters that no key has; look at api_key")
    if endpoint.key and not plain and not endpoint.local and urlsplit(endpoint.url).scheme != "https":
        raise ModelRefused(
            endpoint.entry,
            f"its key would travel to {endpoint.origin} where anybody on the way can read it; use https in base_url, "
            "or leave api_key out",
        )
    return endpoint


def joined(base: str, version: str, path: str) -> str:
    """``base`` with ``version`` (``/v1``) after it where it has none, and then ``path``.

    >>> joined("http://localhost:11434", "/v1", "/chat/completions")
    'http://localhost:11434/v1/chat/completions'
    """
    stem = base.rstrip("/")
    if stem.endswith(path):
        return stem
    return stem + path if urlsplit(stem).path.endswith(version) else stem + version + path
