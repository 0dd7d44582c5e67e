"""Signs a person in at an identity provider, once for all servers of the identity, and renews that.

Specification: ext-auth, enterprise-managed authorization 3 and 7.5; OpenID Connect Core 1.0 and Discovery 1.0.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from mcphost.auth.addresses import checked_url
from mcphost.auth.flow.callback import authorization_url, read_code, s256
from mcphost.auth.flow.id_tokens import Expected, IdTokenClaims, Keys, published_keys, read_id_token
from mcphost.auth.flow.metadata import OPENID_PLACE, AuthorizationServer, read_document, read_issuer
from mcphost.auth.flow.steps import (
    JSON,
    AskConsent,
    Flow,
    HttpExchange,
    InThread,
    ListenForCallback,
    PendingAuthorization,
    StepUp,
    Unreachable,
    VisitAuthorizationPage,
)
from mcphost.auth.flow.token_endpoint import ClientAuthentication, TokenResponse, method_for, why_not_revoked
from mcphost.auth.flow.token_request import token_request
from mcphost.auth.ports import ClientOrigin, IdentitySettings, SignInPlan
from mcphost.auth.storage.credentials import ClientRegistration
from mcphost.auth.storage.identities import KeptIdentity, identity_item
from mcphost.errors import SignInFailed
from mcphost.lazy_dataclass import dataclass
from mcphost.net.origins import host_of
from mcphost.protocol.display import show_line

ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"
"""The type of the assertion that an identity provider makes for the authorization server of one MCP server."""


@dataclass(frozen=True, slots=True)
class IdentityProvider:
    """The metadata of an identity provider. Its endpoints are checked."""

    server: AuthorizationServer
    keys: str
    """The URL of the keys that sign its ID tokens; empty if it names none."""

    @property
    def token_endpoint(self) -> str:
        return self.server.token_endpoint


def find_provider(identity: IdentitySettings) -> Flow[IdentityProvider]:
    """The metadata, from the one place of OpenID Connect. Raises SignInFailed."""
    issuer = checked_url(f"issuer of identity {identity.name}", identity.issuer, identity.issuer)
    place = issuer.rstrip("/") + OPENID_PLACE
    title = f"Where does the identity provider {host_of(issuer)} sign in?"
    answer = yield HttpExchange(title, place, "metadata", {"Accept": JSON}, home=issuer)
    what = f"the metadata of the identity provider at {show_line(place, 200)}"
    if isinstance(answer, Unreachable):
        raise SignInFailed(f"{what} cannot be fetched: {answer.reason}")
    if answer.status != 200:
        raise SignInFailed(f"{what} cannot be fetched: HTTP {answer.status}; check identity.{identity.name}.issuer")
    document = read_document(what, answer)
    named = document.get("issuer")
    if named != issuer:
        shown = show_line(str(named), 120)
        raise SignInFailed(f"{what} is of issuer {shown!r}; if it is right, change identity.{identity.name}.issuer")
    server = read_issuer(answer, issuer, issuer, identity.client)
    keys = document.get("jwks_uri")
    types = document.get("identity_chaining_requested_token_types_supported")
    if isinstance(types, list) and ID_JAG not in types:
        raise SignInFailed(f"{host_of(issuer)} says that it makes no assertions for other authorization servers")
    return IdentityProvider(server, checked_url(f"jwks_uri of {host_of(issuer)}", keys, issuer) if keys else "")


def authentication(identity: IdentitySettings, provider: IdentityProvider) -> ClientAuthentication:
    """Authenticates mcphost at the identity provider, by the client that is registered there."""
    able = {"secret": bool(identity.client_secret), "key": bool(identity.private_key)}
    client = ClientRegistration(client_id=identity.client_id, method=method_for(provider.server.auth_methods, **able))
    return ClientAuthentication(client, identity.issuer, identity.client, home=identity.issuer)


def ask_for_identity(identity: IdentitySettings) -> Flow[None]:
    """Ask the person whether to sign in at the identity provider. Raises Declined."""
    provider = yield from find_provider(identity)
    plan = SignInPlan(
        server=identity_item(identity.name),
        url=identity.issuer,
        resource="",
        issuer=identity.issuer,
        authorization_endpoint=provider.server.authorization_endpoint,
        token_endpoint=provider.token_endpoint,
        registration_endpoint="",
        scopes=identity.scopes,
        scopes_from="your configuration",
        granted=(),
        client=ClientOrigin.CONFIGURED,
        client_id=identity.client_id,
        redirect_uri="",
        identity=identity.name,
        identity_issuer=identity.issuer,
    )
    yield AskConsent(plan)


def sign_in_identity(
    identity: IdentitySettings, before: KeptIdentity, step_up: StepUp, now: Callable[[], float]
) -> Flow[KeptIdentity]:
    """Let a person sign in in the browser. The access token of the answer is dropped."""
    provider = yield from find_provider(identity)
    page = checked_url("authorization_endpoint", provider.server.authorization_endpoint, identity.issuer)
    path, port = "/callback", identity.redirect_port
    redirect_uri = yield ListenForCallback(path, port, bool(port), identity.redirect_host)
    nonce = secrets.token_urlsafe(24)
    pending = PendingAuthorization(
        identity.issuer,
        secrets.token_urlsafe(24),
        secrets.token_urlsafe(48),
        redirect_uri,
        provider.server.sends_issuer,
        identity.client,
    )
    parameters = {
        "response_type": "code",
        "client_id": identity.client_id,
        "redirect_uri": redirect_uri,
        "scope": " ".join(identity.scopes),
        "state": pending.state,
        "nonce": nonce,
        "code_challenge": s256(pending.verifier),
        "code_challenge_method": "S256",
        **({"prompt": "consent"} if "offline_access" in identity.scopes else {}),
        **step_up.parameters,
    }
    callback = yield VisitAuthorizationPage(authorization_url(page, parameters), pending)
    keys = yield from _keys(provider, identity.issuer)
    form = {
        "grant_type": "authorization_code",
        "code": read_code(pending, callback),
        "redirect_uri": redirect_uri,
        "code_verifier": pending.verifier,
    }
    title = "Exchange the code for an ID token"
    tokens = yield from token_request(authentication(identity, provider), title, provider.token_endpoint, form, now)
    expected = Expected(identity.issuer, identity.client_id, nonce, max_age=step_up.max_age)
    claims = yield from _checked(tokens, keys, expected, now)
    if before.subject and before.subject != claims.subject:
        was, found = show_line(before.account, 60), show_line(claims.account, 60)
        raise SignInFailed(
            f"you signed in as {found!r}, and identity {identity.name} was {was!r}; to change to the other account, "
            f"sign out first: mcphost logout --identity {identity.name}"
        )
    return _with_tokens(before, tokens, claims, identity).model_copy(update={"signed_in_at": now()})


def renew_identity(identity: IdentitySettings, before: KeptIdentity, now: Callable[[], float]) -> Flow[KeptIdentity]:
    """Renew the ID token by the refresh token; providers may answer without an ID token.

    SignInFailed with code ``invalid_grant`` means that a person must sign in again.
    """
    provider = yield from find_provider(identity)
    keys = yield from _keys(provider, identity.issuer)
    form = {"grant_type": "refresh_token", "refresh_token": before.refresh_token, "scope": "openid"}
    title = "Renew the ID token"
    tokens = yield from token_request(authentication(identity, provider), title, provider.token_endpoint, form, now)
    if not tokens.id_token:
        return before.model_copy(update={"refresh_token": tokens.refresh_token or before.refresh_token})
    expected = Expected(identity.issuer, identity.client_id, subject=before.subject)
    claims = yield from _checked(tokens, keys, expected, now)
    return _with_tokens(before, tokens, claims, identity)


def revoke_identity(identity: IdentitySettings, kept: KeptIdentity, now: Callable[[], float]) -> Flow[str]:
    """Revoke the refresh token; return why that was not done, empty if it was. RFC 7009."""
    if not kept.refresh_token:
        return f"{host_of(kept.issuer)} gave no refresh token"
    provider = yield from find_provider(identity)
    if not provider.server.revocation_endpoint:
        return f"{host_of(kept.issuer)} does not offer it"
    form = {"token": kept.refresh_token, "token_type_hint": "refresh_token"}
    fetch = authentication(identity, provider).request(
        "Revoke the refresh token", provider.server.revocation_endpoint, form, now()
    )
    return why_not_revoked((yield fetch), fetch)


def _with_tokens(
    before: KeptIdentity, tokens: TokenResponse, claims: IdTokenClaims, identity: IdentitySettings
) -> KeptIdentity:
    return before.model_copy(
        update={
            "issuer": identity.issuer,
            "client_id": identity.client_id,
            "id_token": tokens.id_token,
            "refresh_token": tokens.refresh_token or before.refresh_token,
            "expires_at": claims.expires_at,
            "subject": claims.subject,
            "account": claims.account,
        }
    )


def _keys(provider: IdentityProvider, issuer: str) -> Flow[Keys]:
    """The keys of the provider. They come before the tokens: a new refresh token must not be lost for want of them."""
    if not provider.keys:
        raise SignInFailed(f"{host_of(issuer)} names no jwks_uri, so its ID token cannot be checked")
    title = f"With which keys does {host_of(issuer)} sign?"
    answer = yield HttpExchange(title, provider.keys, "metadata", {"Accept": JSON}, home=issuer)
    return published_keys(answer, issuer)


def _checked(tokens: TokenResponse, keys: Keys, expected: Expected, now: Callable[[], float]) -> Flow[IdTokenClaims]:
    # The first check imports cryptography, which takes 0.2 s.
    claims: IdTokenClaims = yield InThread(lambda: read_id_token(tokens.id_token, keys, expected, now()))
    return claims
