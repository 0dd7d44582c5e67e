"""The sign-in flow: which step comes next, given the outcome of the last one.

Specification: authorization, of 2025-03-26 to 2025-11-25, with the checks that 2026-07-28 adds.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import httpx

from mcphost.auth.addresses import checked_url
from mcphost.auth.dpop import Nonces, Prover
from mcphost.auth.flow.callback import authorization_url, read_code, s256
from mcphost.auth.flow.discovered import (
    OFFLINE,
    DiscoveredServer,
    SignInRequest,
    check_same_issuer,
    find,
    grant_of,
    kept_bound,
    scope_form,
    warnings_of,
)
from mcphost.auth.flow.metadata import (
    AuthorizationServer,
)
from mcphost.auth.flow.registration import given_client, origin_for, register
from mcphost.auth.flow.steps import AskConsent, Flow, ListenForCallback, PendingAuthorization, VisitAuthorizationPage
from mcphost.auth.flow.token_endpoint import (
    ClientAuthentication,
    TokenResponse,
    method_for,
    why_not_revoked,
)
from mcphost.auth.flow.token_request import token_request
from mcphost.auth.ports import ClientOrigin, OAuthSettings, SignInConsent, SignInPlan
from mcphost.auth.storage.credentials import ClientRegistration, TokenGrant
from mcphost.errors import SignInFailed
from mcphost.net.origins import host_of

MACHINE_TITLE: Final = "Ask for a token for this program"


def sign_in(request: SignInRequest, now: Callable[[], float]) -> Flow[TokenGrant]:
    """Sign a person in through a browser. ``now`` gives seconds since 1970."""
    found = yield from find(request)
    issuer = found.issuer
    checked_url("authorization_endpoint", issuer.authorization_endpoint, request.url)
    _check_pkce(issuer, request.settings)
    client = _known_client(request, issuer)
    origin = origin_for(request.settings, issuer, client)
    if origin is ClientOrigin.CONFIGURED:
        check_same_issuer(request, issuer)
    redirect_uri = yield _listen_for_callback(origin, request.settings, issuer, client)
    if origin is ClientOrigin.KNOWN and client is not None and client.redirect_uri != redirect_uri:
        client, origin = None, origin_for(request.settings, issuer, None)
    plan = _plan(found, origin, client, redirect_uri)
    choice, client = yield from _agree(plan, found, client)
    tokens = yield from _authorize(found, client, redirect_uri, choice.scopes, now)
    return grant_of(found, client, tokens, choice.scopes, now()).model_copy(update={"signed_in_at": now()})


def sign_in_machine(request: SignInRequest, now: Callable[[], float]) -> Flow[TokenGrant]:
    """Sign this program in by its own secret or key (client credentials grant), without asking a person."""
    found = kept_bound((yield from find(request)))
    settings, issuer = request.settings, found.issuer
    if not settings.client_id:
        raise SignInFailed('grant = "client_credentials" needs oauth.client_id')
    check_same_issuer(request, issuer)
    method = method_for(issuer.auth_methods, secret=bool(settings.client_secret), key=bool(settings.private_key))
    client = ClientRegistration(client_id=settings.client_id, method=method)
    scopes, _ = found.scopes()
    scopes = tuple(scope for scope in scopes if scope != OFFLINE)
    form = {"grant_type": "client_credentials", "resource": found.resource, **scope_form(scopes)}
    authentication = ClientAuthentication(client, issuer.issuer, settings)
    tokens = yield from token_request(authentication, MACHINE_TITLE, issuer.token_endpoint, form, now, found.prover)
    return grant_of(found, client, tokens, scopes, now())


def refresh(
    grant: TokenGrant, settings: OAuthSettings, now: Callable[[], float], nonces: Nonces | None = None
) -> Flow[TokenGrant]:
    """Renew a token. SignInFailed with code ``invalid_grant`` means that a person must sign in again."""
    authentication = ClientAuthentication(grant.client, grant.issuer, settings)
    form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token, "resource": grant.resource}
    required = settings.dpop == "require" or grant.bound
    prover = None if grant.key is None else Prover(grant.key, nonces or Nonces(), "issuer", required)
    tokens = yield from token_request(authentication, "Renew the token", grant.token_endpoint, form, now, prover)
    return grant.model_copy(
        update={
            "access_token": tokens.access_token,
            "token_type": tokens.token_type,
            "refresh_token": tokens.refresh_token or grant.refresh_token,
            "expires_at": None if tokens.lifetime is None else now() + tokens.lifetime,
            "lifetime": tokens.lifetime,
            "scopes": grant.scopes if tokens.scopes is None else tokens.scopes,
        }
    )


def revoke(grant: TokenGrant, settings: OAuthSettings, now: Callable[[], float]) -> Flow[str]:
    """Revoke a grant at its authorization server; return why that was not done, empty if it was. RFC 7009."""
    if not grant.revocation_endpoint:
        return f"{host_of(grant.issuer)} does not offer it"
    token, kind = (
        (grant.refresh_token, "refresh_token") if grant.refresh_token else (grant.access_token, "access_token")
    )
    authentication = ClientAuthentication(grant.client, grant.issuer, settings)
    form = {"token": token, "token_type_hint": kind}
    fetch = authentication.request("Revoke the token", grant.revocation_endpoint, form, now())
    return why_not_revoked((yield fetch), fetch)


def _check_pkce(issuer: AuthorizationServer, settings: OAuthSettings) -> None:
    methods = issuer.challenge_methods
    if not issuer.announced or settings.without_pkce_metadata or (methods is not None and "S256" in methods):
        return
    says = "checks PKCE, but not by S256"
    if not methods:
        says = "does not say that it checks PKCE" if methods is None else "names no PKCE method"
    if issuer.odd_challenge_methods:
        says = "gives its PKCE methods not as a list"
    raise SignInFailed(
        f"{host_of(issuer.issuer)} {says}, so a stolen code could be used; if you trust it all the same, set "
        "oauth.without_pkce_metadata = true for this server"
    )


def _known_client(request: SignInRequest, issuer: AuthorizationServer) -> ClientRegistration | None:
    """The earlier registration, unless the configured redirect host or port differs from it."""
    client, settings = request.known.clients.get(issuer.issuer), request.settings
    if client is None:
        return None
    back = httpx.URL(client.redirect_uri)
    return client if back.host == settings.redirect_host and settings.redirect_port in (0, back.port) else None


def _listen_for_callback(
    origin: ClientOrigin, settings: OAuthSettings, issuer: AuthorizationServer, client: ClientRegistration | None
) -> ListenForCallback:
    """Listen at the registered redirect URI; for a new registration, at a path of its own for this issuer."""
    if origin is ClientOrigin.KNOWN and client is not None:
        registered = httpx.URL(client.redirect_uri)
        return ListenForCallback(registered.path or "/callback", registered.port or 0, False, registered.host)
    if origin is ClientOrigin.REGISTER:
        path = f"/callback/{hashlib.sha256(issuer.issuer.encode()).hexdigest()[:12]}"
    else:
        path = "/callback"
    return ListenForCallback(path, settings.redirect_port, bool(settings.redirect_port), settings.redirect_host)


def _agree(
    plan: SignInPlan, found: DiscoveredServer, client: ClientRegistration | None
) -> Flow[tuple[SignInConsent, ClientRegistration]]:
    """Ask for consent and return it with the client; after a refused registration ask for a client id."""
    settings, issuer = found.request.settings, found.issuer
    bound = found.prover is not None and found.prover.required
    while True:
        choice: SignInConsent = yield AskConsent(plan)
        choice = replace(choice, scopes=tuple(scope for scope in choice.scopes if scope in plan.scopes))
        if plan.client is ClientOrigin.KNOWN and client is not None:
            return choice, client
        if plan.client is not ClientOrigin.REGISTER:
            return choice, given_client(plan.client, settings, issuer, choice, plan.redirect_uri)
        try:
            return choice, (yield from register(issuer, plan.redirect_uri, bound=bound))
        except SignInFailed as error:
            if not error.code:
                raise
            plan = replace(plan, client=ClientOrigin.ASKED, problem=str(error))


def _plan(
    found: DiscoveredServer, origin: ClientOrigin, client: ClientRegistration | None, redirect_uri: str
) -> SignInPlan:
    request, issuer = found.request, found.issuer
    scopes, scopes_from = found.scopes()
    held = found.before
    ids = {
        ClientOrigin.CONFIGURED: request.settings.client_id,
        ClientOrigin.DOCUMENT: request.settings.client_metadata_url,
    }
    return SignInPlan(
        server=request.server,
        url=request.url,
        resource=found.resource,
        issuer=issuer.issuer,
        authorization_endpoint=issuer.authorization_endpoint,
        token_endpoint=issuer.token_endpoint,
        registration_endpoint=issuer.registration_endpoint,
        scopes=scopes,
        scopes_from=scopes_from,
        granted=held.scopes if held else (),
        client=origin,
        client_id=ids.get(origin, client.client_id if client and origin is ClientOrigin.KNOWN else ""),
        redirect_uri=redirect_uri,
        warnings=(*warnings_of(found), *_pkce_warnings(found.issuer)),
        bound=found.prover is not None,
    )


def _pkce_warnings(issuer: AuthorizationServer) -> Iterable[str]:
    if issuer.announced and "S256" not in (issuer.challenge_methods or ()):
        yield "it does not say that it checks PKCE; your configuration allows that"


def _authorize(
    found: DiscoveredServer,
    client: ClientRegistration,
    redirect_uri: str,
    scopes: tuple[str, ...],
    now: Callable[[], float],
) -> Flow[TokenResponse]:
    issuer, settings = found.issuer, found.request.settings
    pending = PendingAuthorization(
        issuer.issuer, secrets.token_urlsafe(24), secrets.token_urlsafe(48), redirect_uri, issuer.sends_issuer, settings
    )
    parameters = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "code_challenge": s256(pending.verifier),
        "code_challenge_method": "S256",
        "state": pending.state,
        "resource": found.resource,
        **scope_form(scopes),
        **({} if found.prover is None else {"dpop_jkt": found.prover.key.thumbprint}),
        **({"prompt": "consent"} if OFFLINE in scopes else {}),
    }
    callback = yield VisitAuthorizationPage(authorization_url(issuer.authorization_endpoint, parameters), pending)
    form = {
        "grant_type": "authorization_code",
        "code": read_code(pending, callback),
        "redirect_uri": redirect_uri,
        "code_verifier": pending.verifier,
        "resource": found.resource,
    }
    authentication = ClientAuthentication(client, issuer.issuer, settings)
    title = "Exchange the code for a token"
    return (yield from token_request(authentication, title, issuer.token_endpoint, form, now, found.prover))
