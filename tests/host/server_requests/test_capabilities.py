"""The extensions that are declared to a server."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.config import ServerConfig
from mcphost.host.server_requests.service import declared_extensions
from mcphost.protocol.extensions import DPOP_EXTENSION, WORKLOAD_EXTENSION
from mcphost.protocol.lifecycle.capabilities import ClientCapabilities
from mcphost.protocol.lifecycle.revisions import V2025_11_25

WORKLOAD = {"grant": "workload", "issuer": "https://as", "assertion": {"file": "/token"}}


@pytest.mark.parametrize(
    ("oauth", "declared"),
    [
        ({}, set()),
        ({"dpop": "require"}, {DPOP_EXTENSION}),
        (WORKLOAD, {WORKLOAD_EXTENSION}),
        ({**WORKLOAD, "dpop": "require"}, {DPOP_EXTENSION, WORKLOAD_EXTENSION}),
        ({"dpop": "require", "enabled": False}, set()),
    ],
)
def test_the_extensions_of_a_sign_in_are_declared_where_configured(oauth: Any, declared: set[str]) -> None:
    config = ServerConfig.model_validate({"url": "https://h/mcp", "oauth": oauth})
    found = ClientCapabilities(extensions=frozenset(declared_extensions(config)))
    assert {*found.under(V2025_11_25).get("extensions", {})} == declared
