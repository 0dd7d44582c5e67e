"""Builds the authorization URL, and validates the redirect that comes back.

Specification: authorization, code protection and response validation; RFC 9207; RFC 7636.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from urllib.parse import parse_qs, parse_qsl, quote, urlencode

import httpx

from mcphost.auth.addresses import LONGEST
from mcphost.auth.flow.steps import PendingAuthorization
from mcphost.errors import SignInFailed
from mcphost.net.origins import host_of, origin_of
from mcphost.protocol.display import show_line

MOST_PARAMETERS = 30


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
    if error := callback.get("error"):
        raise _refused(pending, error[0], " ".join(callback.get("error_description", ())))
    codes = callback.get("code", ())
    if len(codes) != 1 or not codes[0]:
        raise SignInFailed(f"{host_of(pending.issuer)} sent the browser back without a code")
    return codes[0]


def _check_issuer(pending: PendingAuthorization, named: tuple[str, ...]) -> None:
    if not named and pending.sends_issuer:
        raise SignInFailed(f"the answer does not say that it is {host_of(pending.issuer)}'s, as that one's answers do")
    if named and named != (pending.issuer,):  # compared as text, without normalization
        raise SignInFailed(f"the answer came from another authorization server than {show_line(pending.issuer, 120)}")


def _refused(pending: PendingAuthorization, error: str, description: str) -> SignInFailed:
    host, code = host_of(pending.issuer), show_line(error, 60)
    described = f": {show_line(description, 200)}" if description else ""
    if error == "access_denied":
        return SignInFailed(f"{host} says that access was denied{described}", code=code)
    return SignInFailed(f"{host} did not sign you in ({code}){described}", code=code)
