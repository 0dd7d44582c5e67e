"""A grant, and the credentials that hold it."""

from __future__ import annotations

from mcphost.auth.storage.credentials import ClientRegistration, Credentials, TokenGrant

URL = "https://mcp.example.com/mcp"
GRANT = TokenGrant(
    issuer="https://as.example.com",
    resource=URL,
    client=ClientRegistration(client_id="c", client_secret="client-secret", kept=True),
    token_endpoint="https://as.example.com/token",
    access_token="access-0",
    refresh_token="refresh-0",
    expires_at=1e9,
    lifetime=3600.0,
)
HELD = Credentials().with_grant(GRANT)
