"""Reads from a token whose account it is for, and plans the question when an account changed.

Nothing here is verified and nothing is allowed by it: it only keeps people from mixing up their own accounts.
"""

from __future__ import annotations

from typing import Final

from mcphost.auth.jwt_claims import claims_of
from mcphost.auth.ports import ClientOrigin, SignInPlan
from mcphost.auth.storage.credentials import Credentials, TokenGrant
from mcphost.protocol.display import show_line

LONGEST_SUBJECT: Final = 255
"""Characters; the limit of OpenID Connect."""


def subject_of(*tokens: object) -> str:
    """The ``sub`` of the first token that is a JWT and has one; else empty."""
    for token in tokens:
        subject = claims_of(token).get("sub") if isinstance(token, str) else None
        if isinstance(subject, str) and 0 < len(subject) <= LONGEST_SUBJECT:
            return subject.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair cannot be kept
    return ""


def confirmation(server: str, url: str, known: Credentials, grant: TokenGrant) -> SignInPlan | None:
    """The question to ask if ``grant`` is for another account than the one before; None if no token says so."""
    before = known.grant_for(url, grant.resource)
    # A subject means something only at its own issuer.
    if before is None or before.issuer != grant.issuer or not before.subject or not grant.subject:
        return None
    if before.subject == grant.subject:
        return None
    was, now = show_line(before.subject, 60), show_line(grant.subject, 60)
    return SignInPlan(
        server=server,
        url=url,
        resource=grant.resource,
        issuer=grant.issuer,
        authorization_endpoint=grant.issuer,
        token_endpoint=grant.token_endpoint,
        registration_endpoint="",
        scopes=(),
        scopes_from="",
        granted=grant.scopes,
        client=ClientOrigin.KNOWN,
        client_id=grant.client.client_id,
        redirect_uri=grant.client.redirect_uri,
        problem=f"this is another account than before: {now!r}, and it was {was!r}; is it the one you mean?",
        obtained=True,
    )
