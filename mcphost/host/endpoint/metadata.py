"""The ``_meta`` of agents that servers get: what their own definitions know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcphost.json_values import as_dict

_TRACE: Final = frozenset({"traceparent", "tracestate", "baggage"})
"""Keys of the specification with which requests are followed through several programs."""

_AGENTS: Final = ("anthropic", "claudecode", "codex", "cursor", "openai", "vscode", "x-codex")
"""Namespaces of agents: what they write there is about the user, whatever a server's definition holds."""


def to_server(meta: Mapping[str, Any], definition: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a request's ``_meta`` that a server gets, by the definition of the item that is asked for."""
    own = {_namespace(key) for key in as_dict(definition.get("_meta"))} - {""}
    return {key: value for key, value in meta.items() if key in _TRACE or _namespace(key) in own}


def _namespace(key: str) -> str:
    """The prefix of a key; empty if it has none, or one that is not the server's."""
    prefix, slash, _ = key.rpartition("/")
    labels = prefix.split(".")
    foreign = "mcp" in labels or "modelcontextprotocol" in labels or any(each in _AGENTS for each in labels)
    return prefix if slash and not foreign else ""
