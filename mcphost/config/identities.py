"""``[identity.NAME]``: an account at an identity provider, which servers share."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mcphost.config.fields import ConfigTable, Filled, PrivateUrl, Several, misplaced
from mcphost.config.servers import AssertionConfig

OPENID = "openid"
"""The scope without which a provider gives no ID token."""


class IdentityConfig(ConfigTable):
    """``[identity.NAME]``: your account at a company's identity provider, for servers with ``grant = "enterprise"``.

    One sign-in there serves all of them.
    """

    issuer: PrivateUrl
    """The address of the identity provider, spelled as its metadata spells it."""
    client_id: Filled
    """The id of mcphost at the identity provider; its id at a server's authorization server is another one."""
    client_secret: Annotated[Filled | None, Field(repr=False)] = None
    """The secret that goes with it; a reference such as ``${keyring:NAME}``."""
    private_key: Annotated[Filled | None, Field(repr=False)] = None
    """A key in PEM that authenticates mcphost instead of a secret; a reference such as ``${file:key.pem}``."""
    scopes: Several[Filled] = (OPENID, "offline_access")
    """The scopes of the sign-in at the identity provider."""
    redirect_host: Literal["127.0.0.1", "localhost"] = "127.0.0.1"
    """The host in the address that the browser comes back to."""
    redirect_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """The local port the browser comes back to; 0 is any free one."""
    id_token: AssertionConfig | None = None
    """The source of an ID token, instead of a sign-in; it is asked for each token of a server."""
    subject: Literal["auto", "id_token", "refresh_token"] = "auto"
    """The token that proves the identity; auto: the ID token, and the refresh token where there is no valid one."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if OPENID not in self.scopes:
            raise misplaced("scopes", f'scopes need "{OPENID}", or the identity provider gives no ID token')
        if self.id_token is not None and self.subject == "refresh_token":
            raise misplaced("subject", 'subject = "refresh_token" does not go with id_token, which gives an ID token')
        return self
