"""Sign-ins whose tokens are bound to a key: when they are, and what each token request then carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from mcphost.auth.dpop import Nonces, ProofKey
from mcphost.auth.flow.oauth import refresh
from mcphost.auth.flow.steps import HttpAnswer, HttpExchange
from mcphost.auth.ports import OAuthSettings
from mcphost.auth.storage.credentials import Credentials
from mcphost.errors import SignInFailed
from tests.auth.flow.flows import ISSUER, NOW, TOKEN, World, document, issuer_document, resource_document
from tests.auth.proofs import ProofCheck

PRM = "https://mcp.example.com/.well-known/oauth-protected-resource/v1/mcp"
ASM = f"{ISSUER}/.well-known/oauth-authorization-server"
ALGORITHMS = "dpop_signing_alg_values_supported"
INSISTS = "dpop_bound_access_tokens_required"
CHALLENGE = 'DPoP algs="ES256"'
REQUIRE = OAuthSettings(dpop="require")


class Issuer(World):
    """A world whose token endpoint verifies proofs, and wants the ``nonces`` that it gives, in turn."""

    def __init__(
        self, *nonces: str, lists: Any = ("ES256",), server: Mapping[str, Any] | None = None, kind: str = "DPoP"
    ) -> None:
        super().__init__(World.usual().places)
        self.places[PRM] = resource_document(**(server or {}))
        self.places[ASM] = issuer_document(ISSUER, **({} if lists is None else {ALGORITHMS: list(lists)}))
        self.places[f"{ISSUER}/token"] = self.token
        self.check, self.nonce, self.nonces, self.kind = ProofCheck(), "", [*nonces], kind
        self.keys: list[str] = []

    def token(self, fetch: HttpExchange) -> HttpAnswer:
        if proof := fetch.headers.get("DPoP"):
            self.keys.append(self.check.verify(proof, "POST", fetch.url, NOW, nonce=self.nonce))
            if self.nonces:
                self.nonce = self.nonces.pop(0)
                answer = document({"error": "use_dpop_nonce"}, 400)
                return HttpAnswer(400, {**answer.headers, "dpop-nonce": self.nonce}, answer.content)
        return document(TOKEN | {"token_type": self.kind if proof else "Bearer"})


@pytest.mark.requirement("DPOP-07")
@pytest.mark.parametrize(
    ("lists", "server", "challenge", "bound"),
    [
        (["ES256"], {}, "Bearer", False),
        (["ES256"], {}, CHALLENGE, True),
        (["ES256"], {}, "DPoP", True),
        (["ES256"], {ALGORITHMS: ["ES256"]}, "Bearer", True),
        (["ES256"], {INSISTS: True}, "Bearer", True),
        (["RS256", "ES256"], {ALGORITHMS: ["EdDSA"]}, "Bearer", False),
        (["RS256"], {}, CHALLENGE, False),
        ([], {}, CHALLENGE, False),
        (["ES256"], {}, 'DPoP algs="RS256"', False),
        (None, {ALGORITHMS: ["ES256"]}, CHALLENGE, False),
        ("ES256", {}, CHALLENGE, False),
    ],
)
def test_unasked_a_token_is_bound_only_if_both_sides_can(
    lists: Any, server: Mapping[str, Any], challenge: str, bound: bool
) -> None:
    world = Issuer(lists=lists, server=server)
    grant = world.sign_in(challenge=challenge)
    assert (grant.bound, grant.key is not None, world.plans[0].bound) == (bound, bound, bound)
    assert bool(world.keys) is bound
    assert world.visits[0].get("dpop_jkt") == (grant.key.thumbprint if grant.key else None)


@pytest.mark.requirement("DPOP-07")
def test_configured_off_nothing_is_bound_and_the_plan_warns() -> None:
    world = Issuer(server={INSISTS: True})
    grant = world.sign_in(challenge=CHALLENGE, settings=OAuthSettings(dpop="off"))
    assert (grant.bound, grant.key, world.keys) == (False, None, [])
    assert "takes only tokens that are bound to a key" in world.warnings()


@pytest.mark.requirement("DPOP-05")
@pytest.mark.parametrize(("settings", "server"), [(REQUIRE, {}), (OAuthSettings(), {INSISTS: True})])
def test_a_token_that_must_be_bound_and_is_not_is_discarded(settings: OAuthSettings, server: Mapping[str, Any]) -> None:
    with pytest.raises(SignInFailed, match="bound to no key, where one must be: not used"):
        Issuer(kind="Bearer", server=server).sign_in(settings=settings)


def test_the_plan_warns_of_a_token_that_is_bound_no_longer() -> None:
    grant = Issuer().sign_in(challenge=CHALLENGE)
    again = Issuer(lists=None)
    again.sign_in(challenge=CHALLENGE, known=Credentials().with_grant(grant))
    assert any("the token of before is bound to a key" in warning for warning in again.plans[0].warnings)


def test_required_binding_needs_an_algorithm_of_both() -> None:
    with pytest.raises(SignInFailed, match="needs proofs by ES256, and one of the servers takes RS256"):
        Issuer(lists=["RS256"]).sign_in(settings=REQUIRE)


@pytest.mark.requirement("DPOP-05")
def test_required_binding_is_part_of_the_registration() -> None:
    world = Issuer(lists=None)
    assert world.sign_in(settings=REQUIRE).bound
    assert world.bodies("/register")[0]["dpop_bound_access_tokens"] is True
    world = Issuer()
    world.sign_in(challenge=CHALLENGE)
    assert "dpop_bound_access_tokens" not in world.bodies("/register")[0]


@pytest.mark.requirement("DPOP-03")
def test_a_bearer_answer_keeps_the_key_for_the_refresh_token() -> None:
    world = Issuer(kind="Bearer")
    grant = world.sign_in(challenge=CHALLENGE)
    assert (grant.token_type, grant.key is not None) == ("Bearer", True)
    renewed = world.work(refresh(grant, OAuthSettings(), lambda: NOW))
    assert renewed.key == grant.key
    assert len(set(world.keys)) == 1
    assert len(world.keys) == 2


def test_a_bound_token_that_nothing_was_offered_for_is_refused() -> None:
    world = World.usual()
    world.places[f"{ISSUER}/token"] = TOKEN | {"token_type": "DPoP"}
    with pytest.raises(SignInFailed, match=r"as\.example\.com binds its token to a key, and mcphost offered it none"):
        world.sign_in()


@pytest.mark.requirement("DPOP-03")
def test_each_token_request_of_a_sign_in_is_proven_by_one_key() -> None:
    world = Issuer()
    grant = world.sign_in(challenge=CHALLENGE)
    kept = Credentials.model_validate_json(Credentials().with_grant(grant).model_dump_json(exclude_defaults=True))
    renewed = world.work(refresh(kept.grants[0], OAuthSettings(), lambda: NOW))
    again = world.sign_in(challenge="Bearer", known=Credentials().with_grant(renewed))
    assert {each.key for each in (grant, renewed, again)} == {grant.key}
    assert world.keys == [grant.key.thumbprint] * 3 if grant.key else False


@pytest.mark.requirement("DPOP-05")
@pytest.mark.parametrize(
    ("change", "words"), [({"lists": None}, "offers that no more"), ({"kind": "Bearer"}, "not used")]
)
def test_without_a_person_a_bound_token_stays_bound(change: dict[str, Any], words: str) -> None:
    settings = OAuthSettings(client_id="machine", client_secret="s", grant="client_credentials")
    known = Credentials().with_grant(Issuer().sign_in(challenge=CHALLENGE, settings=settings))
    with pytest.raises(SignInFailed, match=f'{words}.*oauth.dpop = "off" allows it'):
        Issuer(**change).sign_in(challenge=CHALLENGE, settings=settings, known=known)
    off = replace(settings, dpop="off")
    assert not Issuer(**change).sign_in(challenge=CHALLENGE, settings=off, known=known).bound


@pytest.mark.requirement("DPOP-05")
def test_a_bound_token_is_not_renewed_as_one_that_is_not() -> None:
    grant = Issuer().sign_in(challenge=CHALLENGE)
    with pytest.raises(SignInFailed, match="bound to no key"):
        Issuer(kind="Bearer").work(refresh(grant, OAuthSettings(), lambda: NOW))


@pytest.mark.requirement("DPOP-03")
def test_a_program_that_signs_in_by_itself_is_bound_as_well() -> None:
    world = Issuer("n1")
    settings = OAuthSettings(client_id="machine", client_secret="s", grant="client_credentials", dpop="require")
    assert world.sign_in(settings=settings).bound
    assert len(world.keys) == 2


@pytest.mark.requirement("DPOP-04")
def test_a_nonce_is_answered_once_and_then_remembered() -> None:
    nonces, world = Nonces(), Issuer("n1")
    grant = world.sign_in(challenge=CHALLENGE)
    assert [body["code"] for body in world.bodies("/token")] == ["code-1"] * 2
    with pytest.raises(SignInFailed, match="use_dpop_nonce"):
        Issuer("n1", "n2").sign_in(challenge=CHALLENGE)
    world = Issuer("n3")
    world.work(refresh(grant, OAuthSettings(), lambda: NOW, nonces))
    world.work(refresh(grant, OAuthSettings(), lambda: NOW, nonces))
    assert len(world.keys) == 3
    assert (nonces.of("issuer", f"{ISSUER}/token"), nonces.of("server", ISSUER)) == ("n3", "")


@pytest.mark.requirement("DPOP-04")
def test_without_a_nonce_to_use_no_request_is_repeated() -> None:
    world = Issuer("not a nonce")
    with pytest.raises(SignInFailed, match="use_dpop_nonce"):
        world.sign_in(challenge=CHALLENGE)
    assert len(world.keys) == 1


def test_a_refused_proof_names_the_clock() -> None:
    world = Issuer()
    refused = document({"error": "invalid_dpop_proof"}, 400)
    date = {"date": "Mon, 12 Jan 1970 13:39:40 GMT"}
    world.places[f"{ISSUER}/token"] = HttpAnswer(400, {**refused.headers, **date}, refused.content)
    with pytest.raises(SignInFailed, match=r"\(invalid_dpop_proof\); the clock of this machine is 7 min ahead"):
        world.sign_in(challenge=CHALLENGE)
    assert len(world.bodies("/token")) == 1


@pytest.mark.requirement("DPOP-06")
def test_the_private_key_is_among_the_secrets_of_a_grant() -> None:
    grant = Issuer().sign_in(challenge=CHALLENGE)
    assert isinstance(grant.key, ProofKey)
    assert grant.key.d in set(Credentials(grants=(grant,)).secrets())
    assert grant.key.d not in f"{grant!r}"
