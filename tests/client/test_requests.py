"""A request that a modern server refuses for how it was sent says what was sent."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.client.requests import with_what_was_sent
from mcphost.errors import ClientCapabilityMissing, RequestRefused, ServerError
from mcphost.protocol.lifecycle.revisions import HANDSHAKE_REVISIONS, V2026_07_28
from mcphost.protocol.lifecycle.session import ClientMetadata, HandshakeRules, ModernRules
from mcphost.protocol.wire.jsonrpc import Request

CAPABILITIES: dict[str, Any] = {"tools": {}}


def rules(**more: Any) -> ModernRules:
    return ModernRules(
        V2026_07_28, ClientMetadata({"name": "x"}, lambda: {"roots": {}}), capabilities=CAPABILITIES, **more
    )


def request(of: ModernRules) -> Request:
    return of.request(1, "tools/call", {"name": "écho"}, progress=False)


@pytest.mark.requirement("MOD-35")
def test_a_lost_header_is_reported_with_its_value_in_the_body() -> None:
    http = rules(own_stream=True)
    error = with_what_was_sent(ServerError(-32020, "Mcp-Name is missing", {"header": "Mcp-Name"}), request(http), http)
    assert isinstance(error, RequestRefused)
    assert error.code == -32020
    assert str(error) == (
        'Mcp-Name is missing (-32020), with {"header": "Mcp-Name"}; mcphost sent '
        "MCP-Protocol-Version: 2026-07-28 = params._meta protocolVersion; Mcp-Method: tools/call = method; "
        "Mcp-Name: écho = params.name"
    )


@pytest.mark.requirement("MOD-35")
def test_a_missing_capability_is_reported_with_the_declared_ones() -> None:
    stdio = rules()
    data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
    error = with_what_was_sent(ServerError(-32021, "no", data), request(stdio), stdio)
    assert str(error) == (
        'no (-32021), with {"requiredCapabilities": {"sampling": {}}}; mcphost sent clientCapabilities: roots'
    )


@pytest.mark.parametrize("code", [-32020, -32602])
def test_other_errors_and_those_of_older_servers_stay_as_they_are(code: int) -> None:
    old, error = HandshakeRules(HANDSHAKE_REVISIONS[-1], CAPABILITIES), ServerError(code, "no")
    assert with_what_was_sent(error, Request(1, "tools/call", {}), old) is error
    assert with_what_was_sent(error, request(rules()), rules()) is error


@pytest.mark.requirement("MOD-35", "XTASK-06")
@pytest.mark.parametrize(
    ("data", "names"),
    [
        ({"requiredCapabilities": {"extensions": {"a/b": {}, "c/d": {}}, "roots": {}}}, ("a/b", "c/d")),
        ({"requiredCapabilities": {"roots": {}}}, ("roots",)),
        ({"requiredCapabilities": {"extensions": []}}, ("extensions",)),
        ({"requiredCapabilities": {str(number): {} for number in range(1000)}}, tuple(map(str, range(20)))),
        ({"requiredCapabilities": ["roots"]}, ()),
        ({}, ()),
        ("roots", ()),
        (None, ()),
    ],
)
def test_what_a_server_requires_is_named_whatever_it_says(data: Any, names: tuple[str, ...]) -> None:
    error = with_what_was_sent(ServerError(-32021, "no", data), request(rules()), rules())
    assert isinstance(error, ClientCapabilityMissing)
    assert error.required == names
