"""Validates ID tokens: signature, issuer, audience, times and nonce.

Specification: OpenID Connect Core 1.0, sections 3.1.3.7 and 12.2.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcphost.auth.flow.steps import HttpAnswer, Unreachable
from mcphost.auth.jwt_claims import expiry_of, header_of
from mcphost.errors import SignInFailed
from mcphost.json_values import as_dict, as_list, dicts_in, is_number
from mcphost.protocol.display import show_line

if TYPE_CHECKING:
    from joserfc.jwk import Key

ALGORITHMS: Final[Mapping[str, str]] = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC"}
"""The signature algorithms that are taken, with their kind of key. The header of a token only chooses among them."""

LEEWAY: Final = 60
"""Seconds by which the clocks of a provider and of this machine may differ."""

MOST_KEYS: Final = 32
"""Keys of a provider that are tried; real ones publish two or three."""

_ACCOUNT: Final = ("email", "preferred_username", "upn", "name")
"""Claims by which people know an account, the best first."""


class IdTokenClaims(NamedTuple):
    """The claims of a valid ID token."""

    subject: str
    expires_at: float
    account: str
    """The account as people know it; foreign text."""


class Expected(NamedTuple):
    """The values that an ID token must have."""

    issuer: str
    client_id: str
    nonce: str = ""
    """Empty: that of a renewal, which needs none."""
    subject: str = ""
    """The account of before; empty: any."""
    max_age: int | None = None
    """The most seconds since the person signed in."""


Keys = list[dict[str, Any]]
"""The keys that a provider publishes, not yet read."""


def read_id_token(token: str, keys: Keys, expected: Expected, now: float) -> IdTokenClaims:
    """The claims of ``token``, signed with one of ``keys``. Raises SignInFailed, whose text says what is wrong."""
    if not token:
        raise SignInFailed(f"{_provider(expected)} gave no ID token; the scope openid may not be allowed")
    claims = _signed_claims(token, keys, expected)
    _check_claims(claims, expected, now)
    return IdTokenClaims(str(claims["sub"]), float(claims["exp"]), account_of(claims))


def account_of(claims: Mapping[str, Any]) -> str:
    """The account as people know it, else the subject; foreign text."""
    named = next((text for name in _ACCOUNT if isinstance(text := claims.get(name), str) and text.strip()), "")
    return (named or str(claims.get("sub", "")))[:255]


def published_keys(answer: HttpAnswer | Unreachable, issuer: str) -> Keys:
    """The keys in the answer of ``issuer``. Raises SignInFailed."""
    what = f"the keys of {show_line(issuer, 120)}"
    if isinstance(answer, Unreachable):
        raise SignInFailed(f"{what} cannot be fetched: {answer.reason}")
    try:
        found = as_dict(json.loads(answer.content)) if answer.status == 200 else {}
    except (ValueError, RecursionError):
        found = {}
    if not (keys := dicts_in(found.get("keys"))):
        raise SignInFailed(f"{what} cannot be read (HTTP {answer.status}), so its ID token cannot be checked")
    return keys


def _signed_claims(token: str, published: Keys, expected: Expected) -> dict[str, Any]:
    from joserfc import jwt  # late: few servers use this, and the library imports cryptography
    from joserfc.errors import BadSignatureError, JoseError

    header = header_of(token)
    algorithm = header.get("alg")
    if algorithm not in ALGORITHMS:
        named = "no algorithm" if algorithm in (None, "none", "") else show_line(str(algorithm), 20)
        taken = ", ".join(ALGORITHMS)
        raise _wrong(expected, f"is signed with {named}, and only {taken} are taken")
    for key in _keys(published, header):
        try:
            return dict(jwt.decode(token, key, algorithms=[str(algorithm)]).claims)
        except BadSignatureError:
            continue
        except (JoseError, ValueError, TypeError) as error:
            raise _wrong(expected, f"cannot be read ({type(error).__name__})") from None
    raise _wrong(expected, "is not signed with a key that the provider publishes")


def _keys(published: Keys, header: Mapping[str, Any]) -> Iterator[Key]:
    """The published keys that may have signed a token with this header."""
    from joserfc import jwk
    from joserfc.errors import JoseError

    named, kind = header.get("kid"), ALGORITHMS[str(header["alg"])]
    fitting = [key for key in published if key.get("kty") == kind and key.get("use", "sig") == "sig"]
    if named is not None:
        fitting = [key for key in fitting if key.get("kid", named) == named]
    for key in fitting[:MOST_KEYS]:
        try:
            with warnings.catch_warnings(action="ignore"):  # of a key that is short
                yield jwk.import_key(key, kind)  # type: ignore[call-overload]
        except (JoseError, ValueError, TypeError):
            continue


def _check_claims(claims: dict[str, Any], expected: Expected, now: float) -> None:
    from joserfc.errors import ClaimError
    from joserfc.jwt import JWTClaimsRegistry

    registry = JWTClaimsRegistry(
        now=int(now),
        leeway=LEEWAY,
        iss={"essential": True, "value": expected.issuer},
        aud={"essential": True, "value": expected.client_id},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
    )
    try:
        registry.validate(claims)
    except ClaimError as error:
        name = error.claim.partition(",")[0]
        raise _wrong(expected, _wrong_claim(name, claims.get(name))) from None
    if expiry_of(claims) is None:
        raise _wrong(expected, "has a wrong claim exp")
    presenter = claims.get("azp")
    if presenter is None and len(as_list(claims["aud"])) > 1:
        raise _wrong(expected, "is for several clients, and does not say to which it was issued (azp)")
    if presenter is not None and presenter != expected.client_id:
        raise _wrong(expected, "was issued to another client (azp)")
    if expected.nonce and claims.get("nonce") != expected.nonce:
        raise _wrong(expected, "belongs to another sign-in (its nonce is not ours)")
    if expected.subject and claims["sub"] != expected.subject:
        raise _wrong(expected, "is for another account than before")
    if expected.max_age is not None:
        signed_in = claims.get("auth_time")
        if not is_number(signed_in) or now - signed_in > expected.max_age + LEEWAY:
            raise _wrong(expected, "does not say that you signed in just now (auth_time)")


def _wrong_claim(name: str, value: object) -> str:
    """The fault of a claim, as the end of a sentence."""
    if value is None:
        return f"lacks the claim {show_line(name, 20)}"
    words = {
        "iss": f"is of issuer {show_line(str(value), 120)!r}",
        "aud": "is for another client (aud)",
        "exp": "has expired; check this machine's clock",
        "iat": "is from the future (iat); check this machine's clock",
        "nbf": "is from the future (nbf); check this machine's clock",
    }
    return words.get(name, f"has a wrong claim {show_line(name, 20)}")


def _wrong(expected: Expected, why: str) -> SignInFailed:
    return SignInFailed(f"the ID token of {_provider(expected)} {why}; it is not used")


def _provider(expected: Expected) -> str:
    return show_line(expected.issuer, 120)
