"""The tokens of identities, one keychain item each, for all servers and all mcphost processes."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from mcphost.auth.ports import IdentitySettings
from mcphost.auth.storage.credentials import SLACK, Kept


def identity_item(name: str) -> str:
    """The name of the item; no server is called so, since names hold no spaces."""
    return f"identity {name}"


class KeptIdentity(Kept):
    """A sign-in at an identity provider."""

    issuer: str = ""
    client_id: str = ""
    id_token: str = Field(default="", repr=False)
    refresh_token: str = Field(default="", repr=False)
    expires_at: float = 0.0
    """Expiry of the ID token, in seconds since 1970."""
    subject: str = ""
    account: str = ""
    """The account as people know it; foreign text."""
    signed_in_at: float | None = None
    servers: tuple[str, ...] = ()
    """The servers with grants that were made with this identity."""

    def is_of(self, identity: IdentitySettings) -> bool:
        """True if it was made with the present settings: tokens go to no other provider or client."""
        return (self.issuer, self.client_id) == (identity.issuer, identity.client_id)

    def has_id_token(self, now: float) -> bool:
        return bool(self.id_token) and now < self.expires_at - SLACK

    def with_server(self, server: str) -> KeptIdentity:
        return self.model_copy(update={"servers": tuple(dict.fromkeys((*self.servers, server)))})

    def secrets(self) -> Iterator[str]:
        """Every value that must never be shown."""
        yield from (self.id_token, self.refresh_token)
