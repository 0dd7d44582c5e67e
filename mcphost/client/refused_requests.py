"""Says of a request that a modern server refused for how it was sent what was sent: its headers, or its capabilities.

Specification: 2026-07-28 basic/index (error codes -32020 and -32021).
"""

from __future__ import annotations

from mcphost.errors import RequestRefused, ServerError
from mcphost.protocol.lifecycle.mirrors import mirrors_of
from mcphost.protocol.lifecycle.session import META_PREFIX, ModernRules, SessionRules
from mcphost.protocol.wire.jsonrpc import ErrorCode, Request


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
        return RequestRefused(error, f"clientCapabilities: {', '.join(declared) or 'none'}")
    return error
