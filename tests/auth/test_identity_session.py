"""The sign-in of one identity: in the browser, shared, renewed, stepped up, and ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from mcphost.auth.assertions import AssertionReader
from mcphost.auth.authorizer import Authorizer
from mcphost.auth.flow.steps import LOGIN, Flow, FlowStep, GetIdentity, IdentityToken, SignInIdentity, StepUp
from mcphost.auth.identity_session import IdentitySession
from mcphost.auth.ports import AssertionSource, IdentitySettings
from mcphost.auth.storage.credentials import Credentials
from mcphost.auth.storage.identities import KeptIdentity
from mcphost.auth.storage.tokens import TokenStore
from mcphost.errors import ConfigError, SignInFailed
from tests.auth.flow.flows import NOW, World, document
from tests.auth.flow.identities import IDENTITY, IDP, PLACE, TOKEN, id_token, keys, provider_document
from tests.auth.storage.grants import GRANT

Answer = Callable[[dict[str, Any]], Any]


@dataclass
class Provider:
    """An identity provider that answers token requests in turn, and the session that talks to it."""

    answers: list[Answer]
    settings: IdentitySettings = IDENTITY
    clock: list[float] = field(default_factory=lambda: [NOW])
    learned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.world = World({PLACE: provider_document(), f"{IDP}/keys": keys(), TOKEN: self._token})
        self.store = TokenStore(None, self.learned.add).beside(KeptIdentity)
        self.visits = 0
        self.session = self.opened()

    def opened(self, settings: IdentitySettings | None = None) -> IdentitySession:
        reader = AssertionReader({"ID_TOKEN": id_token()}.get, lambda program: (program, {}), self.learned.add)
        made = IdentitySession(settings or self.settings, self.store, lambda: self.clock[0], assertions=reader)
        made.steps.fetch = self._fetch
        return made

    def _token(self, fetch: Any) -> Any:
        return self.answers.pop(0)(dict(fetch.body))

    async def _fetch(self, step: FlowStep) -> Any:
        await asyncio.sleep(0)
        return self.world._do(step)

    async def run(self, flow: Flow[KeptIdentity]) -> KeptIdentity:
        """The browser: it takes a moment."""
        self.visits += 1
        await asyncio.sleep(0)
        made: KeptIdentity = self.world.work(flow)
        return made

    async def sign_in(self, step: SignInIdentity = SignInIdentity()) -> IdentityToken:  # noqa: B008 - it is immutable
        return await self.session.sign_in(step, self.run)

    def gives(self, refresh_token: str = "refresh-1", **more: Any) -> Answer:
        """An answer whose ID token belongs to the visit before."""

        def answer(form: dict[str, Any]) -> dict[str, Any]:
            nonce = self.world.visits[-1]["nonce"] if form["grant_type"] == "authorization_code" else None
            claims = {"nonce": nonce, "email": "ann@corp", "iat": int(self.clock[0]), "exp": int(self.clock[0]) + 600}
            given = {"id_token": id_token(**{**claims, **more}), "refresh_token": refresh_token}
            return {"access_token": "unused-access-1", "token_type": "Bearer", **given}

        return answer


def provider(**more: Any) -> Provider:
    made = Provider([], **more)
    made.answers.append(made.gives())
    return made


def refused(code: str) -> Answer:
    return lambda form: document({"error": code}, 400)


async def failure(session: IdentitySession, step: GetIdentity | None = None) -> SignInFailed:
    with pytest.raises(SignInFailed) as caught:
        await session.token(step or GetIdentity())
    return caught.value


@pytest.mark.requirement("EMA-05")
async def test_the_sign_in_uses_pkce_state_and_nonce() -> None:
    idp = provider()
    token = await idp.sign_in()
    assert (token.kind, token.account) == ("id_token", "ann@corp")
    (asked,) = idp.world.visits
    assert idp.world.endpoints == [f"{IDP}/authorize"]
    assert (asked["scope"], asked["code_challenge_method"]) == ("openid offline_access", "S256")
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
    assert "resource" not in asked
    exchanged = idp.world.bodies("/token")[0]
    assert exchanged["redirect_uri"] == asked["redirect_uri"]
    assert "unused-access-1" not in (await idp.session.kept()).model_dump_json()


@pytest.mark.requirement("EMA-06")
async def test_two_servers_that_ask_at_once_share_one_visit() -> None:
    idp = provider()
    first, second = await asyncio.gather(idp.sign_in(), idp.sign_in())
    assert (first, idp.visits) == (second, 1)
    assert await idp.session.token(GetIdentity()) == first


@pytest.mark.requirement("EMA-06")
async def test_another_server_goes_on_where_a_visit_fails() -> None:
    idp = provider()
    idp.answers.insert(0, refused("access_denied"))
    outcomes = await asyncio.gather(idp.sign_in(), idp.sign_in(), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [SignInFailed, IdentityToken]
    assert idp.visits == 2


async def test_the_tokens_are_masked_from_then_on() -> None:
    idp = provider()
    token = await idp.sign_in()
    assert {token.token, "refresh-1"} <= idp.learned


@pytest.mark.requirement("EMA-08")
async def test_an_expired_token_is_renewed_once_for_all() -> None:
    idp = provider()
    await idp.sign_in()
    idp.clock[0] += 590
    idp.answers.append(idp.gives("refresh-2"))
    tokens = await asyncio.gather(*(idp.session.token(GetIdentity()) for _ in range(3)))
    assert len(set(tokens)) == 1
    assert idp.world.bodies("/token")[1:] == [
        {"grant_type": "refresh_token", "refresh_token": "refresh-1", "scope": "openid"}
    ]
    assert (await idp.session.kept()).refresh_token == "refresh-2"


@pytest.mark.requirement("EMA-08")
async def test_without_an_id_token_the_refresh_token_proves_it() -> None:
    idp = provider()
    await idp.sign_in()
    idp.clock[0] += 600
    idp.answers.append(
        lambda form: {"access_token": "x-access-1", "token_type": "Bearer", "refresh_token": "refresh-2"}
    )
    assert await idp.session.token(GetIdentity()) == IdentityToken("refresh-2", "refresh_token", "ann@corp")


@pytest.mark.requirement("EMA-08")
async def test_a_refresh_token_can_be_forbidden_as_proof() -> None:
    idp = provider(settings=replace(IDENTITY, subject="id_token"))
    await idp.sign_in()
    idp.clock[0] += 600
    idp.answers.append(lambda form: {"access_token": "x-access-1", "token_type": "Bearer"})
    assert (await failure(idp.session)).code == LOGIN


@pytest.mark.requirement("EMA-08")
async def test_a_refused_refresh_token_wants_a_sign_in() -> None:
    idp = provider()
    await idp.sign_in()
    idp.clock[0] += 600
    idp.answers.append(refused("invalid_grant"))
    error = await failure(idp.session)
    assert (error.code, "sign in with: mcphost login --identity corp" in str(error)) == (LOGIN, True)
    assert (await failure(idp.session)).code == LOGIN
    assert len(idp.world.bodies("/token")) == 2  # the refused one is not sent again


async def test_a_missing_refresh_token_is_replaced_by_no_id_token() -> None:
    idp = Provider([], settings=replace(IDENTITY, subject="refresh_token"))
    idp.answers.append(idp.gives(""))
    with pytest.raises(SignInFailed, match="gave no refresh token, and subject of identity corp takes no other"):
        await idp.sign_in()


async def test_a_provider_in_trouble_is_left_alone_for_a_while() -> None:
    idp = provider()
    await idp.sign_in()
    idp.clock[0] += 600
    idp.answers += [lambda form: document({}, 503), idp.gives()]
    assert "try again later" in str(await failure(idp.session))
    assert "try again later" in str(await failure(idp.session))
    idp.clock[0] += 30
    assert (await idp.session.token(GetIdentity())).kind == "id_token"


@pytest.mark.requirement("EMA-08")
async def test_no_refresh_token_is_spent_while_the_keys_are_missing() -> None:
    idp = provider()
    await idp.sign_in()
    idp.clock[0] += 600
    idp.world.places[f"{IDP}/keys"] = document({}, 503)
    assert "the keys of" in str(await failure(idp.session))
    assert len(idp.world.bodies("/token")) == 1


@pytest.mark.requirement("EMA-08")
async def test_a_step_up_visits_with_the_wanted_values() -> None:
    idp = provider()
    held = await idp.sign_in()
    idp.answers.append(idp.gives(auth_time=int(NOW)))
    await idp.sign_in(SignInIdentity(held.token, StepUp("mfa", 60)))
    assert (idp.world.visits[1]["acr_values"], idp.world.visits[1]["max_age"]) == ("mfa", "60")


async def test_another_account_must_sign_out_first() -> None:
    idp = provider()
    held = await idp.sign_in()
    idp.answers.append(idp.gives(sub="u-2", email="bob@corp"))
    with pytest.raises(SignInFailed, match="you signed in as 'bob@corp', and identity corp was 'ann@corp'"):
        await idp.sign_in(SignInIdentity(held.token))


async def test_a_changed_configuration_uses_no_old_tokens() -> None:
    idp = provider()
    await idp.sign_in()
    await idp.session.add_server("docs")
    other = idp.opened(replace(IDENTITY, client_id="another"))
    assert (await failure(other)).code == LOGIN
    assert (await other.status()).servers == ("docs",)


async def test_a_sign_out_names_the_servers_of_the_identity() -> None:
    idp = provider()
    await idp.sign_in()
    await idp.session.add_server("docs")
    kept, problem = await idp.session.sign_out()
    assert (kept.servers, problem) == (("docs",), "idp.example.com does not offer it")
    assert not (await idp.session.status()).signed_in


async def test_a_sign_out_that_meets_a_lock_is_finished_by_the_next() -> None:
    busy = {"b"}

    @asynccontextmanager
    async def lock(name: str) -> AsyncIterator[None]:
        if name in busy:
            raise ConfigError("another mcphost holds it")
        yield

    store = TokenStore(None, lambda secret: None, lock)
    authorizer, settings = Authorizer(store), IdentitySettings("corp", "", "")
    for server in "ab":
        await store.write(server, Credentials().with_grant(GRANT.model_copy(update={"identity": "corp"})))
        await authorizer.identity(settings).add_server(server)
    with pytest.raises(ConfigError):
        await authorizer.sign_out_identity(settings)
    busy.clear()
    assert await authorizer.sign_out_identity(settings) == ("the tokens of a, b are forgotten", ("a", "b"))
    assert (await store.read("b")).grants == ()
    assert await authorizer.sign_out_identity(settings) == ("no one was signed in", ())


@pytest.mark.parametrize("claims", [{"nonce": "other"}, {"aud": "other"}, {"exp": int(NOW) - 100}])
async def test_a_bad_id_token_signs_no_one_in(claims: dict[str, Any]) -> None:
    idp = provider()
    idp.answers.insert(0, idp.gives(**claims))
    with pytest.raises(SignInFailed, match="it is not used"):
        await idp.sign_in()
    assert await idp.session.kept() == KeptIdentity()


async def test_a_given_id_token_needs_no_sign_in() -> None:
    idp = provider(settings=replace(IDENTITY, id_token=AssertionSource(env="ID_TOKEN")))
    token = await idp.session.token(GetIdentity())
    assert (token.kind, token.account) == ("id_token", "u-1")
    assert "there is no newer one" in str(await failure(idp.session, GetIdentity(token.token)))
    with pytest.raises(SignInFailed, match="takes its ID token from the variable ID_TOKEN: no one signs in for it"):
        await idp.sign_in()
    idp.clock[0] += 601
    assert "expired 1.0 s ago" in str(await failure(idp.session))
