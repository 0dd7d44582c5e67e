"""What signing in leaves behind: our names at authorization servers, and the tokens they gave.

Knows which token may go where. Refuses to know where any of it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcphost.auth.flow.resource import is_for

AuthMethod = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]

SLACK: Final = 30.0
"""Seconds before its expiry from which a token is renewed: a call must not start with one that ends on the way."""

SHORTEST_SLACK: Final = 1.0
"""Seconds: of tokens that live for moments only; they are not renewed more often than that."""


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ClientRegistration(_Kept):
    """Us, as one authorization server knows us."""

    client_id: str
    client_secret: str = Field(default="", repr=False)
    method: AuthMethod = "none"
    redirect_uri: str = ""
    kept: bool = False
    """Is it remembered for the next sign-in? Not where the configuration or a document names it."""


class TokenGrant(_Kept):
    """One token and what belongs to it."""

    issuer: str
    resource: str
    client: ClientRegistration
    token_endpoint: str
    revocation_endpoint: str = ""
    access_token: str = Field(repr=False)
    refresh_token: str = Field(default="", repr=False)
    expires_at: float | None = None
    """Seconds since 1970; None: the server did not say."""
    lifetime: float | None = None
    """Seconds for which it was given."""
    scopes: tuple[str, ...] = ()
    """What was granted."""
    asked: tuple[str, ...] = ()
    """What was asked for."""
    subject: str = ""
    """Whose account it is, as the authorization server calls it; empty where no token says so."""

    @property
    def slack(self) -> float:
        """How many seconds early it is renewed: for a short life a part of that."""
        return SLACK if self.lifetime is None else min(max(self.lifetime / 4, SHORTEST_SLACK), SLACK)

    def due(self, now: float) -> bool:
        """Is it time for a new token?"""
        return self.expires_at is not None and now >= self.expires_at - self.slack


class Credentials(_Kept):
    """All that is kept for one server entry: clients by issuer, grants by issuer and resource."""

    clients: dict[str, ClientRegistration] = Field(default_factory=dict)
    grants: tuple[TokenGrant, ...] = ()
    last_issuer: str = ""
    """The authorization server of the last sign-in, even where its grant is over by now."""

    def grant_for(self, url: str) -> TokenGrant | None:
        """The grant whose token may be sent to ``url``."""
        return next((grant for grant in self.grants if is_for(grant.resource, url)), None)

    def with_grant(self, grant: TokenGrant) -> Credentials:
        """With this grant in place of any other for its resource: one server has one authorization server at a time."""
        others = tuple(each for each in self.grants if each.resource != grant.resource)
        clients = {**self.clients, grant.issuer: grant.client} if grant.client.kept else self.clients
        return self.model_copy(update={"grants": (grant, *others), "clients": clients, "last_issuer": grant.issuer})

    def without_grant(self, grant: TokenGrant) -> Credentials:
        """Without the grant that holds this very token."""
        kept = tuple(each for each in self.grants if each.access_token != grant.access_token)
        return self.model_copy(update={"grants": kept})

    def without_client(self, issuer: str) -> Credentials:
        """Without our name at this authorization server, and what it gave to that name."""
        clients = {known: client for known, client in self.clients.items() if known != issuer}
        grants = tuple(grant for grant in self.grants if grant.issuer != issuer)
        return self.model_copy(update={"clients": clients, "grants": grants})

    def secrets(self) -> Iterator[str]:
        """Every value that must never be shown."""
        for grant in self.grants:
            yield from (grant.access_token, grant.refresh_token, grant.client.client_secret)
        for client in self.clients.values():
            yield client.client_secret
