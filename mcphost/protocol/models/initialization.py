"""The results that open a session: a server's name, version, capabilities and instructions.

Specification: basic/lifecycle of every revision; 2026-07-28 server/discover.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import BeforeValidator, Field, ValidationInfo

from mcphost.protocol.models.base import Hint, Shown, Wire, add_remark


class Implementation(Wire):
    """The other side's name and version: a claim, never a reason for trust."""

    name: Shown[str] = ""
    version: Shown[str] = ""
    title: Hint[str] = None
    description: Hint[str] = None
    website_url: Hint[str] = None


SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
"""The ``_meta`` key of a modern server's name and version; it may be absent."""


_FEATURES: Final = frozenset({"completions", "logging", "prompts", "resources", "tasks", "tools"})
"""Capabilities of servers whose presence says that there is the feature."""

_MAPS: Final = frozenset({"experimental", "extensions"})
"""Capabilities that hold others."""


def _read_capabilities(declared: Any, info: ValidationInfo) -> Any:
    """The capabilities with an object for each feature that is there, as the specification has it.

    A feature that is null or false is absent. One that is anything else is there: ``true``, or PHP's empty list.
    """
    if not declared:
        if declared is not None and declared != {}:
            add_remark(info, "capabilities", declared)
        return {}
    if not isinstance(declared, dict):
        return declared
    plain: dict[str, Any] = {
        name: _declared(value, deep=name == "tasks") if name in _FEATURES else value
        for name, value in declared.items()
        if name not in _MAPS or isinstance(value, dict)
    }
    if "extensions" in plain:
        plain["extensions"] = {name: {} if value == [] else value for name, value in plain["extensions"].items()}
    if plain != declared and info.context is not None:
        info.context.append("capabilities that are not objects count as objects, and null and false as absent")
    return {name: value for name, value in plain.items() if value is not None}


def _declared(value: Any, *, deep: bool) -> dict[str, Any] | None:
    if value is None or value is False:
        return None
    if not isinstance(value, dict):
        return {}
    parts = {name: _declared(part, deep=True) for name, part in value.items()} if deep else value
    return {name: part for name, part in parts.items() if part is not None}


class InitializeResult(Wire):
    """The result of ``initialize``, or of ``server/discover`` in the same form."""

    protocol_version: str
    capabilities: Annotated[dict[str, Any], BeforeValidator(_read_capabilities)] = Field(default_factory=dict)
    server_info: Shown[Implementation] = Field(default_factory=Implementation)
    instructions: Hint[str] = None

    @classmethod
    def from_discovery(cls, version: str, result: Mapping[str, Any]) -> Self:
        """Read the result of ``server/discover``, after which ``version`` is spoken. Raises InvalidResult."""
        known = {key: result[key] for key in ("capabilities", "instructions") if key in result}
        meta = result.get("_meta")
        if isinstance(meta, dict) and SERVER_INFO in meta:
            known["serverInfo"] = meta[SERVER_INFO]
        return cls.read({"protocolVersion": version, **known})
