"""Finds the authorization server for a sign-in, and makes the grant of what it gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Final

from mcphost.auth.addresses import checked_url
from mcphost.auth.dpop import ALGORITHM, Nonces, Prover, ready_key
from mcphost.auth.flow.metadata import (
    AuthorizationServer,
    Discovery,
    ProtectedResource,
    canonical,
    is_for,
    slash_advice,
    sound_scopes,
)
from mcphost.auth.flow.steps import Flow, InThread
from mcphost.auth.flow.token_endpoint import TokenResponse
from mcphost.auth.ports import OAuthSettings
from mcphost.auth.storage.credentials import ClientRegistration, Credentials, TokenGrant
from mcphost.errors import SignInFailed
from mcphost.lazy_dataclass import dataclass
from mcphost.net.origins import host_of, origin_of
from mcphost.protocol.challenge import Challenge, read_challenge
from mcphost.protocol.display import show_line

VERSION: Final = "2025-11-25"
"""The revision named in discovery requests before one is negotiated."""

OFFLINE: Final = "offline_access"
"""The scope that asks for a refresh token."""


@dataclass(frozen=True, slots=True)
class SignInRequest:
    """The input of a sign-in. ``status`` is 401, or 403 if a scope was missing."""

    server: str
    url: str
    settings: OAuthSettings
    challenge: str = ""
    status: int = 401
    known: Credentials = field(default_factory=Credentials)
    version: str = VERSION
    nonces: Nonces = field(default_factory=Nonces)


@dataclass(frozen=True, slots=True)
class DiscoveredServer:
    """The results of discovery for a sign-in request."""

    request: SignInRequest
    challenge: Challenge
    protected: ProtectedResource | None
    issuer: AuthorizationServer
    doubts: tuple[str, ...] = ()
    """Where discovery left the server's own words; safe to show."""
    prover: Prover | None = None
    """Makes the proofs of the token requests; None: the token is not to be bound to a key."""

    @property
    def resource(self) -> str:
        return canonical(self.request.url) if self.protected is None else self.protected.resource

    @property
    def before(self) -> TokenGrant | None:
        """The present grant of the same issuer."""
        grant = self.request.known.grant_for(self.request.url, self.request.settings.resource)
        return grant if grant is not None and grant.issuer == self.issuer.issuer else None

    def scopes(self) -> tuple[tuple[str, ...], str]:
        """The scopes to request, and who named them."""
        settings, challenged = self.request.settings, self.challenge.scopes
        held = self.before
        if self.request.status == 403:
            earlier = (*held.asked, *held.scopes) if held else ()
            every = (*earlier, *settings.scopes, *challenged)
            return self._sound(every), "the call that was refused, besides what you had"
        if settings.scopes:
            return self._sound(settings.scopes), "your configuration"
        if held and not set(challenged).issubset((*held.asked, *held.scopes)):  # else what was held is lost
            return self._sound((*held.asked, *held.scopes, *challenged)), "the server's refusal, besides what you had"
        if challenged:
            return self._sound(challenged), "the server's refusal"
        if self.protected is not None and self.protected.scopes:
            return self._sound(self.protected.scopes), "the server's metadata, all it lists"
        return (), "no one: the authorization server decides"

    def _sound(self, scopes: Iterable[str]) -> tuple[str, ...]:
        """The valid scopes, and ``offline_access`` if the issuer offers it."""
        good = sound_scopes(scopes)
        offline = [OFFLINE] if good and OFFLINE in self.issuer.scopes else []
        return tuple(dict.fromkeys([*good, *offline]))


def find(request: SignInRequest) -> Flow[DiscoveredServer]:
    checked_url("server's address", str(canonical(request.url)), request.url)
    challenge = read_challenge(request.challenge)
    discovery = Discovery(request.url, request.settings, request.version)
    protected, doubts = yield from discovery.find_resource(challenge)
    if challenge.unread:
        doubts = (f"part of the server's challenge cannot be read: {show_line(challenge.unread, 120)!r}", *doubts)
    if odd := " ".join(scope for scope in challenge.scopes if scope not in sound_scopes(challenge.scopes)):
        doubts = (*doubts, f"the server's challenge names scopes that cannot be asked for: {show_line(odd, 120)}")
    origin = origin_of(request.url)
    named = (origin,) if protected is None else protected.authorization_servers or (origin,)
    _check_pinned(request.settings, named)
    if protected is None:
        issuer = yield from discovery.find_old_issuer()
    else:
        if not protected.authorization_servers:
            doubts = (*doubts, "the server's metadata names no authorization server; its own origin announces this one")
        before = [grant.issuer for grant in request.known.grants]
        issuer = yield from discovery.find_issuer(filter(request.settings.takes, named), before)
    found = DiscoveredServer(request, challenge, protected, issuer, doubts)
    if not _binds(found):
        return found
    held = found.before.key if found.before else None
    key = yield InThread(lambda: ready_key(held))
    required = request.settings.dpop == "require" or (protected is not None and protected.wants_bound)
    return replace(found, prover=Prover(key, request.nonces, "issuer", required))


def _binds(found: DiscoveredServer) -> bool:
    """True if the token is to be bound to a key. Raises SignInFailed if that is required and not possible."""
    wanted, protected, challenge = found.request.settings.dpop, found.protected, found.challenge.dpop
    if wanted == "off":
        return False
    lists = [
        found.issuer.proof_algorithms,
        None if protected is None else protected.proof_algorithms,
        tuple(challenge["algs"].split()) if challenge and challenge.get("algs") else None,
    ]
    unfit = next((each for each in lists if each is not None and ALGORITHM not in each), None)
    if wanted == "require":
        if unfit is not None:
            raise SignInFailed(
                f'oauth.dpop = "require" needs proofs by {ALGORITHM}, and one of the servers takes '
                f"{show_line(' '.join(unfit), 80) or 'none'}"
            )
        return True
    # The authorization server alone is not enough: many list algorithms for all, and a server may know Bearer only.
    shown = challenge is not None or (protected is not None and protected.wants_bound) or lists[1] is not None
    before = found.before is not None and found.before.key is not None
    return unfit is None and lists[0] is not None and (shown or before)


def kept_bound(found: DiscoveredServer) -> DiscoveredServer:
    """``found`` for a sign-in without a person, whom no plan can warn: a bound token is replaced by bound ones alone.

    Raises SignInFailed.
    """
    if found.before is None or not found.before.bound or found.request.settings.dpop == "off":
        return found
    if found.prover is None:
        raise SignInFailed(
            f"the token of before is bound to a key, and the metadata of {host_of(found.request.url)} or of "
            f'{host_of(found.issuer.issuer)} offers that no more; no token was asked for: oauth.dpop = "off" allows it'
        )
    return replace(found, prover=replace(found.prover, required=True))


def _check_pinned(settings: OAuthSettings, named: Sequence[str]) -> None:
    """Raise SignInFailed unless the configured issuer, compared as text, is among ``named``."""
    if not any(map(settings.takes, named)):
        raise SignInFailed(
            f"the configuration allows {show_line(settings.issuer, 120)!r} alone, and the server names "
            f"{' and '.join(show_line(each, 120) for each in named)}; if that is right, change oauth.issuer"
            f"{next(filter(None, (slash_advice(settings.issuer, each) for each in named)), '')}"
        )


def check_same_issuer(request: SignInRequest, issuer: AuthorizationServer) -> None:
    """Never present a configured client id of one authorization server to another."""
    for grant in request.known.grants if request.settings.client_id else ():
        same = request.settings.same_issuer(grant.issuer, issuer.issuer)
        if grant.client.client_id == request.settings.client_id and not same:
            raise SignInFailed(
                f"the configured client_id belongs to {host_of(grant.issuer)}, and the server now names "
                f"{host_of(issuer.issuer)}; if that is right, sign out of this server and change oauth.client_id"
            )


def warnings_of(found: DiscoveredServer) -> Iterator[str]:
    """Sentences for the person before signing in to these servers; safe to show."""
    issuer, request = found.issuer, found.request
    yield from found.doubts
    foreign = [host_of(url) for url in (issuer.issuer, *issuer.endpoints()) if "xn--" in host_of(url)]
    if foreign:
        named = ", ".join(show_line(host, 80) for host in dict.fromkeys(foreign))
        yield f"a name is spelled in letters that can look like others; this is what it is: {named}"
    if hosts := issuer.off_origin_endpoints():
        named = ", ".join(show_line(host, 80) for host in hosts)
        yield f"parts of this sign-in are on another host than {show_line(host_of(issuer.issuer), 80)}: {named}"
    if (last := request.known.last_issuer) and last != issuer.issuer:
        yield f"this is another authorization server than last time, which was {show_line(host_of(last), 80)}"
    every = () if found.protected is None else found.protected.authorization_servers
    if others := [host_of(url) for url in every if url != issuer.issuer and not request.settings.issuer]:
        named = ", ".join(show_line(host, 80) for host in others)
        yield f"the server names other authorization servers as well: {named}; oauth.issuer keeps to one"
    if found.prover is None and found.protected is not None and found.protected.wants_bound:
        yield "the server takes only tokens that are bound to a key, and this one will not be: see oauth.dpop"
    elif found.prover is None and request.settings.dpop == "auto" and found.before is not None and found.before.bound:
        yield 'the token of before is bound to a key, and this one will not be; dpop = "require" refuses that'
    if not issuer.announced:
        yield "the server announces no sign-in; these are the places where servers of 2025-03-26 have it"


def grant_of(
    found: DiscoveredServer, client: ClientRegistration, tokens: TokenResponse, asked: tuple[str, ...], now: float
) -> TokenGrant:
    issuer = found.issuer
    return TokenGrant(
        issuer=issuer.issuer,
        resource=found.resource,
        client=client,
        token_endpoint=issuer.token_endpoint,
        revocation_endpoint=issuer.revocation_endpoint,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token,
        expires_at=None if tokens.lifetime is None else now + tokens.lifetime,
        lifetime=tokens.lifetime,
        scopes=asked if tokens.scopes is None else tokens.scopes,
        asked=asked,
        home="" if is_for(found.resource, found.request.url) else canonical(found.request.url),
        subject=tokens.subject,
        token_type=tokens.token_type,
        key=None if found.prover is None else found.prover.key,
    )


def scope_form(scopes: tuple[str, ...]) -> dict[str, str]:
    return {"scope": " ".join(scopes)} if scopes else {}
