"""Chooses the flow of a server's grant."""

from __future__ import annotations

from collections.abc import Callable

from mcphost.auth.flow.discovered import SignInRequest
from mcphost.auth.flow.enterprise import sign_in_enterprise
from mcphost.auth.flow.oauth import sign_in, sign_in_machine
from mcphost.auth.flow.steps import Flow
from mcphost.auth.flow.workload import sign_in_workload
from mcphost.auth.ports import OAuthSettings
from mcphost.auth.storage.credentials import TokenGrant

GrantFlow = Callable[[SignInRequest, Callable[[], float]], Flow[TokenGrant]]


def flow_of(settings: OAuthSettings) -> GrantFlow:
    """The flow that obtains the first token, and each later one where `repeats` is true."""
    flows = {
        "client_credentials": sign_in_machine,
        "workload": sign_in_workload,
        "enterprise": sign_in_enterprise,
    }
    return flows.get(settings.grant, sign_in)


def repeats(settings: OAuthSettings) -> bool:
    """True if a new token comes from the same flow, and not from a refresh token."""
    return settings.grant != "authorization_code"
