"""ID tokens: each claim, the signature, and what is said of a bad one."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from mcphost.auth.flow.id_tokens import Expected, published_keys, read_id_token
from mcphost.auth.flow.steps import HttpAnswer, Unreachable
from mcphost.errors import SignInFailed
from tests.auth.flow.flows import NOW, document
from tests.auth.flow.identities import IDP, id_token, key, keys

EXPECTED = Expected(IDP, "mcphost-idp", "nonce-1")


def refusal(token: str, published: HttpAnswer | Unreachable | None = None, expected: Expected = EXPECTED) -> str:
    with pytest.raises(SignInFailed) as caught:
        read_id_token(token, published_keys(published or document(keys()), IDP), expected, NOW)
    return str(caught.value)


def unsigned(algorithm: str) -> str:
    header, claims = ({"alg": algorithm}, {"iss": IDP, "sub": "u-1", "nonce": "nonce-1"})
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in (header, claims)]
    return ".".join([*parts, ""])


@pytest.mark.requirement("EMA-05")
def test_a_valid_token_names_its_account() -> None:
    claims = read_id_token(id_token(nonce="nonce-1", email="ann@corp"), keys()["keys"], EXPECTED, NOW)
    assert claims == ("u-1", NOW + 600, "ann@corp")


@pytest.mark.requirement("EMA-05")
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"nonce": "nonce-2"}, "belongs to another sign-in (its nonce is not ours)"),
        ({"nonce": None}, "belongs to another sign-in"),
        ({"nonce": ["nonce-1"]}, "belongs to another sign-in"),
        ({"iss": f"{IDP}/"}, f"is of issuer '{IDP}/'"),
        ({"iss": None}, "lacks the claim iss"),
        ({"aud": "other"}, "is for another client (aud)"),
        ({"aud": ["mcphost-idp", "other"]}, "is for several clients, and does not say to which it was"),
        ({"azp": "other"}, "was issued to another client (azp)"),
        ({"exp": int(NOW) - 61}, "has expired; check this machine's clock"),
        ({"exp": None}, "lacks the claim exp"),
        ({"exp": float("nan")}, "has expired"),
        ({"exp": 10**400}, "has a wrong claim exp"),
        ({"iat": int(NOW) + 61}, "is from the future (iat)"),
        ({"nbf": int(NOW) + 61}, "is from the future (nbf)"),
        ({"sub": ""}, "has a wrong claim sub"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_claim_is_named(more: dict[str, Any], words: str) -> None:
    assert f"the ID token of {IDP} {words}" in refusal(id_token(**{"nonce": "nonce-1", **more}))


@pytest.mark.requirement("EMA-05")
@pytest.mark.parametrize(
    ("token", "words"),
    [
        (unsigned("none"), "is signed with no algorithm, and only RS256, PS256, ES256 are taken"),
        (unsigned("HS256"), "is signed with HS256, and only RS256"),
        (unsigned("ES256"), "is not signed with a key that the provider publishes"),
        ("not a JWT", "is signed with no algorithm"),
        ("", "gave no ID token; the scope openid may not be allowed"),
    ],
)
def test_an_algorithm_of_the_token_is_not_followed(token: str, words: str) -> None:
    assert words in refusal(token)


@pytest.mark.requirement("EMA-05")
def test_a_secret_as_public_key_signs_nothing() -> None:
    """The key of a provider, taken as the secret of HMAC, is the classic confusion."""
    from joserfc.jwk import OctKey

    secret = OctKey.import_key(json.dumps(keys()["keys"][0]))
    claims = {"iss": IDP, "sub": "u-1", "aud": "mcphost-idp", "exp": int(NOW) + 60, "iat": int(NOW)}
    token = jwt.encode({"alg": "HS256", "kid": "idp-1"}, claims, secret, algorithms=["HS256"])
    assert "is signed with HS256" in refusal(token)


@pytest.mark.requirement("EMA-05")
def test_a_signature_of_another_key_is_refused() -> None:
    other = ECKey.generate_key("P-256", {"kid": "idp-1"})
    assert "not signed with a key that the provider publishes" in refusal(id_token(signer=other, nonce="nonce-1"))


def test_a_key_is_found_without_its_name() -> None:
    published = {"keys": [{"kty": "OKP"}, {"kty": "EC", "crv": "?"}, 3, key().as_dict(private=False)]}
    token = id_token(header={"alg": "ES256"}, nonce="nonce-1")
    assert read_id_token(token, published_keys(document(published), IDP), EXPECTED, NOW).subject == "u-1"


@pytest.mark.parametrize("algorithm", ["RS256", "PS256"])
def test_the_algorithms_of_rsa_are_taken(algorithm: str) -> None:
    rsa = RSAKey.generate_key(2048)
    claims = {"iss": IDP, "sub": "u-1", "aud": ["mcphost-idp"], "exp": int(NOW) + 60, "iat": int(NOW)}
    token = jwt.encode({"alg": algorithm}, claims, rsa, algorithms=[algorithm])
    published = document({"keys": [rsa.as_dict(private=False)]})
    assert read_id_token(token, published_keys(published, IDP), Expected(IDP, "mcphost-idp"), NOW).account == "u-1"


@pytest.mark.parametrize(
    ("published", "words"),
    [
        (Unreachable("no route"), "cannot be fetched: no route"),
        (document({"keys": []}), "cannot be read (HTTP 200), so its ID token cannot be checked"),
        (document({}, 500), "cannot be read (HTTP 500)"),
        (HttpAnswer(200, {}, b"["), "cannot be read (HTTP 200)"),
    ],
)
def test_without_keys_nothing_is_believed(published: HttpAnswer | Unreachable, words: str) -> None:
    assert words in refusal(id_token(nonce="nonce-1"), published)


@pytest.mark.requirement("EMA-08")
def test_a_renewal_stays_with_its_account() -> None:
    expected = Expected(IDP, "mcphost-idp", subject="u-2")
    assert "is for another account than before" in refusal(id_token(), expected=expected)


@pytest.mark.requirement("EMA-08")
@pytest.mark.parametrize("signed_in", [None, int(NOW) - 200, True])
def test_a_step_up_demands_a_fresh_sign_in(signed_in: int | None) -> None:
    expected = Expected(IDP, "mcphost-idp", max_age=60)
    assert "does not say that you signed in just now" in refusal(id_token(auth_time=signed_in), expected=expected)
