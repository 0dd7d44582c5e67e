"""A sign-in over real sockets: what is asked of whom, what is kept, and what a party that misbehaves gets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from mcphost.auth import http as auth_http
from mcphost.auth.ports import OAuthSettings, SignInConsent, SignInPlan
from mcphost.auth.presenter import TokenPresenter
from mcphost.auth.storage.credentials import Credentials
from mcphost.errors import Declined, SignInFailed
from mcphost.transports.base import TransportLimits
from mcphost.transports.http.streamable import HttpTransport
from tests.auth.keychains import Shelf, locked, shelved
from tests.auth.people import NO_TLS, Echo, Guarded, Person, Web, browse, house
from tests.conftest import Until
from tests.transports.http.http_connection import WebLine

SECRET_CLIENT = OAuthSettings(client_id="machine", client_secret="canary-secret", grant="client_credentials")


@pytest.mark.hostile("C10")
@pytest.mark.requirement("AUTH-15", "AUTH-16", "AUTH-18", "AUTH-20", "AUTH-24", "SEC-04", "SEC-09")
async def test_requests_carry_the_token_and_nothing_shows_it(
    until: Until,
) -> None:
    """No step that a person is shown holds a secret, and all of them are known to whoever masks."""
    with house(Guarded(inner=Echo())) as home:
        person = Person()
        standing = await home.sign_in(person)
        assert standing.issuer == home.web.url.removesuffix("/mcp")
        line = WebLine(home.web, HttpTransport(home.web.url, TransportLimits(), auth=home.bearer))
        await line.transport.open(line.inbox)
        await line.shake_hands()
        listening = asyncio.ensure_future(line.transport.listen())
        assert await line.call("echo", text="x") == "x"
        await until(lambda: home.web.seen("GET")[-1].path == "/mcp")
        await line.transport.aclose()
        await asyncio.gather(listening, return_exceptions=True)
        calls, secrets = home.visits("/mcp"), home.secrets()
        assert {visit.method for visit in calls} >= {"POST", "GET", "DELETE"}
        assert {visit.headers["authorization"] for visit in calls} == {f"Bearer {token}" for token in home.guard.valid}
        assert {visit.headers.get("mcp-session-id") for visit in calls} == {None, "session-1!"}
        [redirected] = person.plans
        assert redirected.redirect_uri.startswith("http://127.0.0.1:")
        assert [visit.message["redirect_uris"] for visit in home.visits("/register")] == [[redirected.redirect_uri]]
        queries = [visit.path for visit in home.web.visits]
        assert len(secrets) >= 3
        assert not [
            secret for secret in secrets for text in (*queries, str(person.steps), str(standing)) if secret in text
        ]
        assert {token for token in secrets if token.startswith(("access", "refresh"))} <= home.learned


@pytest.mark.requirement("AUTH25-01", "AUTH25-07", "AUTH25-12", "AUTH25-09")
async def test_an_old_server_signs_in_at_its_own_endpoints_only() -> None:
    with house(
        Guarded(inner=Echo(stateless=True), old=True, more={"metadata": {"issuer": "http://127.0.0.1"}})
    ) as home:
        home.guard.more["metadata"]["issuer"] = home.web.url.removesuffix("/mcp")
        person = Person(choose=lambda plan: SignInConsent(("read",)))
        standing = await home.sign_in(person, 'Bearer scope="read write"')
        origin = home.web.url.removesuffix("/mcp")
        assert {exchange.url.startswith(f"{origin}/") for exchange in person.steps.values()} == {True}
        assert person.links[0].url.startswith(f"{origin}/authorize?")
        assert (standing.asked, person.plans[0].scopes) == (("read",), ("read", "write"))
        home.guard.valid.clear()  # it expired there
        async with home.client() as client:
            assert await home.ask(client) == 200
        assert (home.guard.renewed, len(home.visits("/authorize"))) == (1, 1)


@pytest.mark.requirement("AUTH25-10", "AUTH-17")
async def test_two_servers_share_no_client_and_no_token() -> None:
    with house() as one, house() as other:
        other.authorizer = one.authorizer
        await one.sign_in()
        one.authorizer.session("other", other.web.url, OAuthSettings())
        await one.authorizer.sign_in("other", "Bearer", 401, Person())
        session = one.authorizer.session("web", other.web.url, OAuthSettings())  # the entry's URL was changed
        moved = TokenPresenter(session)
        async with httpx.AsyncClient(auth=moved, verify=NO_TLS, trust_env=False) as client:
            assert await other.ask(client) == 401
        assert len(one.guard.clients) == len(other.guard.clients) == 1
        seen = [str(visit) for visit in other.web.visits]
        assert not [token for token in one.secrets() for text in seen if token in text]


DOCUMENTS = [
    ("huge", "larger than 256 kB"),
    ("endless", "larger than 256 kB"),
    ("drips", r"no whole answer within 0\.3 s"),
    ("silent", r"no whole answer within 0\.3 s"),
    ("redirects", "HTTP 302"),
    ("redirects-with-body", "HTTP 307"),
    ("gzip", "compressed"),
    ("bomb", "compressed"),
    ("not-json", r"it is not JSON \(application/json\); it begins with '{␛"),
    ("deep", "is not JSON"),
    ("list", "not a JSON object"),
    ("down", "HTTP 503"),
    ("hangs-up", "disconnected"),
    ("huge-head", "Receive buffer too long"),
]
NO_ANSWERS = ("redirects", "redirects-with-body", "down", "not-json")
ANSWERS = [
    *((name, words.replace("256", "64")) for name, words in DOCUMENTS if name not in NO_ANSWERS),
    ("redirects", r"gave no token \(HTTP 302\)"),
    ("redirects-with-body", r"gave no token \(HTTP 307\)"),
    ("down", "try again later"),
    ("not-json", r"is not JSON \(application/json\)$"),
    ("html", "is not JSON"),
    ("deep-enough", "refused a token"),
    ("invalid-grant", r"refused a token \(invalid_grant\): no ␛"),
]


@pytest.mark.hostile("O06", "O14")
@pytest.mark.requirement("SEC-10", "AUTH-24")
@pytest.mark.parametrize(
    ("place", "spoiled", "words"),
    [
        *(("resource", *each) for each in DOCUMENTS),
        *(("metadata", *each) for each in DOCUMENTS),
        *(("token", *each) for each in ANSWERS),
        ("register", "endless", "cannot be reached to register: its answer is larger than 64 kB"),
    ],
)
async def test_a_misbehaving_party_ends_the_sign_in_with_a_reason(
    place: str, spoiled: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes, times and redirects of every document."""
    if "no whole answer" in words:
        for kind in auth_http.SECONDS:
            monkeypatch.setitem(auth_http.SECONDS, kind, 0.3)
    person = Person()
    with house(Guarded(spoiled={place: spoiled})) as home:
        with pytest.raises(SignInFailed, match=words) as told:
            await home.sign_in(person)
        assert "\x1b" not in str(told.value)
        assert not home.visits("/elsewhere")
        assert not (await home.authorizer.status("web")).signed_in
        shown = [str(step) for step in person.steps.values()]
        assert not [secret for secret in home.secrets() for text in shown if secret in text]


@pytest.mark.parametrize(("refreshes", "asked"), [(True, ("read",)), (False, ("read", "offline_access"))])
async def test_a_refresh_token_shows_that_its_scope_was_granted(refreshes: bool, asked: tuple[str, ...]) -> None:
    offline = {"metadata": {"scopes_supported": ["offline_access"]}}
    with house(Guarded(refreshes=refreshes, more=offline)) as home:
        assert (await home.sign_in(challenge='Bearer scope="read"')).asked == asked
        assert "scope=read+offline_access" in home.visits("/authorize")[0].path


@pytest.mark.hostile("C08")
async def test_a_locked_keychain_is_the_reason_for_no_sign_in() -> None:
    shelf = Shelf()
    shelf.before = locked
    with house(keychain=shelved(shelf)) as home:
        home.authorizer.session("web", home.web.url, home.settings)
        standing = await home.authorizer.status("web")
        assert (standing.signed_in, standing.problem) == (False, "the keychain cannot be asked: it is locked")
        assert (await home.sign_in()).problem == ""


async def test_after_a_redirected_registration_a_client_id_is_asked_for() -> None:
    person = Person(choose=lambda plan: SignInConsent(plan.scopes, client_id="typed"))
    with house(Guarded(spoiled={"register": "redirects"}, clients={"typed": ""})) as home:
        assert (await home.sign_in(person)).client_id == "typed"
        assert "HTTP 302" in person.plans[1].problem
        assert not home.visits("/elsewhere")


async def test_a_web_page_is_not_metadata_and_the_next_url_is_tried() -> None:
    with house(Guarded(spoiled={"resource": "html"})) as home:
        assert (await home.sign_in()).signed_in


async def test_no_cookie_of_one_answer_goes_with_the_next_request() -> None:
    with house(Guarded(spoiled={"resource": "cookie"})) as home:
        with pytest.raises(SignInFailed):
            await home.sign_in()
        home.guard.spoiled = {}
        await home.sign_in()
        assert not any("cookie" in visit.headers for visit in home.web.visits)


# Ending it.


class Undecided(Person):
    async def agree(self, plan: SignInPlan) -> SignInConsent:
        self.plans.append(plan)
        await asyncio.Event().wait()
        return SignInConsent(())


@pytest.mark.hostile("O11")
@pytest.mark.parametrize("at", ["resource", "metadata", "agree", "register", "visit", "token"])
async def test_a_cancelled_sign_in_leaves_no_port_and_no_token(at: str, until: Until) -> None:
    guard = Guarded(spoiled={at: "silent"})
    person = Undecided() if at == "agree" else Person(browse=None if at == "visit" else browse)
    with house(guard) as home:
        signing = asyncio.ensure_future(home.sign_in(person))
        place = {"resource": "/.well-known/oauth-protected-resource/mcp"}.get(at, f"/{at}")
        place = "/.well-known/oauth-authorization-server" if at == "metadata" else place
        reached = {"agree": lambda: person.plans, "visit": lambda: person.links}.get(at, lambda: home.visits(place))
        await until(reached)
        signing.cancel()
        await asyncio.wait([signing], timeout=2)
        assert signing.cancelled()
        assert await home.store.read("web") == Credentials()
        for plan in person.plans:
            with pytest.raises(OSError, match="onnect"):
                await asyncio.open_connection("127.0.0.1", urlsplit(plan.redirect_uri).port)


async def test_a_person_who_declines_ends_it_and_nothing_was_registered() -> None:
    def decline(plan: SignInPlan) -> SignInConsent:
        raise Declined("no", by="user", rule="")

    with house() as home:
        with pytest.raises(Declined):
            await home.sign_in(Person(choose=decline))
        assert not home.guard.clients


async def test_a_browser_that_never_comes_back_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcphost.auth.authorizer.CALLBACK_SECONDS", 0.1)
    with house() as home, pytest.raises(SignInFailed, match=r"did not come back.*sign out of this server first"):
        await home.sign_in(Person(browse=None))


# The way back.


async def test_the_address_can_be_pasted_and_a_wrong_one_is_asked_for_again(until: Until) -> None:
    async def elsewhere(url: str) -> str:
        """A browser on another machine."""
        async with httpx.AsyncClient(verify=NO_TLS, trust_env=False) as browser:
            return str((await browser.get(url)).headers["location"])

    person = Person(browse=None)
    with house() as home:
        signing = asyncio.ensure_future(home.sign_in(person))
        await until(lambda: person.links)
        wrong = ["", "http://[", "https://127.0.0.1/?code=1&state=x", "?" + "a=1&" * 40, "\udc80?state=\udc80"]
        for text in wrong:
            person.pasted.put_nowait(text)
        person.pasted.put_nowait(f"  {await elsewhere(person.links[0].url)}\n")
        assert (await signing).signed_in
        assert len(person.problems) == len(wrong) + 1
        assert all(person.problems[1:])


@pytest.fixture
def taken_port() -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()[1]


@pytest.mark.hostile("O11")
async def test_a_port_that_was_asked_for_and_is_taken_is_said_so(taken_port: int) -> None:
    said = pytest.raises(SignInFailed, match=f"port {taken_port} .* already in use; free it")
    with house(settings=OAuthSettings(redirect_port=taken_port)) as home, said:
        await home.sign_in()


async def test_a_taken_redirect_port_leads_to_a_new_registration(taken_port: int) -> None:
    with house() as home:
        await home.sign_in()
        held = await home.store.read("web")
        issuer, [client] = next(iter(held.clients)), held.clients.values()
        old = client.model_copy(update={"redirect_uri": f"http://127.0.0.1:{taken_port}/callback/x"})
        await home.store.write("web", held.model_copy(update={"clients": {issuer: old}}))
        person = Person()
        await home.sign_in(person)
        assert len(home.guard.clients) == 2
        assert urlsplit(person.plans[0].redirect_uri).port != taken_port


@pytest.mark.parametrize("code", ["invalid_client", "unauthorized_client"])
async def test_a_forgotten_client_is_registered_again(code: str) -> None:
    with house() as home:
        await home.sign_in()
        home.guard.clients.clear()
        home.guard.unknown_client = code
        with pytest.raises(SignInFailed, match=f"{code}.*; the next sign-in registers mcphost again"):
            await home.sign_in()
        assert (await home.sign_in()).signed_in
        assert len(home.visits("/register")) == 2


# Signing out.


async def test_signing_out_revokes_and_forgets_every_token_and_client() -> None:
    with house() as home:
        await home.sign_in()
        assert await home.authorizer.sign_out("web") == "signed out; the tokens were revoked"
        assert (await home.store.read("web"), home.guard.current) == (Credentials(), set())
        assert await home.authorizer.sign_out("web") == "no one was signed in"
        async with home.client() as client:
            assert await home.ask(client) == 401


@pytest.mark.hostile("O16")
@pytest.mark.parametrize(
    ("before", "now", "asked"),
    [
        ("anna", "anna", False),
        ("anna", "\x1bbert", True),
        ("", "bert", False),
        ("anna", "", False),
        ("\ud800", "\ud800", False),
    ],
)
async def test_an_unwanted_other_account_is_revoked(before: str, now: str, asked: bool, until: Until) -> None:
    """A ``sub`` that changed."""

    def choose(plan: SignInPlan) -> SignInConsent:
        if plan.obtained:
            raise Declined("no", by="user")
        return SignInConsent(plan.scopes)

    with house(Guarded(subject=before)) as home:
        await home.sign_in()
        (held,) = (await home.store.read("web")).grants
        home.guard.subject = now
        person = Person(choose=choose)
        if not asked:
            await home.sign_in(person)
            assert len(person.plans) == 1
            return
        with pytest.raises(Declined):
            await home.sign_in(person)
        assert "another account than before: '␛bert', and it was 'anna'" in person.plans[1].problem
        assert (await home.store.read("web")).grants == (held,)
        await until(lambda: len(home.visits("/revoke")) == 1)
        agreeing = Person()
        await home.sign_in(agreeing)
        assert len(agreeing.plans) == 2
        assert [grant.subject for grant in (await home.store.read("web")).grants] == [now]


async def test_cancelling_the_account_question_revokes_its_token(until: Until) -> None:
    asked = asyncio.Event()

    class Undecided(Person):
        async def agree(self, plan: SignInPlan) -> SignInConsent:
            if plan.obtained:
                asked.set()
                await asyncio.Event().wait()
            return await super().agree(plan)

    with house(Guarded(subject="anna")) as home:
        await home.sign_in()
        (held,) = (await home.store.read("web")).grants
        home.guard.subject = "bert"
        signing_in = asyncio.create_task(home.sign_in(Undecided()))
        await asyncio.wait_for(asked.wait(), 30)
        signing_in.cancel()
        await asyncio.wait([signing_in])
        assert signing_in.cancelled()
        await home.authorizer.aclose()
        assert len(home.visits("/revoke")) == 1
        assert (await home.store.read("web")).grants == (held,)


@pytest.mark.hostile("O16")
@pytest.mark.requirement("AUTH-17")
@pytest.mark.parametrize(("other", "status"), [("", 200), ("https://other.example.com", 401)])
async def test_a_token_of_a_forbidden_issuer_is_not_sent(other: str, status: int) -> None:
    with house() as home:
        await home.sign_in()
        home.settings = replace(home.settings, issuer=other or home.web.url.removesuffix("/mcp"))
        async with home.client() as client:
            assert await home.ask(client) == status
        assert (await home.authorizer.status("web")).signed_in is (status == 200)
        assert ("authorization" in home.visits("/mcp")[-1].headers) is (status == 200)


@pytest.mark.hostile("C10")
@pytest.mark.parametrize(
    ("spoiled", "says"),
    [
        ("down", "answered HTTP 503"),
        ("redirects", "answered HTTP 302"),
        ("hangs-up", "cannot be asked: Server disconnected"),
        ("token-nested", "answered HTTP 401: quota used up"),
        ("token-error", "answered HTTP 400: access_token=••• is spent"),
        ("token-no-http", "cannot be asked: it did not answer in HTTP"),
    ],
)
async def test_tokens_that_cannot_be_revoked_are_forgotten_all_the_same(spoiled: str, says: str) -> None:
    with house(Guarded(spoiled={"revoke": spoiled})) as home:
        await home.sign_in()
        said = await home.authorizer.sign_out("web")
        assert "the tokens were not revoked, and end by themselves: 127.0.0.1:" in said
        assert says in said
        assert "CANARY" not in said
        assert await home.store.read("web") == Credentials()
        assert not home.visits("/elsewhere")


# Machines.


@pytest.mark.requirement("AUTH-52")
async def test_client_credentials_sign_in_by_themselves_and_renew() -> None:
    with house(settings=SECRET_CLIENT) as home:
        home.guard.clients["machine"] = "canary-secret"
        async with home.client() as client:
            assert await home.ask(client) == 200
            home.clock[0] += 3590
            assert await home.ask(client) == 200
        assert [parse_qs(visit.body.decode())["grant_type"] for visit in home.visits("/token")] == [
            ["client_credentials"]
        ] * 2
        assert not home.visits("/authorize")
        assert "canary-secret" not in (await home.store.read("web")).model_dump_json()
        assert "canary-secret" not in str(home.settings)


@pytest.mark.hostile("O15")
async def test_a_program_whose_secret_is_refused_is_not_tried_for_ever() -> None:
    with house(settings=SECRET_CLIENT) as home:
        async with home.client() as client:
            assert [await home.ask(client) for _ in range(5)] == [401] * 5
        assert len(home.visits("/token")) == 1
        assert "invalid_client" in (await home.authorizer.status("web")).problem


@pytest.mark.hostile("O16")
async def test_a_client_secret_goes_to_its_own_issuer_only() -> None:
    with house(settings=SECRET_CLIENT) as home, Web(Guarded()) as evil:
        home.guard.clients["machine"] = "canary-secret"
        async with home.client() as client:
            assert await home.ask(client) == 200
            home.guard.more["resource"] = {"authorization_servers": [evil.url.removesuffix("/mcp")]}
            home.guard.valid.clear()
            home.clock[0] += 60
            assert await home.ask(client) == 401
        assert [visit.method for visit in evil.visits] == ["GET"]
        assert "belongs to" in (await home.authorizer.status("web")).problem
