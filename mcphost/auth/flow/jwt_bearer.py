"""The jwt-bearer grant: a JWT of another party in exchange for an access token.

Specification: RFC 7523 section 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from mcphost.auth.flow.discovered import DiscoveredServer, grant_of, scope_form
from mcphost.auth.flow.metadata import AuthorizationServer, canonical
from mcphost.auth.flow.steps import Flow, HttpAnswer, HttpExchange, Unreachable
from mcphost.auth.flow.token_endpoint import ClientAuthentication, TokenResponse, read_tokens
from mcphost.auth.flow.token_request import token_request
from mcphost.auth.storage.credentials import ClientRegistration, TokenGrant
from mcphost.errors import SignInFailed
from mcphost.net.origins import host_of, origin_of
from mcphost.protocol.display import show_line

JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"

_BUSY: Final = (408, 425, 429)
_NOT_THE_JWT: Final = (
    "use_dpop_nonce", "invalid_dpop_proof", "temporarily_unavailable", "server_error", "slow_down",
)  # fmt: skip
"""Error codes that say nothing of the JWT."""


class AssertionRefused(SignInFailed):
    """The authorization server does not take the assertion; the same one again would be refused again."""


def check_jwt_bearer(issuer: AuthorizationServer) -> None:
    """Raise SignInFailed if the authorization server lists its grants without jwt-bearer."""
    if issuer.grants is not None and JWT_BEARER not in issuer.grants:
        raise SignInFailed(
            f"{host_of(issuer.issuer)} lists the grants that it takes, and jwt-bearer is not among them; nothing was "
            "sent to it: ask whoever runs it to allow that grant"
        )


def check_endpoint(found: DiscoveredServer, what: str) -> None:
    """Raise SignInFailed if the token endpoint is not one of the authorization server; ``what`` would go there."""
    issuer, settings = found.issuer, found.request.settings
    endpoint, host = issuer.token_endpoint, host_of(issuer.issuer)
    if not issuer.announced:
        raise SignInFailed(f"{host} publishes no metadata, and a {what} is not sent to a place that is only guessed")
    if canonical(endpoint) == canonical(found.request.url):
        raise SignInFailed(f"{host} names the MCP server itself as its token endpoint, which must not get the {what}")
    if origin_of(endpoint) != origin_of(issuer.issuer) and endpoint != settings.token_endpoint:
        shown = show_line(endpoint, 300)
        raise SignInFailed(
            f"{host} wants the {what} sent to another origin, {shown}; nothing was sent: if that is right, set "
            f'oauth.token_endpoint = "{shown}"'
        )


def jwt_bearer(
    found: DiscoveredServer,
    client: ClientRegistration,
    assertion: str,
    scopes: tuple[str, ...],
    now: Callable[[], float],
    title: str,
) -> Flow[TokenGrant]:
    """Ask for a token by ``assertion``; each later one takes another assertion, and no refresh token is used.

    Raises SignInFailed, and AssertionRefused.
    """
    issuer = found.issuer
    check_jwt_bearer(issuer)
    authentication = ClientAuthentication(client, issuer.issuer, found.request.settings)
    form = {"grant_type": JWT_BEARER, "assertion": assertion, "resource": found.resource, **scope_form(scopes)}
    endpoint, prover = issuer.token_endpoint, found.prover
    tokens = yield from token_request(authentication, title, endpoint, form, now, prover, read=_read)
    return grant_of(found, client, replace(tokens, refresh_token=""), scopes, now())


def _read(answer: HttpAnswer | Unreachable, fetch: HttpExchange) -> TokenResponse:
    try:
        return read_tokens(answer, fetch)
    except SignInFailed as error:
        answered = isinstance(answer, HttpAnswer) and 400 <= answer.status < 500 and answer.status not in _BUSY
        if (answered or error.code) and error.code not in _NOT_THE_JWT:
            raise AssertionRefused(str(error), code=error.code) from None
        raise
