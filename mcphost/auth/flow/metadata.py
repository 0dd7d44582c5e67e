"""The two documents that say where to sign in: a protected resource's, and an authorization server's.

Knows where they stand, what they must say and which of it may be believed. Refuses to fetch anything.

Specification: authorization, server discovery; RFC 9728; RFC 8414; OpenID Connect Discovery 1.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from mcphost.auth.addresses import checked_url
from mcphost.auth.flow.resource import is_for
from mcphost.errors import SignInFailed
from mcphost.net.origins import host_of, origin_of
from mcphost.protocol.display import show_line

MOST_SCOPES: Final = 100
MOST_SERVERS: Final = 10

RESOURCE_PLACE: Final = "/.well-known/oauth-protected-resource"
OAUTH_PLACE: Final = "/.well-known/oauth-authorization-server"
OPENID_PLACE: Final = "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """Whom a server trusts to sign people in. ``resource`` is its own spelling of itself."""

    resource: str
    authorization_servers: tuple[str, ...]
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """Where to ask for what. Endpoints are checked; an empty one is not offered."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    scopes: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] | None = None
    """How a client may prove itself at the token endpoint; None: the document does not say."""
    challenge_methods: tuple[str, ...] | None = None
    """PKCE; None: the document does not say."""
    takes_documents: bool = False
    """May a client's id be the URL of its metadata document?"""
    sends_issuer: bool = False
    """Does every answer through the browser carry ``iss``?"""
    announced: bool = True
    """False: nothing was announced, these are the default places of 2025-03-26."""

    def strangers(self) -> tuple[str, ...]:
        """Hosts of endpoints that are not the issuer's own."""
        home = origin_of(self.issuer)
        return tuple(dict.fromkeys(host_of(url) for url in self.endpoints() if origin_of(url) != home))

    def endpoints(self) -> tuple[str, ...]:
        """Every place that is told something."""
        every = (self.authorization_endpoint, self.token_endpoint, self.registration_endpoint, self.revocation_endpoint)
        return tuple(url for url in every if url)


def resource_places(url: str) -> tuple[str, ...]:
    """Where a server's protected-resource metadata stands, if it does not say: by its path, then at the root."""
    path = httpx.URL(url).path.rstrip("/")
    root = origin_of(url) + RESOURCE_PLACE
    return (root + path, root) if path else (root,)


def issuer_places(issuer: str) -> tuple[str, ...]:
    """Where an issuer's metadata stands, in the order to try."""
    origin, path = origin_of(issuer), httpx.URL(issuer).path.rstrip("/")
    if not path:
        return (origin + OAUTH_PLACE, origin + OPENID_PLACE)
    return (origin + OAUTH_PLACE + path, origin + OPENID_PLACE + path, origin + path + OPENID_PLACE)


def read_document(what: str, content: bytes) -> Mapping[str, Any]:
    """A JSON object. Raises SignInFailed."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        start = show_line(content[:80].decode("utf-8", "replace"), 80)
        raise SignInFailed(f"{what} is no JSON; it begins with {start!r}") from None
    if not isinstance(found, dict):
        raise SignInFailed(f"{what} is no JSON object")
    return found


def read_resource(content: bytes, url: str) -> ProtectedResource:
    """The metadata of the resource at ``url``. Raises SignInFailed where it is about another, or names nobody."""
    what = "the server's protected-resource metadata"
    document = read_document(what, content)
    resource = document.get("resource")
    if not isinstance(resource, str) or not is_for(resource, url):
        named = show_line(str(resource), 120)
        raise SignInFailed(f"{what} is about {named}, and not about {show_line(url, 120)}: the server's mistake")
    servers = _texts(document.get("authorization_servers"))[:MOST_SERVERS]
    issuers = tuple(checked_url("authorization server named by the server", server, url) for server in servers)
    if not issuers:
        raise SignInFailed(f"{what} names no authorization server: the server's mistake")
    return ProtectedResource(resource, issuers, _texts(document.get("scopes_supported"))[:MOST_SCOPES])


def read_issuer(content: bytes, issuer: str, home: str) -> AuthorizationServer:
    """The metadata of ``issuer``, for a server at ``home``. Raises SignInFailed where it must not be used."""
    what = f"the metadata of {host_of(issuer)}"
    document = read_document(what, content)
    named = document.get("issuer")
    if named != issuer:  # as they stand: a slash more is another issuer
        raise SignInFailed(
            f"{what} is of issuer {show_line(str(named), 120)!r}, and {show_line(issuer, 120)!r} was asked"
        )

    def endpoint(name: str, *, needed: bool = False) -> str:
        url = document.get(name)
        return checked_url(f"{name} of {host_of(issuer)}", url, home) if needed or url else ""

    return AuthorizationServer(
        issuer,
        endpoint("authorization_endpoint"),
        endpoint("token_endpoint", needed=True),
        endpoint("registration_endpoint"),
        endpoint("revocation_endpoint"),
        _texts(document.get("scopes_supported")),
        _stated(document, "token_endpoint_auth_methods_supported"),
        _stated(document, "code_challenge_methods_supported"),
        takes_documents=document.get("client_id_metadata_document_supported") is True,
        sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
    )


def default_places(home: str) -> AuthorizationServer:
    """Where a server of 2025-03-26 that announces nothing signs people in by itself."""
    base = origin_of(home)
    authorize, token, register = (
        checked_url("default endpoint", f"{base}/{name}", home) for name in ("authorize", "token", "register")
    )
    return AuthorizationServer(base, authorize, token, register, announced=False)


def sound_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """Each of these once, without what no scope may be (RFC 6749 section 3.3)."""
    good = [
        scope for scope in scopes if scope and all("\x21" <= each <= "\x7e" and each not in '"\\' for each in scope)
    ]
    return tuple(dict.fromkeys(good))[:MOST_SCOPES]


def _stated(document: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    return _texts(document[name]) if name in document else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str) and item) if isinstance(value, list) else ()
