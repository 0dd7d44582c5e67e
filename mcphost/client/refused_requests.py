"""Says of a request that a modern server refused for how it was sent what was sent: its headers, or its capabilities.

Specification: 2026-07-28 basic/index (error codes -32020 and -32021).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, Final

from mcphost.errors import ClientCapabilityMissing, RequestRefused, ServerError
from mcphost.protocol.lifecycle.mirrors import mirrors_of
from mcphost.protocol.lifecycle.session import META_PREFIX, ModernRules, SessionRules
from mcphost.protocol.wire.jsonrpc import ErrorCode, Request

MOST_NAMED: Final = 20
"""Capabilities that a server may name as required."""


def with_what_was_sent(error: ServerError, request: Request, rules: SessionRules) -> ServerError:
    """The error with both sides of a disagreement, where it is one; else the error itself."""
    if not isinstance(rules, ModernRules):
        return error
    params = request.params or {}
    if error.code == ErrorCode.HEADER_MISMATCH and rules.own_stream:
        found = mirrors_of(rules.headers(request), {"method": request.method, "params": params})
        return RequestRefused(error, "; ".join(map(str, found)))
    if error.code == ErrorCode.MISSING_CLIENT_CAPABILITY:
        declared = params.get("_meta", {}).get(f"{META_PREFIX}clientCapabilities", {})
        sent = f"clientCapabilities: {', '.join(_names(declared)) or 'none'}"
        return ClientCapabilityMissing(error, sent, _missing(error.data, set(_names(declared))))
    return error


def _missing(data: object, declared: Set[str]) -> list[str]:
    """The capabilities that the server says it needs and that were not declared; all of them if all were."""
    required = data.get("requiredCapabilities") if isinstance(data, dict) else None
    needed = list(_names(required)) if isinstance(required, dict) else []
    missing = [name for name in needed if name not in declared]
    return (missing or needed)[:MOST_NAMED]


def _names(capabilities: Mapping[str, Any]) -> Iterator[str]:
    """The names of capabilities; in place of ``extensions`` their identifiers."""
    for name, value in capabilities.items():
        if name == "extensions" and isinstance(value, dict):
            yield from value
        else:
            yield name
