"""How the rules of an era show on the wire: stamping a request, spelling a cancel, what may be asked.

An era is a value, chosen once per connection. It decides; the client waits.

Specification: basic/lifecycle and utilities/cancellation of the handshake revisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcphost.errors import CapabilityMissing
from mcphost.protocol.eras.revisions import Revision, missing_capability
from mcphost.protocol.wire.jsonrpc import Notification, Request, RequestId

UNCANCELLABLE = frozenset({"initialize"})


@dataclass(frozen=True, slots=True)
class LegacyEra:
    """The handshake era: a session under one revision, with the capabilities that ``initialize`` settled."""

    revision: Revision
    capabilities: Mapping[str, Any]
    _lacking: dict[str, str | None] = field(default_factory=dict, compare=False, repr=False)
    """What was found out of a method before: a session's capabilities do not change."""

    def stamp(self, request_id: RequestId, method: str, params: Mapping[str, Any] | None, *, progress: bool) -> Request:
        """The request as this era writes it; where ``progress`` is wanted its token is the request's own id.

        Raises CapabilityMissing where the server did not offer what the method needs.
        """
        if method not in self._lacking:
            self._lacking[method] = missing_capability(method, self.capabilities, self.revision)
        if (lacking := self._lacking[method]) is not None:
            raise CapabilityMissing(method, lacking)
        return Request(request_id, method, with_progress_token(params, request_id) if progress else params)

    def spell_cancel(self, request: Request, reason: str) -> Notification | None:
        """The notice owed to the server when we stop waiting; None where none may be sent."""
        if request.method in UNCANCELLABLE:
            return None
        return Notification("notifications/cancelled", {"requestId": request.id, "reason": reason})


def with_progress_token(params: Mapping[str, Any] | None, token: RequestId) -> dict[str, Any]:
    """The parameters with ``_meta.progressToken`` set, and whatever else ``_meta`` held kept."""
    given = dict(params or {})
    given["_meta"] = {**given.get("_meta", {}), "progressToken": token}
    return given
