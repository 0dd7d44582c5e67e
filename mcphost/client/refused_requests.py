"""Says of a request that a modern server refused for how it was sent what was sent: its headers, or its capabilities.

Specification: 2026-07-28 basic/index (error codes -32020 and -32021).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
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
        return ClientCapabilityMissing(error, sent, _required(error.data))
    return error


def _required(data: object) -> list[str]:
    """The capabilities that the server says it needs."""
    required = data.get("requiredCapabilities") if isinstance(data, dict) else None
    return list(islice(_names(required), MOST_NAMED)) if isinstance(required, dict) else []


def _names(capabilities: Mapping[str, Any]) -> Iterator[str]:
    """The names of capabilities; in place of ``extensions`` their identifiers."""
    for name, value in capabilities.items():
        if name == "extensions" and isinstance(value, dict):
            yield from value
        else:
            yield name
