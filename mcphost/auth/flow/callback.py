"""Builds the authorization URL, and validates the redirect that comes back.

Specification: authorization, code protection and response validation; RFC 9207; RFC 7636.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs, parse_qsl, quote, urlencode

import httpx

from mcphost.auth.addresses import LONGEST
from mcphost.auth.flow.metadata import slash_advice
from mcphost.auth.flow.steps import PendingAuthorization
from mcphost.auth.masking import quoted
from mcphost.errors import SignInFailed
from mcphost.net.origins import host_of, origin_of
from mcphost.protocol.display import show_line

MOST_PARAMETERS = 30

NO_STATE: Final = (
    "a browser came back without the state of this sign-in and was turned away: the authorization server may have lost "
    "it; open the page once more"
)
OTHER_STATE: Final = (
    "a browser came back from another sign-in (its state is not ours) and was turned away; go on with this page"
)


def s256(verifier: str) -> str:
    """The PKCE challenge of a verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode("ascii")).digest()).rstrip(b"=").decode()


def authorization_url(endpoint: str, parameters: Mapping[str, str]) -> str:
    """The endpoint with ``parameters``; its own are kept unless they are in `_OURS`. Raises SignInFailed.

    The URL is escaped again, so that it holds no character that RFC 3986 forbids.
    """
    url = httpx.URL(endpoint)
    own = parse_qsl(url.query.decode("ascii"), keep_blank_values=True)
    if len({name for name, _ in own}) != len(own):
        raise SignInFailed(f"the authorization endpoint of {host_of(endpoint)} names a parameter twice")
    kept = [(name, value) for name, value in own if name not in _OURS and name not in parameters]
    path = quote(_LOOSE_PERCENT.sub("%25", url.raw_path.decode("ascii").partition("?")[0]), safe="/%:@!$&'()*+,;=~")
    full = f"{origin_of(endpoint)}{path}?{urlencode([*kept, *parameters.items()])}"
    if len(full) > LONGEST:
        raise SignInFailed(f"the address to open is longer than {LONGEST} characters")
    return full


_LOOSE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")

_OURS = frozenset({
    "client_id", "code_challenge", "code_challenge_method", "prompt", "redirect_uri", "request", "request_uri",
    "resource", "response_mode", "response_type", "scope", "state",
})  # fmt: skip
"""Parameters that an endpoint URL may not set, whether or not mcphost sends them."""


def read_redirect(url: str) -> dict[str, tuple[str, ...]]:
    """The parameters of a redirect URL or of a bare query. Raises SignInFailed if there are too many."""
    query = url.partition("?")[2].partition("#")[0] if "?" in url else url
    try:
        found = parse_qs(query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        raise SignInFailed(f"the redirect carries more than {MOST_PARAMETERS} parameters") from None
    return {name: tuple(values) for name, values in found.items()}


def read_code(pending: PendingAuthorization, callback: Mapping[str, tuple[str, ...]]) -> str:
    """The authorization code of a callback. Raises SignInFailed."""
    # State and issuer first: an error is reported only if it comes from the right server.
    if not pending.is_answered_by(callback):
        raise SignInFailed("the browser came back from another sign-in (its state is not ours)")
    _check_issuer(pending, callback.get("iss", ()))
    if error := "".join(callback.get("error", ())[:1]):
        raise _refused(pending, error, callback)
    codes = callback.get("code", ())
    if len(codes) != 1 or not codes[0]:
        raise SignInFailed(f"{host_of(pending.issuer)} sent the browser back without a code")
    return codes[0]


def _check_issuer(pending: PendingAuthorization, named: tuple[str, ...]) -> None:
    if not named and pending.sends_issuer:
        raise SignInFailed(f"the answer does not say that it is {host_of(pending.issuer)}'s, as that one's answers do")
    if named and not _is_of(pending, named):
        advice = slash_advice(named[0], pending.issuer) if len(named) == 1 else ""
        server = show_line(pending.issuer, 120)
        raise SignInFailed(f"the answer came from another authorization server than {server}{advice}")


def _is_of(pending: PendingAuthorization, named: tuple[str, ...]) -> bool:
    return len(named) == 1 and pending.settings.same_issuer(named[0], pending.issuer)


def why_turned_away(pending: PendingAuthorization, callback: Mapping[str, tuple[str, ...]]) -> str:
    """Why a callback without the awaited state is not used, with the error that it names."""
    reason = OTHER_STATE if "state" in callback else NO_STATE
    error = _shown(pending, callback, "error", 60)
    if not error or not _is_of(pending, callback.get("iss", (pending.issuer,))):
        return reason
    description = _shown(pending, callback, "error_description", 200)
    return f"{reason}; it says, unverified: {error}{f': {description}' if description else ''}"


def _refused(pending: PendingAuthorization, error: str, callback: Mapping[str, tuple[str, ...]]) -> SignInFailed:
    host, code = host_of(pending.issuer), _shown(pending, callback, "error", 60)
    described = f": {words}" if (words := _shown(pending, callback, "error_description", 200)) else ""
    if error == "access_denied":
        return SignInFailed(f"{host} says that access was denied{described}", code=code)
    return SignInFailed(f"{host} did not sign you in ({code}){described}", code=code)


def _shown(pending: PendingAuthorization, callback: Mapping[str, tuple[str, ...]], name: str, limit: int) -> str:
    secrets = (pending.state, pending.verifier, *callback.get("code", ()), *callback.get("state", ()))
    return quoted(" ".join(callback.get(name, ())), limit, filter(None, secrets))
