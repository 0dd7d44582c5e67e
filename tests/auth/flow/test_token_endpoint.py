"""Faulty registrations and token responses: how they end, and what is shown of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from mcphost.auth import masking
from mcphost.auth.flow.oauth import refresh
from mcphost.auth.flow.registration import hosted_document
from mcphost.auth.flow.steps import HttpAnswer, HttpExchange
from mcphost.auth.flow.token_endpoint import read_tokens
from mcphost.auth.ports import ClientOrigin, OAuthSettings, SignInConsent
from mcphost.auth.storage.credentials import Credentials
from mcphost.errors import SignInFailed
from tests.auth.flow.flows import ISSUER, NOW, SERVER, TOKEN, World, document, issuer_document


@pytest.mark.hostile("O16")
@pytest.mark.requirement("AUTH25-10", "AUTH-20")
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"redirect_uris": ["https://evil.example.com/"]}, "another redirect address"),
        ({"redirect_uris": "http://127.0.0.1"}, "another redirect address"),
        ({"redirect_uris": []}, "another redirect address"),
        ({"redirect_uris": ["http://127.0.0.1:1/callback"]}, "another redirect address"),
        ({"client_id": 12345}, "not a text"),
        ({"client_id": "a\r\nX: y"}, "cannot be used"),
        ({"client_id": "\u202e"}, "cannot be used"),
        ({"client_id": ""}, "cannot be used"),
        ({"client_id": None}, "cannot be used"),
        ({"client_id": {"a": 1}}, "not a text"),
        ({"client_id": "x" * 5000}, "cannot be used"),
        ({"client_secret": "a\nb"}, "cannot be used"),
        ({"client_secret": 7}, "cannot be used"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, r"cannot give \(private_key_jwt\)"),
        ({"token_endpoint_auth_method": "\x1b[2J"}, r"cannot give \(␛"),
        (
            {"token_endpoint_auth_method": "client_secret_basic"},
            r"\(client_secret_basic\) and gave none.*oauth\.client_id",
        ),
        ({"token_endpoint_auth_method": ["none"]}, "not a text"),
    ],
)
def test_a_registration_of_something_else_is_not_used(answer: dict[str, Any], says: str) -> None:
    world = World.usual()
    world.places[f"{ISSUER}/register"] = lambda fetch: document({"client_id": "c", **(fetch.body or {}), **answer}, 201)
    with pytest.raises(SignInFailed, match=says):
        world.sign_in()
    assert not world.visits


def test_a_registration_may_omit_the_redirect_port() -> None:
    """RFC 8252 section 7.3: authorization servers ignore it."""
    world = World.usual()

    def register(fetch: HttpExchange) -> HttpAnswer:
        uris = [uri.replace(":40000", "") for uri in (fetch.body or {})["redirect_uris"]]
        return document({"client_id": "c", "redirect_uris": uris}, 201)

    world.places[f"{ISSUER}/register"] = register
    world.sign_in()
    assert world.visits[0]["redirect_uri"].startswith("http://127.0.0.1:40000/")


@pytest.mark.parametrize("refused", [True, False])
def test_a_server_that_wants_localhost_leads_to_its_setting(refused: bool) -> None:
    def register(fetch: HttpExchange) -> HttpAnswer:
        uris = [uri.replace("127.0.0.1", "localhost") for uri in (fetch.body or {})["redirect_uris"]]
        if uris != (fetch.body or {})["redirect_uris"] and refused:
            return document({"error": "invalid_redirect_uri"}, 400)
        return document({"client_id": "c", "redirect_uris": uris}, 201)

    world = World.usual()
    world.places[f"{ISSUER}/register"] = register
    with pytest.raises(SignInFailed) as told:
        world.sign_in()
    assert 'set oauth.redirect_host = "localhost"' in f"{told.value} {world.plans[-1].problem}"
    world.sign_in(settings=OAuthSettings(redirect_host="localhost"))
    assert world.visits[0]["redirect_uri"].startswith("http://localhost:40000/")


@pytest.mark.requirement("AUTH-34", "AUTH-50")
def test_the_client_document_repeats_its_url_and_redirect_uri() -> None:
    made = hosted_document("https://me.example.com/c.json", "http://127.0.0.1:8765/callback")
    assert made["client_id"] == "https://me.example.com/c.json"
    assert made["redirect_uris"] == ["http://127.0.0.1:8765/callback"]
    assert (made["client_name"], made["token_endpoint_auth_method"]) == ("mcphost", "none")
    assert "refresh_token" in made["grant_types"]


def test_another_port_in_the_configuration_makes_a_new_registration() -> None:
    world = World.usual()
    known = Credentials().with_grant(world.sign_in())
    world.sign_in(known=known, settings=OAuthSettings(redirect_port=8765))
    assert world.plans[1].client is ClientOrigin.REGISTER
    assert world.plans[1].redirect_uri.startswith("http://127.0.0.1:8765/")


# Tokens.


@pytest.mark.hostile("O14", "O15")
def test_invalid_scopes_are_dropped_from_every_source() -> None:
    world = World.usual(choose=lambda plan: SignInConsent((*plan.scopes, "admin")))
    world.places[f"{ISSUER}/token"] = TOKEN | {"scope": 'a \ud800 b"c \x1b[2J d\\e ' + " ".join(map(str, range(200)))}
    grant = world.sign_in(challenge='Bearer scope="good \u202ebad"')
    assert world.visits[0]["scope"] == "good"
    assert "names scopes that cannot be asked for: ⟨U+202E⟩bad" in world.warnings()
    assert grant.scopes[:2] == ("a", "0")
    assert len(grant.scopes) == 100
    grant.model_dump_json()


@pytest.mark.hostile("O15")
def test_repeated_403s_ask_for_old_and_new_scopes_only() -> None:
    """Nothing is forgotten, and nothing asked for twice."""
    world, known = World.usual(), Credentials()
    for number in range(4):
        known = known.with_grant(
            world.sign_in(
                challenge=f'Bearer error="insufficient_scope", scope="s{number} s{number}"', status=403, known=known
            )
        )
    assert [visit["scope"] for visit in world.visits] == ["s0", "s0 s1", "s0 s1 s2", "s0 s1 s2 s3"]
    assert world.plans[-1].granted == ("s0", "s1", "s2")


@pytest.mark.parametrize("kind", ["EC", "RSA"])
@pytest.mark.requirement("AUTH-52")
def test_a_client_assertion_is_for_one_issuer_and_two_minutes(kind: str) -> None:
    key: Any = ECKey.generate_key("P-384") if kind == "EC" else RSAKey.generate_key(2048)
    pem = key.as_pem(private=True).decode()
    settings = OAuthSettings(client_id="machine", private_key=pem, grant="client_credentials")
    world = World.usual()
    world.places[f"{ISSUER}/.well-known/oauth-authorization-server"] = issuer_document(
        token_endpoint_auth_methods_supported=["private_key_jwt"]
    )
    grant = world.sign_in(settings=settings)
    world.sign_in(settings=settings)
    forms = world.bodies("/token")
    assert forms[0]["grant_type"] == "client_credentials"
    assert forms[0]["resource"] == SERVER
    assert forms[0]["client_assertion_type"].endswith(":jwt-bearer")
    tokens = [jwt.decode(form["client_assertion"], key, algorithms=["ES384", "RS256"]) for form in forms]
    claims = dict(tokens[0].claims)
    assert tokens[0].header["alg"] == {"EC": "ES384", "RSA": "RS256"}[kind]
    assert claims.pop("jti") != tokens[1].claims["jti"]
    times = {"iat": int(NOW), "exp": int(NOW) + 120}
    assert claims == {"iss": "machine", "sub": "machine", "aud": ISSUER, **times}
    assert pem.splitlines()[1] not in (repr(settings) + grant.model_dump_json())


KEYS: dict[str, Callable[[], str]] = {
    "words": lambda: "some-words",
    "half a PEM": lambda: "-----BEGIN PRIVATE KEY-----",
    "a secret": lambda: str(OctKey.generate_key(256).as_dict()["k"]),
    "a curve that is not used": lambda: ECKey.generate_key("secp256k1").as_pem(private=True).decode(),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_that_cannot_be_used_is_said_so_without_showing_it(key: Callable[[], str]) -> None:
    made = key()
    settings = OAuthSettings(client_id="machine", private_key=made, grant="client_credentials")
    with pytest.raises(SignInFailed, match="not an EC or RSA key in PEM") as told:
        World.usual().sign_in(settings=settings)
    assert made not in str(told.value)


def test_client_credentials_without_an_id_are_explained() -> None:
    with pytest.raises(SignInFailed, match=r"needs oauth\.client_id"):
        World.usual().sign_in(settings=OAuthSettings(client_secret="s", grant="client_credentials"))


def test_a_changed_client_secret_is_sent() -> None:
    world = World.usual()
    old, new = (OAuthSettings(client_id="mine", client_secret=secret) for secret in ("old-secret", "new-secret"))
    grant = world.sign_in(settings=old)
    assert "old-secret" not in grant.model_dump_json()
    world.places[f"{ISSUER}/token"] = TOKEN
    world.work(refresh(grant, new, lambda: NOW))
    assert world.asked[-1].headers["Authorization"] != world.asked[-2].headers["Authorization"]


@pytest.mark.parametrize("error", [None, "", False, 0, [], {}])
def test_an_error_that_names_nothing_refuses_no_token(error: object) -> None:
    assert read_tokens(document({**TOKEN, "error": error}), SENT).access_token == TOKEN["access_token"]


@pytest.mark.parametrize("error", ["invalid_grant", True, {"message": "no"}, ["no"]])
def test_an_error_of_any_shape_refuses_a_token(error: object) -> None:
    with pytest.raises(SignInFailed, match="refused a token"):
        read_tokens(document({**TOKEN, "error": error}), SENT)


# What is shown.

SENT = HttpExchange(
    "t", f"{ISSUER}/token", "token", {"Authorization": "Basic abc"}, {"code": "canary-code", "x": "y z"}
)


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09")
@pytest.mark.parametrize(
    "answer",
    [
        {"access_token": "canary-token", "note": "canary-token again", "list": [{"refresh_token": "canary-refresh"}]},
        {"Access_Token": "canary-token", "a": {"ID_TOKEN": {"deep": "canary-token"}}},
        {"error": "x", "error_description": "the code canary-code was used"},
        {"access_token": 'canary"quoted', "echo": 'canary"quoted'},
        {"registration_access_token": ["canary-token"]},
    ],
)
def test_a_step_shows_everything_but_secrets(answer: Any) -> None:
    got = HttpAnswer(
        200, {"set-cookie": "canary-cookie", "x-echo": "canary-code", "x-other": "seen"}, document(answer).content
    )
    shown = f"{masking.request_headers(SENT)} {masking.request_body(SENT)} {masking.response_headers(SENT, got)}"
    shown += masking.response_body(SENT, got)
    assert "canary" not in shown
    assert "x=y z" in shown
    assert "seen" in shown


@pytest.mark.hostile("C10", "C11")
@pytest.mark.parametrize(
    "content",
    [b"access_token=canary", b"{", b"[" * 100_000, b'{"a":' * 400 + b"1" + b"}" * 400],
    ids=["a form", "half an object", "too deep", "deep"],
)
def test_unreadable_text_that_may_be_a_token_is_not_shown(content: bytes) -> None:
    assert "canary" not in masking.response_body(SENT, HttpAnswer(200, {}, content))
