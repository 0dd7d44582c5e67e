"""The providers that an entry of ``[models]`` may name, and the example entry that screens and commands show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

HOSTED_PROVIDERS: Final[Mapping[str, str]] = {
    "anthropic": "",
    "openai": "with base_url for any compatible API",
    "ollama": "on this machine, without a key",
}
"""Providers that are asked over HTTP and need a ``model``, with how their entries differ from `EXAMPLE_ENTRY`.

The type of `ModelConfig.provider` and the classes of `mcphost.composition.models` have the same names.
"""

EXAMPLE_ENTRY: Final = """\
[models.claude]
provider = "anthropic"
model = "claude-sonnet-4-5"
api_key = "${ANTHROPIC_API_KEY}\""""

OTHER_PROVIDERS: Final = " or ".join(f'"{name}" ({note})' for name, note in HOSTED_PROVIDERS.items() if note)
