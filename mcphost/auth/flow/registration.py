"""Obtains a client id: configured, by a metadata document, by dynamic registration, or from the person.

Specification: authorization, client registration; RFC 7591; OAuth Client ID Metadata Documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeGuard

import httpx

from mcphost.auth.flow.metadata import AuthorizationServer, read_document
from mcphost.auth.flow.steps import JSON, Flow, HttpExchange, Unreachable
from mcphost.auth.flow.token_endpoint import has_error, method_for, refusal
from mcphost.auth.masking import quoted, secrets_of
from mcphost.auth.ports import ClientOrigin, OAuthSettings, SignInConsent
from mcphost.auth.storage.credentials import AuthMethod, ClientRegistration
from mcphost.errors import SignInFailed
from mcphost.net.origins import host_of

NAME: Final = "mcphost"
LONGEST_ID: Final = 4096
"""Characters of a client id or secret; some servers encode the whole registration in the id."""

LOCALHOST_ADVICE: Final = 'to come back to http://localhost instead, set oauth.redirect_host = "localhost"'

_OWN_METHODS: Final[tuple[AuthMethod, ...]] = ("none", "client_secret_basic", "client_secret_post")


def origin_for(settings: OAuthSettings, issuer: AuthorizationServer, known: ClientRegistration | None) -> ClientOrigin:
    """The first possible origin in the specification's order. Raises SignInFailed if the configured one is not."""
    if settings.client_id:
        return ClientOrigin.CONFIGURED
    registration = settings.registration
    if registration in ("auto", "cimd") and settings.client_metadata_url and issuer.takes_documents:
        return ClientOrigin.DOCUMENT
    if registration == "cimd":
        why = "does not take client metadata documents" if settings.client_metadata_url else "needs client_metadata_url"
        raise SignInFailed(f'registration = "cimd" {why}')
    if known is not None:
        return ClientOrigin.KNOWN
    return ClientOrigin.REGISTER if issuer.registration_endpoint else ClientOrigin.ASKED


def given_client(
    origin: ClientOrigin, settings: OAuthSettings, issuer: AuthorizationServer, choice: SignInConsent, redirect_uri: str
) -> ClientRegistration:
    """The client of the configuration, of the metadata document, or as the person entered it."""
    if origin is ClientOrigin.DOCUMENT:
        method = method_for(issuer.auth_methods, secret=False, key=bool(settings.private_key))
        return ClientRegistration(client_id=settings.client_metadata_url, method=method, redirect_uri=redirect_uri)
    entered = origin is ClientOrigin.ASKED
    client_id = choice.client_id if entered else settings.client_id
    secret = choice.client_secret if entered else settings.client_secret
    if not client_id:
        raise SignInFailed("a client id is needed, and none was given")
    method = method_for(issuer.auth_methods, secret=bool(secret), key=bool(settings.private_key) and not entered)
    kept_secret = secret if entered else ""
    return ClientRegistration(
        client_id=client_id, client_secret=kept_secret, method=method, redirect_uri=redirect_uri, kept=entered
    )


def register(issuer: AuthorizationServer, redirect_uri: str, *, bound: bool = False) -> Flow[ClientRegistration]:
    """Register dynamically; ``bound``: for tokens that are bound to a key. Raises SignInFailed with the reason."""
    body = client_document(redirect_uri, _own_method(issuer)) | ({"dpop_bound_access_tokens": True} if bound else {})
    fetch = HttpExchange("Register mcphost", issuer.registration_endpoint, "registration", {"Accept": JSON}, body)
    answer = yield fetch
    host = host_of(issuer.registration_endpoint)
    if isinstance(answer, Unreachable):
        raise SignInFailed(f"{host} cannot be reached to register: {answer.reason}")
    try:
        document = read_document(f"the registration answer of {host} (HTTP {answer.status})", answer, secret=True)
    except SignInFailed:
        if answer.status in (200, 201):
            raise
        document = {}
    if answer.status not in (200, 201) or has_error(document):
        error = refusal(document, answer.status, f"to register mcphost with {redirect_uri}", fetch)
        hint = f"; {LOCALHOST_ADVICE}" if error.code in _REDIRECT_ERRORS and "127.0.0.1" in redirect_uri else ""
        raise SignInFailed(f"{error}{hint}", code=error.code or "refused")
    return _registered(document, fetch, redirect_uri)


_REDIRECT_ERRORS: Final = ("invalid_redirect_uri", "invalid_client_metadata")


def client_document(redirect_uri: str, method: AuthMethod) -> dict[str, Any]:
    """The registration of mcphost. It names no scope, since that would be the most it may ever request."""
    return {
        "client_name": NAME,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native",
    }


def hosted_document(url: str, redirect_uri: str) -> dict[str, Any]:
    """The document to publish at ``url``, so that ``url`` can serve as client id."""
    return {"client_id": url, **client_document(redirect_uri, "none")}


def portless(redirect_uri: str) -> str:
    """The loopback redirect URI without its port, which authorization servers ignore. RFC 8252 section 7.3."""
    return str(httpx.URL(redirect_uri).copy_with(port=None))


def _own_method(issuer: AuthorizationServer) -> AuthMethod:
    offered = issuer.auth_methods or _OWN_METHODS
    return next((method for method in _OWN_METHODS if method in offered), "none")


def _registered(document: Mapping[str, Any], fetch: HttpExchange, redirect_uri: str) -> ClientRegistration:
    host = host_of(fetch.url)
    client_id, secret = document.get("client_id"), document.get("client_secret") or ""
    if client_id is not None and not isinstance(client_id, str):
        raise SignInFailed(f"{host} registered mcphost under a client id that is not a text: not used")
    if not _sound(client_id) or (secret and not _sound(secret)):
        raise SignInFailed(f"{host} registered mcphost under a client id or secret that cannot be used")
    named = document.get("redirect_uris")
    named = [redirect_uri] if named is None else named
    if not isinstance(named, list) or not {redirect_uri, portless(redirect_uri)} & {*filter(_sound, named)}:
        by_name = redirect_uri.replace("127.0.0.1", "localhost")
        hint = f"; {LOCALHOST_ADVICE}" if isinstance(named, list) and by_name in named else ""
        raise SignInFailed(f"{host} registered another redirect address than {redirect_uri}: not used{hint}")
    method = document.get("token_endpoint_auth_method") or ("client_secret_basic" if secret else "none")
    if method in _OWN_METHODS and method != "none" and not secret:
        raise SignInFailed(
            f"{host} wants a client secret ({method}) and gave none: register mcphost there yourself, and set "
            "oauth.client_id and oauth.client_secret"
        )
    if method not in _OWN_METHODS:
        named = quoted(method, 40, secrets_of(fetch, document)) if isinstance(method, str) else "not a text"
        raise SignInFailed(f"{host} wants proof that mcphost cannot give ({named})")
    return ClientRegistration(
        client_id=client_id, client_secret=secret, method=method, redirect_uri=redirect_uri, kept=True
    )


def _sound(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_ID and all("\x20" <= each <= "\x7e" for each in value)
