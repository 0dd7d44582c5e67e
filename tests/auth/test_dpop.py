"""Proofs and nonces, and how requests to a server carry them."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc.jwk import import_key

from mcphost.auth import dpop
from mcphost.auth.dpop import Nonces, ProofKey, clock_advice
from mcphost.auth.flow.steps import HttpAnswer, HttpExchange, Unreachable
from mcphost.auth.ports import OAuthSettings
from mcphost.auth.presenter import TokenPresenter
from mcphost.auth.session import TokenSession
from mcphost.auth.storage.credentials import Credentials, TokenGrant
from mcphost.auth.storage.tokens import TokenStore
from mcphost.errors import HELD_SIGN_IN, HeldSignIn
from mcphost.transports.http import redirects
from tests.auth.flow.flows import document
from tests.auth.proofs import ProofCheck
from tests.auth.storage.grants import GRANT

NOW = 1_000_000.0
KEY = ProofKey.generate()
URL = GRANT.resource
BOUND = GRANT.model_copy(update={"token_type": "DPoP", "key": KEY})


# Proofs.


@pytest.mark.requirement("DPOP-01")
@settings(max_examples=20)
@given(
    st.sampled_from(["GET", "POST", "DELETE"]),
    st.from_regex(r"https://[a-z]{1,9}(:[1-9][0-9]{1,3})?(/[a-z%.~-]{0,9}){0,3}(\?[a-z=&]{0,9})?", fullmatch=True),
    st.text("abc-._~+/=", max_size=20),
    st.text("abc-", max_size=8),
)
def test_a_proof_verifies_for_exactly_its_request(method: str, url: str, token: str, nonce: str) -> None:
    proof = KEY.proof(method, url, NOW, token=token, nonce=nonce)
    assert ProofCheck().verify(proof, method, url, NOW, token=token, nonce=nonce) == KEY.thumbprint
    for other in ((f"{method}X", url, NOW), (method, f"{url.partition('?')[0]}/x", NOW), (method, url, NOW + 60)):
        with pytest.raises(AssertionError):
            ProofCheck().verify(proof, *other, token=token, nonce=nonce)


@pytest.mark.requirement("DPOP-01")
def test_no_two_proofs_have_one_id(monkeypatch: pytest.MonkeyPatch) -> None:
    from joserfc import jwt

    made: list[str] = []
    monkeypatch.setattr(jwt, "encode", lambda header, claims, key, algorithms: made.append(claims["jti"]))
    for _ in range(10_000):
        KEY.proof("POST", "https://h/mcp", NOW)
    assert len(set(made)) == 10_000


def test_a_thumbprint_is_that_of_the_standard() -> None:
    assert KEY.thumbprint == import_key({**KEY.public}).thumbprint()
    assert ProofKey.model_validate_json(KEY.model_dump_json()) == KEY
    assert KEY.d not in f"{KEY!r} {KEY} {BOUND!r} {Credentials(grants=(BOUND,))}"


@pytest.mark.parametrize(
    ("date", "advice"),
    [
        ("Mon, 12 Jan 1970 13:46:40 GMT", ""),
        ("Mon, 12 Jan 1970 13:39:40 GMT", "the clock of this machine is 7 min ahead of the server's"),
        ("Mon, 12 Jan 1970 13:53:40 GMT", "the clock of this machine is 7 min behind the server's"),
        ("never", ""),
        (None, ""),
    ],
)
def test_a_clock_that_is_off_is_named(date: str | None, advice: str) -> None:
    assert clock_advice(date, NOW) == advice


# Nonces.


@pytest.mark.requirement("DPOP-04")
@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["issuer", "server"]),
            st.sampled_from(["https://a", "https://a:443/x?y", "https://b/", "http://a"]),
            st.sampled_from(["n1", "n2", "", 'a"b', "a b", "x" * 1025, None]),
        ),
        max_size=12,
    )
)
def test_the_newest_sound_nonce_of_each_origin_and_role_counts(given: Sequence[tuple[Any, str, str | None]]) -> None:
    origins = {"https://a": "a", "https://a:443/x?y": "a", "https://b/": "b", "http://a": "plain"}
    nonces, model = Nonces(), dict[tuple[str, str], str]()
    for role, url, nonce in given:
        sound = nonce in ("n1", "n2")
        assert nonces.learn(role, url, nonce) is sound
        if sound and nonce:
            model[role, origins[url]] = nonce
        for one, place in itertools.product(("issuer", "server"), origins):
            assert nonces.of(one, place) == model.get((one, origins[place]), "")  # type: ignore[arg-type]


def test_nonces_do_not_pile_up() -> None:
    nonces = Nonces()
    for number in range(200):
        nonces.learn("server", f"https://h{number}", f"n{number}")
    assert nonces.of("server", "https://h199") == "n199"
    assert nonces.of("server", "https://h0") == ""


# Requests.

NONCE = 'DPoP error="use_dpop_nonce"', {"DPoP-Nonce": "n1"}
STALE = 'DPoP error="invalid_token"', dict[str, str]()
PLAIN = "Bearer", dict[str, str]()
WRONG = 'DPoP error="invalid_dpop_proof"', {"Date": "Mon, 12 Jan 1970 13:39:40 GMT"}


class Server:
    """Answers requests in turn, then with 200; verifies the proof of each. Its issuer renews tokens."""

    def __init__(self, *answers: tuple[str, dict[str, str]], bound: bool = True) -> None:
        self.answers, self.bound = [*answers], bound
        self.check, self.requests, self.renewals = ProofCheck(), list[httpx.Request](), 0
        self.nonce, self.token = "", GRANT.access_token

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(httpx.Request(request.method, request.url, headers=request.headers))
        scheme, _, token = request.headers["authorization"].partition(" ")
        assert (scheme, token) == ("DPoP" if self.bound else "Bearer", self.token)
        proofs = request.headers.get_list("dpop")
        assert len(proofs) == self.bound
        for proof in proofs:
            url = str(request.url)
            assert self.check.verify(proof, request.method, url, NOW, token=token, nonce=self.nonce) == KEY.thumbprint
        challenge, more = self.answers.pop(0) if self.answers else ("", {})
        self.nonce = more.get("DPoP-Nonce", self.nonce)
        return httpx.Response(401 if challenge else 200, headers={"WWW-Authenticate": challenge, **more})

    async def renew(self, fetch: HttpExchange) -> HttpAnswer | Unreachable:
        self.renewals += 1
        self.token = f"renewed-{self.renewals}"
        if self.bound:
            assert self.check.verify(fetch.headers["DPoP"], "POST", fetch.url, NOW) == KEY.thumbprint
        kind = "DPoP" if self.bound else "Bearer"
        return document({"access_token": self.token, "token_type": kind, "refresh_token": "r"})


async def session_of(server: Server, grant: TokenGrant, **more: Any) -> TokenSession:
    store = TokenStore(None, lambda secret: None)
    await store.write("web", Credentials(grants=(grant,)))
    session = TokenSession("web", URL, OAuthSettings(**more), store, lambda: NOW)
    session.steps.fetch = server.renew
    return session


Send = Callable[[httpx.AsyncClient], Any]


async def sent(server: Server, send: Send | None = None, grant: TokenGrant = BOUND) -> httpx.Response:
    session = await session_of(server, grant)
    async with httpx.AsyncClient(transport=httpx.MockTransport(server), auth=TokenPresenter(session)) as client:
        response: httpx.Response = await (send(client) if send else client.post(URL, json={}))
    return response


@pytest.mark.requirement("DPOP-02")
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_each_request_carries_the_token_and_a_new_proof(method: str) -> None:
    server = Server()

    async def twice(client: httpx.AsyncClient) -> httpx.Response:
        await client.request(method, f"{URL}?a=b")
        return await client.request(method, URL, headers={"Last-Event-ID": "7"})

    assert (await sent(server, twice)).status_code == 200
    assert len(server.check.seen) == 2


@pytest.mark.requirement("DPOP-04")
@pytest.mark.parametrize("answers", [each for n in range(4) for each in itertools.product((NONCE, STALE), repeat=n)])
async def test_a_message_is_repeated_once_for_a_nonce_and_once_for_a_token(answers: Sequence[Any]) -> None:
    """Whatever the order of the challenges, for a server that is never content with what it has."""
    server = Server(*answers, PLAIN, PLAIN)
    response = await sent(server)
    kinds = [each is NONCE for each in [*answers, PLAIN, PLAIN]]
    ends = next(n for n, kind in enumerate(kinds) if kind in kinds[:n])
    assert len(server.requests) == ends + 1
    assert response.status_code == 401
    assert server.renewals == (False in kinds[:ends])


@pytest.mark.requirement("DPOP-04")
async def test_a_nonce_is_answered_once() -> None:
    server = Server(NONCE)
    assert (await sent(server)).status_code == 200
    assert len(server.requests) == 2
    twice = await sent(Server(NONCE, NONCE))
    assert twice.status_code == 401
    held: HeldSignIn = twice.extensions[HELD_SIGN_IN]
    assert held.problem == "the server asked for its nonce in the proof, and did not take it"
    without = await sent(Server((NONCE[0], {})))
    assert without.extensions[HELD_SIGN_IN].problem.endswith("and gave none that a header may carry")


@pytest.mark.requirement("DPOP-04")
async def test_a_nonce_on_a_success_replaces_the_one_before() -> None:
    server = Server(NONCE, ("", {"DPoP-Nonce": "n2"}))

    async def twice(client: httpx.AsyncClient) -> httpx.Response:
        await client.post(URL)
        return await client.post(URL)

    assert (await sent(server, twice)).status_code == 200
    assert (server.nonce, len(server.requests)) == ("n2", 3)


async def test_a_wrong_proof_renews_nothing_and_names_the_clock() -> None:
    server = Server(WRONG)
    response = await sent(server)
    assert (response.status_code, server.renewals, len(server.requests)) == (401, 0, 1)
    clock = "the clock of this machine is 7 min ahead of the server's"
    assert response.extensions[HELD_SIGN_IN].proof_refused
    assert response.extensions[HELD_SIGN_IN].problem == f"the server does not take the proof of the key: {clock}"


async def nothing() -> AsyncIterator[bytes]:
    yield b""


@pytest.mark.requirement("DPOP-02")
async def test_a_redirect_on_the_origin_gets_a_new_proof_and_renewal() -> None:
    server = Server(STALE)

    def moved(request: httpx.Request) -> httpx.Response:
        response = server(request)
        if request.url.path.endswith("/there") or response.status_code != 200:
            return response
        return httpx.Response(307, headers={"Location": f"{URL}/there"}, content=nothing())

    session = await session_of(server, BOUND)
    async with httpx.AsyncClient(transport=httpx.MockTransport(moved), auth=TokenPresenter(session)) as client:
        server.answers = [("", {}), STALE]
        response = await redirects.send(client, client.build_request("POST", URL, json={}))
    assert response.status_code == 200
    assert [each.url.path.endswith("/there") for each in server.requests] == [False, True, True]
    assert server.renewals == 1


@pytest.mark.requirement("DPOP-02")
async def test_another_origin_gets_neither_token_nor_proof() -> None:
    seen: list[httpx.Headers] = []

    def other(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        return httpx.Response(200)

    session = await session_of(Server(), BOUND)
    async with httpx.AsyncClient(transport=httpx.MockTransport(other), auth=TokenPresenter(session)) as client:
        await client.post("https://other.example.com/mcp")
    assert not {"authorization", "dpop"} & {*seen[0]}


@pytest.mark.requirement("DPOP-02")
async def test_a_configured_header_goes_without_a_proof() -> None:
    seen: list[httpx.Headers] = []

    def other(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        return httpx.Response(200)

    session = await session_of(Server(), BOUND)
    mine = {"Authorization": "Bearer mine"}
    transport = httpx.MockTransport(other)
    async with httpx.AsyncClient(transport=transport, auth=TokenPresenter(session), headers=mine) as client:
        await client.post(URL)
    assert seen[0]["authorization"] == "Bearer mine"
    assert "dpop" not in seen[0]


async def test_a_bearer_token_needs_no_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpop, "ready_key", None)
    monkeypatch.setattr(ProofKey, "proof", None)
    server = Server(STALE, bound=False)
    assert (await sent(server, grant=GRANT)).status_code == 200
    assert server.renewals == 1


@pytest.mark.requirement("DPOP-05")
@pytest.mark.parametrize(("wanted", "grant"), [("require", GRANT), ("off", BOUND)])
async def test_a_token_that_the_configuration_excludes_is_not_sent(wanted: str, grant: TokenGrant) -> None:
    session = await session_of(Server(), grant, dpop=wanted)
    assert await session.grant_to_send() is None
