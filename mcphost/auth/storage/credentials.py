"""The credentials that sign-ins produce: client registrations and token grants, and where each token may be sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from mcphost.auth.dpop import ProofKey
from mcphost.auth.flow.metadata import is_for

AuthMethod = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]

TokenType = Literal["Bearer", "DPoP"]
"""The scheme in which a token is sent."""

SLACK: Final = 30.0
"""Seconds before expiry at which a token is renewed, so that none expires during a call."""

SHORTEST_SLACK: Final = 1.0
"""Seconds; the least slack, for tokens with a very short lifetime."""


class Kept(BaseModel):
    """A value of the keychain; made without arguments, it is one that does not exist."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def secrets(self) -> Iterator[str]:
        """Every value that must never be shown."""
        yield from ()


class ClientRegistration(Kept):
    """The client, as registered at one authorization server."""

    client_id: str
    client_secret: str = Field(default="", repr=False)
    method: AuthMethod = "none"
    redirect_uri: str = ""
    kept: bool = False
    """Stored for the next sign-in; false if the configuration or a metadata document provides it."""


class TokenGrant(Kept):
    """One access token and what belongs to it."""

    issuer: str
    resource: str
    client: ClientRegistration
    token_endpoint: str
    revocation_endpoint: str = ""
    access_token: str = Field(repr=False)
    refresh_token: str = Field(default="", repr=False)
    expires_at: float | None = None
    """Seconds since 1970; None: not stated."""
    lifetime: float | None = None
    """Seconds from issue to expiry; None: not stated."""
    signed_in_at: float | None = None
    """Time when a person signed in, in seconds since 1970; None: unknown, or no one did."""
    scopes: tuple[str, ...] = ()
    """The scopes that were granted."""
    asked: tuple[str, ...] = ()
    """The scopes that were requested."""
    home: str = ""
    """The server's URL at the sign-in, where `resource` is another one that the configuration accepts."""
    subject: str = ""
    """The ``sub`` claim of the token, or an empty text."""
    identity: str = ""
    """The identity that it was made with; empty without one."""
    identity_issuer: str = ""
    """The provider of that identity."""
    token_type: TokenType = "Bearer"
    key: ProofKey | None = None
    """The key of the sign-in: the refresh token may be bound to it, even if the access token is not."""

    @property
    def bound(self) -> bool:
        """True if each request needs a proof of the key."""
        return self.token_type == "DPoP" and self.key is not None

    @property
    def slack(self) -> float:
        """Seconds before expiry at which it is renewed; at most a quarter of its lifetime."""
        return SLACK if self.lifetime is None else min(max(self.lifetime / 4, SHORTEST_SLACK), SLACK)

    def due(self, now: float) -> bool:
        return self.expires_at is not None and now >= self.expires_at - self.slack


class Credentials(Kept):
    """All that is stored for one configured server: clients by issuer, and grants."""

    clients: dict[str, ClientRegistration] = Field(default_factory=dict)
    grants: tuple[TokenGrant, ...] = ()
    last_issuer: str = ""
    """The authorization server of the last sign-in, even if its grant has been removed."""

    def grant_for(self, url: str, accepted: str = "") -> TokenGrant | None:
        """The grant whose token may be sent to ``url``; ``accepted``: the resource that the configuration names."""

        def fits(grant: TokenGrant) -> bool:
            return is_for(grant.resource, url) or (grant.resource == accepted != "" and is_for(grant.home, url))

        return next(filter(fits, self.grants), None)

    def with_grant(self, grant: TokenGrant) -> Credentials:
        """Replace the grant for the same resource: one server has one authorization server at a time."""
        others = tuple(each for each in self.grants if each.resource != grant.resource)
        clients = {**self.clients, grant.issuer: grant.client} if grant.client.kept else self.clients
        return self.model_copy(update={"grants": (grant, *others), "clients": clients, "last_issuer": grant.issuer})

    def without_grant(self, grant: TokenGrant) -> Credentials:
        """Remove the grant with this very access token."""
        kept = tuple(each for each in self.grants if each.access_token != grant.access_token)
        return self.model_copy(update={"grants": kept})

    def without_client(self, issuer: str) -> Credentials:
        """Remove the registration at this authorization server, and all its grants."""
        clients = {known: client for known, client in self.clients.items() if known != issuer}
        grants = tuple(grant for grant in self.grants if grant.issuer != issuer)
        return self.model_copy(update={"clients": clients, "grants": grants})

    def secrets(self) -> Iterator[str]:
        """Every value that must never be shown."""
        for grant in self.grants:
            yield from (grant.access_token, grant.refresh_token, grant.client.client_secret)
            if grant.key is not None:
                yield grant.key.d
        for client in self.clients.values():
            yield client.client_secret
