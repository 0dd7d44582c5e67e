"""A secret that a sign-in sends or receives is in no error and in no recorded step, whatever shape a response has."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.auth import masking
from mcphost.auth.flow.oauth import refresh
from mcphost.auth.flow.steps import HttpAnswer, HttpExchange
from mcphost.auth.ports import OAuthSettings, SignInConsent
from mcphost.errors import SignInFailed
from tests.auth.flow.flows import ISSUER, NOW, TOKEN, World, issuer_document

CANARY = "tok-CANARY-1"
"""Has the shape of a token, and is where no name says that it is one."""

WORDS = "canary-in-plain-words"
"""Looks like words, and is in a member whose name says that it is a secret."""

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"

Shape = Callable[[HttpExchange], tuple[str, str | bytes]]
"""The content type and the body of the response to a request."""


def as_json(content: Any) -> Shape:
    return lambda fetch: (JSON, json.dumps(content))


def echo(fetch: HttpExchange) -> str:
    """All that was sent, as a form, as JSON and decoded."""
    basic = fetch.headers.get("Authorization", "").removeprefix("Basic ")
    decoded = base64.b64decode(basic).decode()
    return f"{urlencode(fetch.body or {})} {json.dumps(fetch.body)} {basic} {decoded}"


SHAPES: dict[str, Shape] = {
    "a form": lambda fetch: (FORM, f"access_token={CANARY}&scope=read&token_type=bearer"),
    "a form said to be JSON": lambda fetch: (JSON, f"access_token={CANARY}&token_type=bearer"),
    "cut JSON": lambda fetch: (JSON, f'{{"client_secret": "{WORDS}", "access_token": "{WORDS}", "client_id": "c'),
    "a JWT": lambda fetch: ("application/jwt", f"eyJhbGciOiJub25lIn0.{CANARY}.c2ln"),
    "a word": lambda fetch: ("text/plain", WORDS),
    "a content type": lambda fetch: (f"text/{CANARY}; token={CANARY}", ""),
    "no UTF-8": lambda fetch: (JSON, b"\xff" + WORDS.encode()),
    "a page with the form": lambda fetch: ("text/html", f"<form>{echo(fetch)}<input value={CANARY}>"),
    "a text": as_json(CANARY),
    "a list": as_json([WORDS]),
    "a number": as_json(12345678),
    "deep": lambda fetch: (JSON, '{"error": ' + "[" * 900 + f'"{WORDS}"' + "]" * 900 + "}"),
    "too deep": lambda fetch: (JSON, "[" * 50_000 + WORDS),
    "an error code": as_json({"error": CANARY}),
    "a named secret as error code": as_json({"error": f"access_token={CANARY}", "client_id": "c"}),
    "an error that echoes": lambda fetch: (JSON, json.dumps({"error": echo(fetch), "client_id": "c"})),
    "a description": as_json({"error": "invalid_grant", "error_description": f"the token {CANARY} is spent"}),
    "a description of what is beside it": as_json({
        "error": "x", "error_description": f"{WORDS} is not {WORDS.upper()}",
        "refresh_token": WORDS, "clientSecret": [WORDS.upper()],
    }),
    "a description that echoes": lambda fetch: (JSON, json.dumps({"error": "x", "error_description": echo(fetch)})),
    "an error object": as_json({"error": {"code": 401, "message": CANARY, "access_token": WORDS}}),
    "an error list": as_json({"error": [CANARY], "errors": [{"detail": CANARY}]}),
    "a message": as_json({"message": f"Bearer {CANARY}", "detail": [{"msg": CANARY, "loc": [CANARY]}]}),
    "wrong types": as_json({"access_token": {"value": WORDS}, "token_type": [CANARY], "client_id": {"a": CANARY}}),
    "a list of tokens": as_json({"access_token": [WORDS], "token_type": "Bearer", "client_id": [CANARY]}),
    "a token type": as_json({"access_token": WORDS, "token_type": CANARY}),
    "a token that no header carries": as_json({"access_token": f"{WORDS}\n", "token_type": "Bearer"}),
    "another spelling": as_json({"accessToken": WORDS, "Refresh-Token": WORDS, "api_key": WORDS, "value": CANARY}),
    "a name": as_json({CANARY: 1, "error": "x"}),
    "a secret list": as_json({"client_id": "c", "client_secret": [WORDS]}),
    "a method": as_json({"client_id": "c", "client_secret": WORDS, "token_endpoint_auth_method": CANARY}),
    "a redirect": as_json({"client_id": "c", "client_secret": WORDS, "redirect_uris": [f"http://x/{CANARY}"]}),
}  # fmt: skip

HEADERS = {
    "location": f"http://127.0.0.1/#access_token={CANARY}",
    "set-cookie": WORDS,
    "x-access-token": WORDS,
    "x-request": CANARY,
    "www-authenticate": f'Bearer error="{CANARY}"',
}

SECRET_CLIENT = OAuthSettings(client_id="mine", client_secret="canary of the client", registration="static")
STATUSES = (200, 201, 302, 400, 401, 500)


def spoil(shape: Shape, status: int, recorded: list[str]) -> Callable[[HttpExchange], HttpAnswer]:
    def answer(fetch: HttpExchange) -> HttpAnswer:
        kind, body = shape(fetch)
        content = body if isinstance(body, bytes) else body.encode()
        made = HttpAnswer(status, {"content-type": kind, **HEADERS}, content)
        recorded.append(f"{masking.response_headers(fetch, made)} {masking.response_body(fetch, made)}")
        recorded.append(f"{masking.request_headers(fetch)} {masking.request_body(fetch)}")
        recorded.append(f"{fetch!r} {made!r}")
        return made

    return answer


def back(sent: Mapping[str, str]) -> dict[str, Any]:
    return {"code": "canary code of words", "state": sent["state"]}


@pytest.mark.hostile("C10", "O14")
@pytest.mark.requirement("SEC-09")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("place", ["token", "register", "refresh"])
def test_no_response_of_a_sign_in_is_quoted_with_its_secrets(place: str, shape: Shape) -> None:
    """Also where the response is a registration that succeeds: what comes after it names none of its secrets."""
    settings = OAuthSettings() if place == "register" else SECRET_CLIENT
    for status in STATUSES:
        world = World.usual(redirect=back)
        world.places[f"{ISSUER}/.well-known/oauth-authorization-server"] = issuer_document(
            token_endpoint_auth_methods_supported=None if status == 401 else ["client_secret_post", "none"]
        )
        grant = None
        if place == "refresh":
            world.places[f"{ISSUER}/token"] = TOKEN | {"refresh_token": "canary of the renewal"}
            grant = world.sign_in(settings=settings)
        recorded: list[str] = []
        world.places[f"{ISSUER}/{'register' if place == 'register' else 'token'}"] = spoil(shape, status, recorded)
        try:
            if grant is None:
                world.sign_in(settings=settings)
            else:
                world.work(refresh(grant, settings, lambda: NOW))
        except SignInFailed as error:
            recorded += [str(error), error.code, repr(error)]
        recorded += [plan.problem for plan in world.plans]
        secrets = [body.get("code_verifier") for body in world.bodies("/token")] + [
            visit["state"] for visit in world.visits
        ]
        told = "\n".join(recorded)
        assert len(recorded) >= 4
        assert "canary" not in told.lower().replace("%20", " ").replace("+", " "), told
        assert not [secret for secret in secrets if secret and secret in told]


NAMES = st.sampled_from([
    "access_token", "refreshToken", "client_secret", "error", "error_description", "message", "detail", "errors",
    "token_type", "scope", "client_id", "redirect_uris", "token_endpoint_auth_method", "x", CANARY,
])  # fmt: skip
TEXTS = st.sampled_from([CANARY, f"the code {CANARY} is spent", f"Bearer {CANARY}", f"a={CANARY}&b", "Bearer", "x", ""])
DOCUMENTS = st.recursive(
    st.one_of(TEXTS, st.none(), st.booleans(), st.integers(0, 9)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=8,
)


@pytest.mark.hostile("C10", "O14")
@given(DOCUMENTS, st.sampled_from(STATUSES), st.sampled_from(["token", "register"]))
def test_no_document_is_quoted_with_its_secrets(content: Any, status: int, place: str) -> None:
    world, recorded = World.usual(), list[str]()
    world.places[f"{ISSUER}/{place}"] = spoil(as_json(content), status, recorded)
    try:
        world.sign_in()
    except SignInFailed as error:
        recorded += [str(error), error.code]
    told = "\n".join([*recorded, *(plan.problem for plan in world.plans)])
    assert "CANARY" not in told, told


@pytest.mark.hostile("C10")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("place", ["oauth-protected-resource/v1/mcp", "oauth-authorization-server"])
def test_a_token_in_the_place_of_metadata_is_not_quoted(place: str, shape: Shape) -> None:
    world, said = World.usual(), ""
    origin = ISSUER if "server" in place else "https://mcp.example.com"
    for status in (200, 500):
        world.places[f"{origin}/.well-known/{place}"] = spoil(shape, status, [])
        with pytest.raises(SignInFailed) as told:
            world.sign_in()
        said += str(told.value)
    assert "CANARY" not in said


@pytest.mark.hostile("C10", "O10")
@pytest.mark.parametrize("error", ["access_denied", "{code}", "code={code}", CANARY])
def test_no_redirect_is_quoted_with_its_code_or_state(error: str) -> None:
    def redirect(sent: Mapping[str, str]) -> dict[str, Any]:
        words = f"the code canary-code of {sent['state']} and access_token={CANARY}"
        named = error.format(code="canary-code")
        return {"error": named, "error_description": words, "code": "canary-code", "state": sent["state"]}

    world = World.usual(redirect=redirect)
    with pytest.raises(SignInFailed, match=r"as\.example\.com") as told:
        world.sign_in()
    assert "canary" not in str(told.value).lower()
    assert world.visits[0]["state"] not in str(told.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"error": "invalid_grant", "error_description": "the token expired"}, "(invalid_grant): the token expired"),
        ({"error": None, "message": "monthly quota used up"}, "(HTTP 400): monthly quota used up"),
        ({"error": "AADSTS700016: no such application"}, "(HTTP 400): AADSTS700016: no such application"),
        ({"error": {"code": 7, "message": "ask your administrator"}}, "(HTTP 400): ask your administrator"),
        ({"detail": [{"msg": "field required"}]}, "(HTTP 400): field required"),
        ({"errors": [{"title": "no such tenant"}]}, "(HTTP 400): no such tenant"),
        ({}, "(HTTP 400)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["token", "register"])
def test_the_reason_of_a_refusal_is_shown_in_any_wrapping(place: str, content: Any, words: str) -> None:
    world = World.usual(choose=lambda plan: SignInConsent(plan.scopes, client_id="typed"))
    world.places[f"{ISSUER}/{place}"] = HttpAnswer(400, {"content-type": JSON}, json.dumps(content).encode())
    try:
        world.sign_in()
        told = world.plans[-1].problem
    except SignInFailed as error:
        told = str(error)
    assert words in told
