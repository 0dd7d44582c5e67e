"""What a server says of itself when a session is opened.

Specification: basic/lifecycle of every revision; 2026-07-28 server/discover.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from pydantic import Field

from mcphost.errors import InvalidResult
from mcphost.protocol.models.base import Wire


class Implementation(Wire):
    """The other side's name and version: a claim, never a reason for trust."""

    name: str = ""
    version: str = ""
    title: str | None = None
    description: str | None = None
    website_url: str | None = None


SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
"""The ``_meta`` key of a modern server's name and version; it may be absent."""


class InitializeResult(Wire):
    """The result of ``initialize``, or of ``server/discover`` in the same form."""

    protocol_version: str
    capabilities: dict[str, Any] = Field(default_factory=dict)
    server_info: Implementation = Field(default_factory=Implementation)
    instructions: str | None = None

    @classmethod
    def from_discovery(cls, version: str, result: Mapping[str, Any]) -> Self:
        """Read the result of ``server/discover``, after which ``version`` is spoken. Raises InvalidResult."""
        known = {key: result[key] for key in ("capabilities", "instructions") if key in result}
        return cls.read({"protocolVersion": version, **known, "serverInfo": _server_info(result)})


def _server_info(result: Mapping[str, Any]) -> object:
    """The server's name and version; empty where they are missing or unreadable, since they are only shown."""
    meta = result.get("_meta")
    info = meta.get(SERVER_INFO) if isinstance(meta, dict) else None
    try:
        Implementation.read(info)
    except InvalidResult:
        return {}
    return info
