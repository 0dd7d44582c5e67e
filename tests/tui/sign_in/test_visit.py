"""The panel while mcphost waits for the browser."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.auth.ports import AuthorizationLink, ClientOrigin, SignInPlan
from mcphost.errors import AuthorizationRequired
from mcphost.host.sign_in.service import SignIn
from mcphost.tui.sign_in.visit import visit_facts


@pytest.mark.parametrize("client", ClientOrigin)
def test_a_known_client_is_advised_to_sign_out(client: ClientOrigin) -> None:
    service: Any = None
    sign_in = SignIn(1, "web", AuthorizationRequired("Bearer"), service)
    places = ("https://as.example",) * 6
    sign_in.plan = SignInPlan("web", *places, (), "nobody", (), client, "c", "http://127.0.0.1:9/callback")
    facts = visit_facts(sign_in, AuthorizationLink("https://as.example/a", "http://127.0.0.1:9/callback", 300.0), 300.0)
    text = "\n".join(f"{fact.label} {fact.value}" for fact in facts)
    assert ("sign out of this server, and sign in again" in text) is (client is ClientOrigin.KNOWN)
