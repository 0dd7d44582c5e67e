from __future__ import annotations

from typing import Any

import pytest

from mcphost.errors import CapabilityMissing
from mcphost.protocol.lifecycle.revisions import HANDSHAKE_REVISIONS, Revision
from mcphost.protocol.lifecycle.session import HandshakeRules
from mcphost.protocol.wire.jsonrpc import Notification, Request

pytestmark = pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS, ids=lambda revision: revision.version)


@pytest.mark.requirement("PROG-02")
@pytest.mark.parametrize(
    ("params", "stamped"),
    [
        (None, {"_meta": {"progressToken": 7}}),
        ({"a": 1}, {"a": 1, "_meta": {"progressToken": 7}}),
        ({"_meta": {"b/c": 2}}, {"_meta": {"b/c": 2, "progressToken": 7}}),
    ],
)
def test_the_progress_token_is_the_id_and_stands_in_meta(
    revision: Revision, params: dict[str, Any] | None, stamped: dict[str, Any]
) -> None:
    rules = HandshakeRules(revision, {"tools": {}})
    assert rules.request(7, "tools/call", params, progress=True) == Request(7, "tools/call", stamped)
    assert rules.request(7, "tools/call", params, progress=False) == Request(7, "tools/call", params)


@pytest.mark.requirement("CAP-04", "LIFE-14")
def test_what_the_server_does_not_offer_is_never_written(revision: Revision) -> None:
    with pytest.raises(CapabilityMissing, match=r"does not offer tools, which tools/call needs"):
        HandshakeRules(revision, {}).request(1, "tools/call", {}, progress=False)


@pytest.mark.requirement("CANC-02", "CANC-03")
def test_a_cancel_names_the_request_and_initialize_is_never_cancelled(revision: Revision) -> None:
    rules = HandshakeRules(revision, {})
    for request_id in (10, "10"):
        notice = rules.cancellation(Request(request_id, "tools/call"), "enough")
        assert notice == Notification("notifications/cancelled", {"requestId": request_id, "reason": "enough"})
    assert rules.cancellation(Request(1, "initialize"), "enough") is None
