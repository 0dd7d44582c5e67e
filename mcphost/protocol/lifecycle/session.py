"""Writes requests and their cancellations as the session's revision and capabilities demand.

Specification: basic/lifecycle, basic/utilities/cancellation and progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcphost.errors import CapabilityMissing
from mcphost.protocol.lifecycle.revisions import Revision, missing_capability
from mcphost.protocol.wire.jsonrpc import Notification, Request, RequestId

UNCANCELLABLE = frozenset({"initialize"})


@dataclass(frozen=True, slots=True)
class SessionRules:
    """The rules of one session: its revision, and the server's capabilities."""

    revision: Revision
    capabilities: Mapping[str, Any]
    _lacking: dict[str, str | None] = field(default_factory=dict, compare=False, repr=False)
    """The missing capability by method: a cache, since the capabilities of a session do not change."""

    def request(
        self, request_id: RequestId, method: str, params: Mapping[str, Any] | None, *, progress: bool
    ) -> Request:
        """The request to send; with ``progress``, its id is also its progress token.

        Raises CapabilityMissing if the server does not offer what the method needs.
        """
        if method not in self._lacking:
            self._lacking[method] = missing_capability(method, self.capabilities, self.revision)
        if (lacking := self._lacking[method]) is not None:
            raise CapabilityMissing(method, lacking)
        return Request(request_id, method, with_progress_token(params, request_id) if progress else params)

    def cancellation(self, request: Request, reason: str) -> Notification | None:
        """The cancellation of a request that is no longer awaited; None if none may be sent."""
        if request.method in UNCANCELLABLE:
            return None
        return Notification("notifications/cancelled", {"requestId": request.id, "reason": reason})


def with_progress_token(params: Mapping[str, Any] | None, token: RequestId) -> dict[str, Any]:
    """The params with ``_meta.progressToken`` set and the rest of ``_meta`` kept."""
    given = dict(params or {})
    given["_meta"] = {**given.get("_meta", {}), "progressToken": token}
    return given
