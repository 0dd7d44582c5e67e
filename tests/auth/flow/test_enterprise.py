"""The grant by an identity, step by step: what is sent to whom, each refusal, and what is never done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from mcphost.auth.flow.jwt_bearer import JWT_BEARER
from mcphost.auth.flow.steps import LOGIN, GetIdentity, HttpExchange, IdentityToken, SignInIdentity, StepUp
from mcphost.auth.ports import ClientOrigin, SignInConsent
from mcphost.auth.storage.credentials import ClientRegistration, Credentials
from mcphost.errors import SignInFailed
from tests.auth.flow.flows import ISSUER, NOW, SERVER, World, document, issuer_document, resource_document
from tests.auth.flow.flows import TOKEN as SERVER_TOKEN
from tests.auth.flow.identities import (
    AS_TOKEN,
    IDP,
    PLACE,
    SETTINGS,
    TOKEN,
    assertion_answer,
    places,
    provider_document,
)

AS_PLACE = f"{ISSUER}/.well-known/oauth-authorization-server"
PINNED = replace(SETTINGS, issuer=ISSUER)


def world(**more: Any) -> World:
    usual = World.usual()
    usual.places |= places() | more.pop("places", {})
    return replace(usual, **more)


def refused(code: str, **more: Any) -> Any:
    return document({"error": code, "error_description": "the words of the server"} | more, 400)


def then(*answers: Any) -> Callable[[HttpExchange], Any]:
    """One answer after the other; the last one again and again."""

    def upcoming() -> Iterator[Any]:
        yield from answers
        while True:
            yield answers[-1]

    left = upcoming()
    return lambda fetch: next(left)


def failure(signing_in: World, **more: Any) -> SignInFailed:
    with pytest.raises(SignInFailed) as caught:
        signing_in.sign_in(settings=more.pop("settings", SETTINGS), **more)
    assert signing_in.visits == []  # EMA-07: no page of the authorization server
    return caught.value


@pytest.mark.requirement("EMA-01")
def test_the_exchange_names_the_authorization_server_and_the_server() -> None:
    signing_in = world()
    signing_in.sign_in(settings=SETTINGS)
    (exchange,) = [fetch for fetch in signing_in.asked if fetch.url == TOKEN]
    assert exchange.body == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "audience": ISSUER,
        "resource": SERVER,
        "scope": "read",
        "subject_token": "id-token-1",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
    }
    assert exchange.headers["Authorization"].startswith("Basic ")
    assert exchange.home == IDP  # whose network may be another one than the server's


@pytest.mark.requirement("EMA-02")
def test_the_assertion_is_presented_with_the_client_of_that_server() -> None:
    signing_in = world()
    grant = signing_in.sign_in(settings=SETTINGS)
    (presented,) = [fetch for fetch in signing_in.asked if fetch.url == AS_TOKEN]
    wanted = {"grant_type": JWT_BEARER, "assertion": "id-jag-1", "resource": SERVER, "scope": "read"}
    assert presented.body == wanted
    (exchange,) = [fetch for fetch in signing_in.asked if fetch.url == TOKEN]
    assert presented.headers["Authorization"] != exchange.headers["Authorization"]
    assert (grant.access_token, grant.refresh_token) == ("token-1", "")
    assert (grant.identity, grant.identity_issuer, grant.issuer) == ("corp", IDP, ISSUER)


def test_the_metadata_document_may_be_the_client() -> None:
    url = "https://example.com/mcphost.json"
    signing_in = world()
    signing_in.sign_in(settings=replace(SETTINGS, client_id="", client_secret="", client_metadata_url=url))
    assert signing_in.bodies("as.example.com/token")[0]["client_id"] == url
    assert signing_in.plans[0].client is ClientOrigin.DOCUMENT


def test_the_plan_names_all_parties_and_needs_no_browser() -> None:
    signing_in = world()
    signing_in.sign_in(settings=SETTINGS)
    (plan,) = signing_in.plans
    assert (plan.identity, plan.identity_issuer, plan.account, plan.issuer) == ("corp", IDP, "ann", ISSUER)
    assert (plan.authorization_endpoint, plan.identity_problem, plan.scopes) == ("", "", ("read",))
    assert IDP in plan.urls


def test_without_a_sign_in_the_plan_leads_to_the_identity_provider() -> None:
    signing_in = world(identity=_nobody)
    signing_in.sign_in(settings=SETTINGS)
    (plan,) = signing_in.plans
    assert (plan.authorization_endpoint, plan.account) == (f"{IDP}/authorize", "")
    assert plan.identity_problem == "sign in at the identity provider"
    assert signing_in.identities == [GetIdentity(), SignInIdentity()]
    assert signing_in.bodies("tenant/token")[0]["subject_token"] == "id-token-new"


@pytest.mark.requirement("EMA-03")
def test_each_token_takes_a_new_assertion() -> None:
    signing_in = world(places={TOKEN: then(assertion_answer("jag-1"), assertion_answer("jag-2"))})
    known = Credentials().with_grant(signing_in.sign_in(settings=SETTINGS))
    signing_in.sign_in(settings=SETTINGS, known=known)
    assert [body["assertion"] for body in signing_in.bodies("as.example.com/token")] == ["jag-1", "jag-2"]
    assert "jag-1" not in known.model_dump_json()


@pytest.mark.requirement("EMA-03")
@pytest.mark.parametrize("place", [TOKEN, AS_TOKEN])
def test_a_refusal_that_repeats_a_secret_is_quoted_without_it(place: str) -> None:
    secrets = ("canary-id-token-0123", "canary-id-jag-0123", "idp-secret-1", "as-secret-1")

    def repeats(fetch: HttpExchange) -> Any:
        return refused("access_denied", error_description=f"{fetch.body} {secrets} {dict(fetch.headers)}")

    signing_in = world(
        places={TOKEN: assertion_answer("canary-id-jag-0123"), place: repeats},
        identity=lambda step: IdentityToken("canary-id-token-0123", "id_token"),
    )
    said = str(failure(signing_in))
    sent = "canary-id-token-0123" if place == TOKEN else "canary-id-jag-0123"
    assert (sent in said, "access_denied" in said) == (False, True)


@pytest.mark.requirement("EMA-04")
@pytest.mark.parametrize("endpoint", ["token_endpoint", "authorization_endpoint", "jwks_uri"])
def test_an_endpoint_of_the_provider_without_tls_is_refused(endpoint: str) -> None:
    signing_in = world(places={PLACE: provider_document(**{endpoint: "http://idp.example.com/x"})})
    assert f"the {endpoint} of idp.example.com is http, not https" in str(failure(signing_in))
    assert signing_in.bodies("/token") == []


@pytest.mark.requirement("EMA-04")
def test_no_assertion_is_part_of_a_url() -> None:
    signing_in = world()
    signing_in.sign_in(settings=SETTINGS)
    assert not any(secret in url for url in signing_in.urls() for secret in ("id-jag-1", "id-token-1"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"issuer": f"{IDP}/"}, f"is of issuer '{IDP}/'; if it is right, change identity.corp.issuer"),
        ({"issuer": None}, "is of issuer 'None'"),
        ({"token_endpoint": None}, "it names no token_endpoint"),
        (
            {"identity_chaining_requested_token_types_supported": ["x"]},
            "says that it makes no assertions for other authorization servers",
        ),
    ],
)
def test_unfit_metadata_of_the_provider_ends_it(more: dict[str, Any], words: str) -> None:
    assert words in str(failure(world(places={PLACE: provider_document(**more)})))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"grant_types_supported": ["authorization_code"]}, "jwt-bearer is not among them"),
        ({"authorization_grant_profiles_supported": ["x"]}, "(id-jag) is not among them: ask whoever runs it"),
    ],
)
def test_an_authorization_server_that_lists_no_such_grant_ends_it(more: dict[str, Any], words: str) -> None:
    signing_in = world(places={AS_PLACE: issuer_document(**more)})
    assert words in str(failure(signing_in))
    assert signing_in.bodies("/token") == []


@pytest.mark.requirement("EMA-02")
def test_an_assertion_stays_at_the_origin_of_its_authorization_server() -> None:
    other = "https://sts.example.net/token"
    places = {AS_PLACE: issuer_document(token_endpoint=other), other: document(SERVER_TOKEN)}
    signing_in = world(places=places)
    assert f'nothing was sent: if that is right, set oauth.token_endpoint = "{other}"' in str(failure(signing_in))
    assert signing_in.bodies("/token") == []
    assert world(places=places).sign_in(settings=replace(SETTINGS, token_endpoint=other)).access_token == "token-1"


@pytest.mark.parametrize(("issuer", "endpoint"), [(IDP, f"{IDP}/other"), (ISSUER, TOKEN)])
def test_a_server_may_not_name_the_identity_provider_as_its_own(issuer: str, endpoint: str) -> None:
    resource = "https://mcp.example.com/.well-known/oauth-protected-resource/v1/mcp"
    place = "https://idp.example.com/.well-known/oauth-authorization-server/tenant" if issuer == IDP else AS_PLACE
    signing_in = world(
        places={
            resource: resource_document(authorization_servers=[issuer]),
            place: issuer_document(issuer, token_endpoint=endpoint),
        }
    )
    settings = replace(SETTINGS, token_endpoint=TOKEN)
    assert "names your identity provider idp.example.com as its own" in str(failure(signing_in, settings=settings))
    assert signing_in.bodies("/token") == []


def test_the_token_of_the_identity_is_no_assertion() -> None:
    signing_in = world(places={TOKEN: assertion_answer("id-token-1")})
    assert "gave back the token of your identity as an assertion" in str(failure(signing_in))
    assert signing_in.bodies("as.example.com/token") == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"issued_token_type": "urn:x"}, "holds no assertion for another authorization server, but a token of type"),
        ({"issued_token_type": None}, "but a token without a type"),
        ({"access_token": ""}, "holds no assertion, or one that no header may carry"),
    ],
)
def test_another_token_is_no_assertion(more: dict[str, Any], words: str) -> None:
    assert words in str(failure(world(places={TOKEN: assertion_answer(**more)})))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (document({}, 503), "the identity provider idp.example.com gave no token (HTTP 503); try again later"),
        (document({}), "the identity provider idp.example.com's token answer (HTTP 200) holds no assertion for "),
    ],
)
def test_a_failure_of_the_provider_is_one_sentence(answer: Any, words: str) -> None:
    said = str(failure(world(places={TOKEN: answer})))
    assert said.startswith(words)
    assert not ("later" in said and "ask whoever" in said)


def test_a_type_that_repeats_the_proof_is_not_shown() -> None:
    signing_in = world(places={TOKEN: lambda fetch: assertion_answer(issued_token_type=fetch.body["subject_token"])})
    assert "but a token of type …" in str(failure(signing_in))


@pytest.mark.requirement("EMA-07")
@pytest.mark.parametrize("code", ["access_denied", "unauthorized_client", "invalid_target", "invalid_scope"])
def test_a_policy_that_says_no_ends_it(code: str) -> None:
    signing_in = world(places={TOKEN: refused(code)})
    error = failure(signing_in)
    assert f"the identity provider idp.example.com refused a token ({code}): the words of the server" in str(error)
    assert "its policy does not give you mcp.example.com for read" in str(error)
    assert len(signing_in.bodies("/token")) == 1


def test_each_of_the_two_clients_can_be_the_wrong_one() -> None:
    provider, server = world(places={TOKEN: refused("invalid_client")}), world()
    server.places[AS_TOKEN] = refused("invalid_client")
    assert "check client_id and its secret in [identity.corp]" in str(failure(provider))
    assert "check client_id and its secret in [servers.web.oauth]" in str(failure(server))
    assert len(server.bodies("as.example.com/token")) == 1


@pytest.mark.requirement("EMA-08")
def test_a_refused_identity_is_renewed_once() -> None:
    renewed = IdentityToken("id-token-2", "id_token")
    signing_in = world(
        places={TOKEN: then(refused("invalid_grant"), assertion_answer())},
        identity=lambda step: renewed if step.rejected else IdentityToken("id-token-1", "id_token"),
    )
    signing_in.sign_in(settings=SETTINGS)
    assert [body["subject_token"] for body in signing_in.bodies("tenant/token")] == ["id-token-1", "id-token-2"]
    assert signing_in.identities == [GetIdentity(), GetIdentity("id-token-1")]


@pytest.mark.requirement("EMA-08")
def test_an_identity_that_cannot_be_renewed_signs_in_again() -> None:
    signing_in = world(
        places={TOKEN: then(refused("invalid_grant"), assertion_answer())},
        identity=lambda step: _nobody(step) if step.rejected else IdentityToken("id-token-1", "id_token"),
    )
    signing_in.sign_in(settings=SETTINGS)
    assert signing_in.identities[-1] == SignInIdentity("id-token-1")


@pytest.mark.requirement("EMA-08")
def test_an_identity_is_not_renewed_without_end() -> None:
    signing_in = world(places={TOKEN: refused("invalid_grant")})
    assert "it is not content with your sign-in there" in str(failure(signing_in))
    assert [type(step) for step in signing_in.identities] == [GetIdentity, GetIdentity, SignInIdentity]
    assert len(signing_in.bodies("/token")) == 3


@pytest.mark.requirement("EMA-08")
def test_a_step_up_signs_in_with_the_values_that_are_named() -> None:
    wanted = refused("insufficient_user_authentication", acr_values="mfa", max_age=300)
    signing_in = world(places={TOKEN: then(wanted, assertion_answer())})
    signing_in.sign_in(settings=SETTINGS)
    assert signing_in.identities[1:] == [SignInIdentity("id-token-1", StepUp("mfa", 300))]


@pytest.mark.requirement("EMA-08")
@pytest.mark.parametrize("odd", [{"max_age": "soon"}, {"max_age": True}, {"max_age": -1}, {"acr_values": ["mfa"]}])
def test_odd_values_of_a_step_up_are_left_out(odd: dict[str, Any]) -> None:
    signing_in = world(places={TOKEN: then(refused("interaction_required", **odd), assertion_answer())})
    signing_in.sign_in(settings=SETTINGS)
    assert signing_in.identities[1:] == [SignInIdentity("id-token-1", StepUp())]


@pytest.mark.requirement("EMA-08")
def test_a_second_step_up_ends_it() -> None:
    signing_in = world(places={TOKEN: refused("login_required")})
    assert isinstance(failure(signing_in), SignInFailed)
    assert len(signing_in.bodies("/token")) == 2


@pytest.mark.requirement("EMA-07")
def test_a_refused_assertion_is_replaced_once() -> None:
    signing_in = world(places={AS_TOKEN: refused("invalid_grant")})
    error = str(failure(signing_in))
    assert "as.example.com does not take the word of idp.example.com: ask whoever runs the server" in error
    assert [len(signing_in.bodies(end)) for end in ("tenant/token", "as.example.com/token")] == [2, 2]


@pytest.mark.requirement("EMA-07")
def test_no_other_grant_is_tried() -> None:
    signing_in = world(places={AS_TOKEN: refused("unsupported_grant_type")})
    assert "is not set up for identity providers" in str(failure(signing_in))
    assert len(signing_in.bodies("as.example.com/token")) == 1


def test_without_a_person_a_new_issuer_is_not_trusted() -> None:
    signing_in = world(attended=False)
    assert failure(signing_in).code == "person"
    assert signing_in.bodies("/token") == []


def test_a_configured_issuer_needs_no_person() -> None:
    assert world(attended=False).sign_in(settings=PINNED).signed_in_at is None


@pytest.mark.parametrize("change", [{"identity": ""}, {"identity_issuer": "https://other.example.com"}])
def test_a_plan_of_another_identity_is_not_an_accepted_one(change: dict[str, str]) -> None:
    grant = world().sign_in(settings=SETTINGS).model_copy(update=change)
    assert failure(world(attended=False), known=Credentials().with_grant(grant)).code == "person"


def test_a_workload_before_without_a_client_is_not_in_the_way() -> None:
    grant = world().sign_in(settings=SETTINGS)
    other = grant.model_copy(update={"issuer": "https://old.example.com", "client": ClientRegistration(client_id="")})
    document = replace(SETTINGS, client_id="", client_secret="", client_metadata_url="https://me.example.com/m.json")
    assert world().sign_in(settings=document, known=Credentials().with_grant(other)).issuer == ISSUER


def test_an_accepted_plan_is_remembered_with_its_scopes() -> None:
    asking = replace(SETTINGS, scopes=("read", "write"))
    first = world(choose=lambda plan: SignInConsent(("read",))).sign_in(settings=asking)
    again = world(attended=False)
    grant = again.sign_in(settings=asking, known=Credentials().with_grant(first))
    assert [body["scope"] for body in again.bodies("/token")] == ["read", "read"]
    assert (grant.asked, grant.signed_in_at) == (("read",), NOW)


def test_a_missing_scope_is_added_after_a_question() -> None:
    held = Credentials().with_grant(world().sign_in(settings=SETTINGS))
    asking = world()
    asking.sign_in(challenge='Bearer scope="write"', status=403, settings=SETTINGS, known=held)
    assert asking.plans[0].scopes == ("read", "write")
    assert asking.bodies("tenant/token")[0]["scope"] == "read write"


def test_without_a_person_an_expired_identity_says_how_to_sign_in() -> None:
    error = failure(world(attended=False, identity=_nobody), settings=PINNED)
    assert (str(error), error.code) == ("sign in at the identity provider", LOGIN)


def test_without_a_person_a_step_up_says_what_is_wanted() -> None:
    wanted = refused("insufficient_user_authentication", acr_values="mfa")
    error = failure(world(attended=False, places={TOKEN: wanted}), settings=PINNED)
    assert error.code == LOGIN
    assert "(insufficient_user_authentication)" in str(error)


def _nobody(step: GetIdentity) -> IdentityToken:
    raise SignInFailed("sign in at the identity provider", code=LOGIN)
