"""Who is signed in, in words and for programs.

Knows values only.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from mcphost.protocol.display import show_line
from mcphost.protocol.hosts import host_in

if TYPE_CHECKING:
    from mcphost.auth.base import SignInStatus


def standing_words(standing: SignInStatus) -> str:
    """Who is signed in, in a line."""
    if not standing.signed_in:
        why = f": {standing.problem}" if standing.problem else ""
        return show_line(f"nobody is signed in{why}", 1000)
    until = "" if standing.expires_at is None else f" until {datetime.fromtimestamp(standing.expires_at):%d %b %H:%M}"
    renewed = ", renewed by itself" if standing.renewable else ""
    scopes = f" for {' '.join(standing.scopes)}" if standing.scopes else ""
    missing = [scope for scope in standing.asked if scope not in standing.scopes]
    without = f" (without {' '.join(missing)}, which was asked for)" if missing and standing.scopes else ""
    kept = f"; tokens {standing.kept_in}" if standing.kept_in else ""
    words = f"signed in at {host_in(standing.issuer).both}{scopes}{without}{until}{renewed}{kept}"
    return show_line(words, 1000)


def standing_object(standing: SignInStatus) -> dict[str, Any]:
    """The same for programs."""
    return {
        "signedIn": standing.signed_in,
        "issuer": standing.issuer or None,
        "resource": standing.resource or None,
        "clientId": standing.client_id or None,
        "scopes": list(standing.scopes),
        "expiresAt": standing.expires_at,
        "renewable": standing.renewable,
        "keptIn": standing.kept_in or None,
        "problem": standing.problem or None,
    }
