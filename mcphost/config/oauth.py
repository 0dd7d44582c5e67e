"""``[servers.NAME.oauth]``: how to sign in to a server.

Knows which of its settings need each other. Refuses to know how a sign-in goes.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mcphost.config.fields import ConfigTable, DocumentUrl, Filled, Several, Url, misplaced


class OAuthConfig(ConfigTable):
    """How to sign in to a server that wants it. Without this table everything is discovered."""

    enabled: bool = True
    """Whether to sign in at all; false: a refused request is simply an error."""
    issuer: Url | None = None
    """The one authorization server that may be used, spelled as the server names it; absent: any that it names."""
    client_id: Filled | None = None
    """Our name at the authorization server, when it was registered by hand."""
    client_secret: Filled | None = None
    """The secret that goes with it; a reference such as ``${keyring:NAME}``."""
    private_key: Filled | None = None
    """A key in PEM that proves who we are instead of a secret; a reference such as ``${file:key.pem}``."""
    client_metadata_url: DocumentUrl | None = None
    """The https address of the document that describes us, for servers that take one as ``client_id``."""
    redirect_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """The local port the browser comes back to; 0 is any free one."""
    registration: Literal["auto", "cimd", "dcr", "static"] = "auto"
    """How we become known: a metadata document, dynamic registration, or the ``client_id`` given here."""
    scopes: Several[Filled] = ()
    """What to ask for; empty: what the server says it needs."""
    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    """A person in a browser, or this program by its own secret or key."""
    without_pkce_metadata: bool = False
    """Whether to go on where the authorization server does not say that it checks PKCE."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.registration == "static" and self.client_id is None:
            raise misplaced("registration", 'registration = "static" needs a client_id')
        if self.registration == "cimd" and self.client_metadata_url is None:
            raise misplaced("registration", 'registration = "cimd" needs a client_metadata_url')
        if self.grant == "client_credentials" and (
            self.client_id is None or not (self.client_secret or self.private_key)
        ):
            needs = 'grant = "client_credentials" needs client_id, and client_secret or private_key'
            raise misplaced("grant", needs)
        return self

    @model_validator(mode="after")
    def _belonging(self) -> Self:
        if self.client_secret is not None and self.client_id is None:
            raise misplaced("client_secret", "client_secret needs the client_id that it belongs to")
        if self.private_key is not None and self.client_id is None and self.client_metadata_url is None:
            raise misplaced("private_key", "private_key needs the client_id or client_metadata_url that it belongs to")
        return self
