from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.errors import CapabilityMissing
from mcphost.protocol.lifecycle.revisions import HANDSHAKE_REVISIONS, V2026_07_28, Revision
from mcphost.protocol.lifecycle.session import ClientMetadata, HandshakeRules, ModernRules
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
def test_the_progress_token_is_the_id_and_in_meta(
    revision: Revision, params: dict[str, Any] | None, stamped: dict[str, Any]
) -> None:
    rules = HandshakeRules(revision, {"tools": {}})
    assert rules.request(7, "tools/call", params, progress=True) == Request(7, "tools/call", stamped)
    assert rules.request(7, "tools/call", params, progress=False) == Request(7, "tools/call", params)


@pytest.mark.requirement("CAP-04", "LIFE-14")
def test_requests_beyond_the_servers_capabilities_are_not_sent(revision: Revision) -> None:
    with pytest.raises(CapabilityMissing, match=r"does not offer tools, which tools/call needs"):
        HandshakeRules(revision, {}).request(1, "tools/call", {}, progress=False)


@pytest.mark.requirement("CANC-02", "CANC-03")
def test_a_cancel_names_the_request_and_initialize_is_never_cancelled(revision: Revision) -> None:
    rules = HandshakeRules(revision, {})
    for request_id in (10, "10"):
        notice = rules.cancellation(Request(request_id, "tools/call"), "enough")
        assert notice == Notification("notifications/cancelled", {"requestId": request_id, "reason": "enough"})
    assert rules.cancellation(Request(1, "initialize"), "enough") is None


def modern_headers(method: str, **params: Any) -> Mapping[str, str]:
    rules = ModernRules(V2026_07_28, ClientMetadata({}, dict))
    return rules.headers(Request(1, method, params))


@pytest.mark.requirement("HDR-01", "HDR-02", "HDR-03", "HDR-09", "MOD-03")
@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "t"}, "t"),
        ("prompts/get", {"name": "p"}, "p"),
        ("resources/read", {"uri": "memo://x"}, "memo://x"),
        ("tasks/get", {"taskId": "ü"}, "=?base64?w7w=?="),
        ("tasks/update", {"taskId": "1"}, "1"),
        ("tasks/cancel", {"taskId": "1"}, "1"),
        ("tools/list", {"name": "t"}, None),
        ("skills/list", {}, None),
        ("skills/get", {"uri": "skill://git/SKILL.md"}, None),
        ("resources/directory/read", {"uri": "skill://git"}, None),
        ("completion/complete", {}, None),
        ("tools/call", {"name": 5}, None),
    ],
)
def test_modern_headers_repeat_the_method_and_the_name(
    revision: Revision, method: str, params: dict[str, Any], name: str | None
) -> None:
    expected = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    assert modern_headers(method, **params) == (expected if name is None else {**expected, "Mcp-Name": name})
    assert HandshakeRules(revision, {}).headers(Request(1, method, params)) == {}
