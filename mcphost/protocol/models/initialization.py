"""The result of the ``initialize`` request.

Specification: basic/lifecycle of every revision.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from mcphost.protocol.models.base import Wire


class Implementation(Wire):
    """The other side's name and version: a claim, never a reason for trust."""

    name: str = ""
    version: str = ""
    title: str | None = None
    description: str | None = None
    website_url: str | None = None


class InitializeResult(Wire):
    """The result of ``initialize``."""

    protocol_version: str
    capabilities: dict[str, Any] = Field(default_factory=dict)
    server_info: Implementation = Field(default_factory=Implementation)
    instructions: str | None = None
