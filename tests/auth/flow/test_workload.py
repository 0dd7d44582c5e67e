"""The sign-in of a workload: what is sent to whom, what is never sent, and what is not sent twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.auth.flow.steps import HttpAnswer, Unreachable
from mcphost.auth.jwt_claims import why_unfit
from mcphost.auth.ports import AssertionSource, OAuthSettings
from mcphost.errors import SignInFailed
from tests.auth.flow.flows import (
    ISSUER,
    NOW,
    SERVER,
    TOKEN,
    Answer,
    World,
    document,
    issuer_document,
    jwt,
    resource_document,
)

GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
METADATA = f"{ISSUER}/.well-known/oauth-authorization-server"
TOKENS = f"{ISSUER}/token"


def settings(**more: Any) -> OAuthSettings:
    source = AssertionSource(file="/run/token")
    return OAuthSettings(**{"grant": "workload", "issuer": ISSUER, "assertion": source, **more})


def world(assertion: str = "", **metadata: Any) -> World:
    made = World.usual(assertion=assertion or jwt())
    made.places[METADATA] = issuer_document(grant_types_supported=[GRANT], **metadata)
    return made


@pytest.mark.requirement("WIF-01")
def test_a_workload_gets_a_token_for_its_jwt_alone() -> None:
    home = world()
    grant = home.sign_in(settings=settings())
    [form] = home.bodies("/token")
    assert form == {"grant_type": GRANT, "assertion": home.assertion, "resource": SERVER}
    assert home.audiences == [ISSUER]
    assert (grant.access_token, grant.refresh_token, home.plans, home.visits) == ("token-1", "", [], [])
    assert home.assertion not in grant.model_dump_json()
    assert not home.bodies("/register")


def test_a_configured_client_and_scopes_are_sent_as_they_are() -> None:
    home = world()
    home.sign_in(settings=settings(client_id="ci", scopes=("read", "write")))
    [form] = home.bodies("/token")
    assert (form["client_id"], form["scope"]) == ("ci", "read write")


REFUSALS: Mapping[str, Answer] = {
    **{
        code: document({"error": code, "error_description": "no"}, 400)
        for code in ("invalid_grant", "invalid_scope", "unauthorized_client", "unsupported_grant_type")
    },
    "HTTP 403": document({}, 403),
    "is not JSON": HttpAnswer(404, {}, b"<h1>no</h1>"),
}


@pytest.mark.requirement("WIF-02")
@pytest.mark.parametrize("words", REFUSALS)
def test_a_refused_jwt_is_given_up_and_no_other_grant_is_tried(words: str) -> None:
    home = world(authorization_endpoint=f"{ISSUER}/authorize")
    home.places[TOKENS] = REFUSALS[words]
    with pytest.raises(SignInFailed, match=words) as caught:
        home.sign_in(settings=settings())
    assert home.urls().count(TOKENS) == 1
    assert home.refused == [home.assertion]
    assert (home.plans, home.visits) == ([], [])
    assert home.assertion not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        Unreachable("no network"),
        document({}, 503),
        document({"error": "slow_down"}, 429),
        document({"error": "invalid_dpop_proof"}, 400),
        HttpAnswer(307, {"location": "https://other.example"}, b""),
    ],
)
def test_a_failure_that_says_nothing_of_the_jwt_is_no_refusal(answer: Answer) -> None:
    home = world()
    home.places[TOKENS] = answer
    with pytest.raises(SignInFailed):
        home.sign_in(settings=settings())
    assert (home.urls().count(TOKENS), home.refused) == (1, [])


UNFIT = [
    ({"aud": "https://other.example"}, "is for https://other.example, not for https://as.example.com or"),
    ({"aud": ["sts", f"{ISSUER}/"]}, "is for sts and https://as.example.com/, not for"),
    ({"aud": None}, "names no audience"),
    ({"aud": 5}, "names no audience"),
    ({"exp": None}, "does not say when it expires"),
    ({"exp": True}, "does not say when it expires"),
    ({"exp": "9999999999"}, "does not say when it expires"),
    ({"exp": -(10**400)}, "does not say when it expires"),
    ({"exp": float("nan")}, "does not say when it expires"),
    ({"exp": NOW}, "expired 0 ms ago"),
    ({"exp": NOW - 180}, "expired 3 min ago: its platform has not renewed it; nothing was sent"),
]


@pytest.mark.requirement("WIF-04")
@pytest.mark.parametrize(("claims", "words"), UNFIT, ids=[words for _, words in UNFIT])
def test_a_jwt_that_is_expired_or_for_another_is_not_sent(claims: dict[str, Any], words: str) -> None:
    home = world(jwt(**claims))
    with pytest.raises(SignInFailed) as caught:
        home.sign_in(settings=settings())
    assert words in str(caught.value)
    assert str(caught.value).startswith("the JWT of the file /run/token ")
    assert not home.bodies("/token")


@pytest.mark.parametrize(
    ("wanted", "asked", "aud"),
    [
        ("issuer", ISSUER, ["x", ISSUER]),
        ("issuer", ISSUER, TOKENS),
        ("token_endpoint", TOKENS, TOKENS),
        ("api://mcp", "api://mcp", "api://mcp"),
    ],
)
def test_the_source_is_asked_for_the_configured_audience(wanted: str, asked: str, aud: object) -> None:
    home = world(jwt(aud=aud))
    home.sign_in(settings=settings(audience=wanted))
    assert home.audiences == [asked]


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=3), st.floats(max_value=1e11))
def test_only_a_fresh_jwt_for_one_of_the_audiences_is_fit(named: list[str], expires: float) -> None:
    fit = not why_unfit({"aud": named, "exp": expires}, {"a", "b"}, NOW)
    assert fit is (bool({"a", "b"} & {*named}) and expires > NOW)


# Where it goes.


@pytest.mark.requirement("WIF-05", "WIF-06")
@pytest.mark.parametrize(
    ("place", "said", "words"),
    [
        ("resource", {"authorization_servers": ["https://evil.example"]}, "the configuration allows 'https://as.exam"),
        ("resource", {"authorization_servers": ["http://as.example.com"]}, "is http, not https"),
        ("metadata", {"token_endpoint": "http://as.example.com/token"}, "is http, not https"),
        ("metadata", {"token_endpoint": "https://evil.example/token"}, 'oauth.token_endpoint = "https://evil.exam'),
        ("metadata", {"issuer": "https://evil.example"}, "is of issuer 'https://evil.example'"),
        ("metadata", {"grant_types_supported": ["authorization_code"]}, "jwt-bearer is not among them"),
        ("metadata", {"grant_types_supported": []}, "jwt-bearer is not among them"),
    ],
)
def test_the_source_is_not_asked_before_the_place_is_right(place: str, said: dict[str, Any], words: str) -> None:
    home = world()
    prm = "https://mcp.example.com/.well-known/oauth-protected-resource/v1/mcp"
    home.places |= {prm: resource_document(**said)} if place == "resource" else {METADATA: issuer_document(**said)}
    with pytest.raises(SignInFailed) as caught:
        home.sign_in(settings=settings())
    assert words in str(caught.value)
    assert (home.audiences, home.bodies("/token")) == ([], [])


def test_metadata_that_lists_no_grants_is_no_obstacle() -> None:
    home = World.usual(assertion=jwt())
    assert home.sign_in(settings=settings()).access_token == "token-1"


def test_another_token_endpoint_gets_the_jwt_once_it_is_configured() -> None:
    other = "https://sts.example.net/token"
    home = world(token_endpoint=other)
    home.places[other] = TOKEN
    home.sign_in(settings=settings(token_endpoint=other))
    assert [form["assertion"] for form in home.bodies("sts.example.net/token")] == [home.assertion]


@pytest.mark.requirement("WIF-06")
def test_an_mcp_server_never_gets_the_jwt() -> None:
    origin = "https://mcp.example.com"
    home = World(
        {
            f"{origin}/.well-known/oauth-protected-resource/v1/mcp": resource_document(authorization_servers=[origin]),
            f"{origin}/.well-known/oauth-authorization-server": issuer_document(origin, token_endpoint=SERVER),
        },
        assertion=jwt(aud=origin),
    )
    with pytest.raises(SignInFailed, match="names the MCP server itself as its token endpoint"):
        home.sign_in(settings=settings(issuer=origin))
    with pytest.raises(SignInFailed, match="not sent to a place that is only guessed"):
        World(assertion=jwt()).sign_in(settings=settings(issuer=origin))
    assert home.audiences == []
