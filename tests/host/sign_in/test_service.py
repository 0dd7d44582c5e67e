"""Signing in, as the host sees it: what begins one, who waits for it, and when enough is enough."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from mcphost.auth.ports import (
    AuthorizationLink,
    ClientOrigin,
    IdentityStatus,
    SignInConsent,
    SignInExchange,
    SignInPlan,
    SignInStatus,
    SignInUser,
)
from mcphost.config import Config
from mcphost.errors import (
    AuthorizationRequired,
    Declined,
    McphostError,
    SessionExpired,
    SignInFailed,
    UnknownName,
)
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.state import ServerState
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer, Question, SignInQuestion
from mcphost.host.sign_in.retry import SignInRetry
from mcphost.host.sign_in.service import SignInState
from mcphost.host.tool_calls.call import CallState
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.http.streamable import HttpTransport
from tests.conftest import Until
from tests.host.conftest import NO, YES, RecordingHost, ScriptedApprover, Step, settings
from tests.transports.http.http_connection import QUICK, Echo, Talk, Web

pytestmark = pytest.mark.slow

ALLOW = {"default": "allow"}
SAY = {"text": "x"}
PAGE = "https://as.example/authorize?state=s"
RESOURCE = {"contents": [{"uri": "memo:///x", "text": "read"}]}


class Door(Echo):
    """A server that lets in who has one of these tokens; ``wants`` names the scope that a method or tool needs."""

    def __init__(self, *tokens: str, wants: dict[str, str] | None = None) -> None:
        super().__init__(stateless=True, listens=False, capabilities={"tools": {}, "resources": {}})
        self.open_to = {f"Bearer {token}" for token in tokens}
        self.wants = wants or {}
        self.why = ""
        """A parameter of each challenge."""
        self.closed_to: set[str] = set()
        """Methods that need a token, where not all do."""
        self.refused: list[str] = []
        self.let_in: list[str] = []

    def __call__(self, talk: Talk) -> None:
        sent, message = talk.headers.get("authorization", ""), talk.visit.message or {}
        what = (message.get("params") or {}).get("name") or message.get("method", "")
        closed = message.get("method") in self.closed_to and not sent
        if closed or (self.open_to and sent not in self.open_to):
            self.refused.append(what)
            talk.whole(401, www_authenticate=f'Bearer scope="read"{self.why}')
        elif (scope := self.wants.get(what)) and scope not in sent:
            self.refused.append(what)
            talk.whole(403, www_authenticate=f'Bearer error="insufficient_scope", scope="{scope}"{self.why}')
        else:
            self.let_in.append(what)
            super().__call__(talk)

    def plain(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = super().plain(request)
        return {**answer, "result": RESOURCE} if request["method"] == "resources/read" else answer


def plan(**more: Any) -> SignInPlan:
    place = "https://as.example"
    known: dict[str, Any] = {"server": "web", "url": "u", "resource": "r", "issuer": place, "scopes": ("read", "write")}
    known |= {name: f"{place}/{name}" for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint")}
    known |= {"scopes_from": "nobody", "granted": (), "client": ClientOrigin.REGISTER, "client_id": ""}
    return SignInPlan(**known | {"redirect_uri": "http://127.0.0.1:1/callback"} | more)


class Keeper:
    """The port, and the token that the requests carry: each sign-in brings the next of ``tokens``, or fails."""

    def __init__(self, *tokens: str | McphostError, pastes: bool = False) -> None:
        self.tokens, self.pastes = list(tokens), pastes
        self.token = ""
        self.challenges: list[tuple[int, str]] = []
        self.pasted: list[str] = []
        self.choices: list[SignInConsent] = []

    async def sign_in(self, challenge: str, status: int, person: SignInUser) -> SignInStatus:
        self.challenges.append((status, challenge))
        person.step(1, SignInExchange("Look", "GET", "https://as.example/x"))
        self.choices.append(await person.agree(plan()))
        if self.pastes:
            self.pasted.append(await person.visit(AuthorizationLink(PAGE, "http://127.0.0.1:1/callback", 300), ""))
            person.step(2, SignInExchange("Exchange", "POST", "https://as.example/token"))
        token = self.tokens.pop(0)
        if isinstance(token, McphostError):
            raise token
        self.token = token
        return await self.status()

    async def status(self) -> SignInStatus:
        return SignInStatus(bool(self.token), "https://as.example", kept_in="in memory" if self.token else "")

    async def sign_out(self) -> str:
        self.token = ""
        return "signed out"


class Carried(httpx.Auth):
    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        if self.keeper.token:
            request.headers["Authorization"] = f"Bearer {self.keeper.token}"
        yield request


class Approver(ScriptedApprover):
    """Agrees to sign-ins by a script of their own."""

    def __init__(self, *script: Step, agrees: Answer | Callable[[SignInQuestion], Awaitable[Answer]] = YES) -> None:
        super().__init__(*script)
        self.agrees = agrees
        self.plans: list[SignInPlan] = []

    async def ask(self, question: Question) -> Answer:
        if not isinstance(question, SignInQuestion):
            return await super().ask(question)
        self.plans.append(question.plan)
        return self.agrees if isinstance(self.agrees, Answer) else await self.agrees(question)


@asynccontextmanager
async def hosted(
    door: Door, keeper: Keeper | None, approver: Approver | None = None, *, dependencies: Any = None, **more: Any
) -> AsyncIterator[RecordingHost]:
    policy = more.pop("policy", None)
    with Web(door) as web:

        async def open_transport(config: Config, name: str) -> Transport:
            return HttpTransport(web.url, TransportLimits(), timeouts=QUICK, auth=Carried(keeper) if keeper else None)

        async def port(config: Config, name: str) -> Keeper:
            assert keeper is not None
            return keeper

        parts = {"open_transport": open_transport, "sign_in": port if keeper else None, **(dependencies or {})}
        config = settings(web={"url": web.url, **more}, policy=policy)
        async with RecordingHost(config, approver or Approver(), **parts) as running:
            await running.servers.ready()
            if running.servers["web"].ready:
                await running.all_listed("web")  # a list still being fetched would be refused once the token changes
            yield running


async def outcome(waited: Awaitable[Any]) -> Any:
    try:
        return await waited
    except McphostError as error:
        return error


async def test_a_server_that_waits_for_a_sign_in_goes_on_by_itself_after_it(until: Until) -> None:
    keeper = Keeper("good", pastes=True)
    opened: list[str] = []

    async def open_url(url: str) -> str:
        opened.append(url)
        return "there is no screen"

    async with hosted(Door("good"), keeper, dependencies={"open_url": open_url}) as running:
        server = running.servers["web"]
        assert (server.state, server.advice) == (
            ServerState.NEEDS_SIGN_IN,
            "Nothing was done. Sign in with: mcphost login web --scope read",
        )
        assert not (await running.sign_ins.status("web")).signed_in
        sign_in = running.sign_ins.begin("web")
        assert running.sign_ins.begin("web") is sign_in
        await until(lambda: sign_in.state is SignInState.VISITING and sign_in.not_opened)
        assert (opened, sign_in.not_opened) == ([PAGE], "there is no screen")
        sign_in.paste("http://127.0.0.1:1/callback?code=c")
        assert (await sign_in.result()).signed_in
        await until(lambda: server.ready)
        assert keeper.pasted == ["http://127.0.0.1:1/callback?code=c"]
        assert keeper.challenges == [(401, 'Bearer scope="read"')]
        assert (await running.sign_ins.status("web")).kept_in == "in memory"
        assert [each.title for each in running.sign_ins.all[1].steps] == ["Look", "Exchange"]
        assert running.sign_ins.begin("web").why.www_authenticate == ""  # a new one, without a refusal


@pytest.mark.requirement("AUTH-37")
@pytest.mark.parametrize(
    ("lifetime", "questions"), [(Lifetime.ONCE, 2), (Lifetime.SESSION, 1)], ids=["asked again", "allowed till the end"]
)
async def test_a_call_waits_for_the_sign_in_it_needs_and_is_settled_anew(
    lifetime: Lifetime, questions: int, until: Until
) -> None:
    door, keeper, agreed = Door("good"), Keeper("good"), asyncio.Event()
    keeper.token = "good"

    async def agree(question: SignInQuestion) -> Answer:
        await agreed.wait()
        return Answer(allow=True, content=SignInConsent(("read",)))

    approver = Approver(Answer(allow=True, lifetime=lifetime, arguments={"text": "edited"}), agrees=agree)
    async with hosted(door, keeper, approver, tool_timeout_sec=1, tool_timeout_max_sec=1) as running:
        keeper.token = "old"
        call = running.tool_calls.call("web", "echo", SAY)
        await until(lambda: call.state is CallState.SIGNING_IN)
        await asyncio.sleep(1.1)  # longer than the call may take: its time does not run
        assert (call.doing, call.sign_in, call.state.ended) == ("waiting for a sign-in", 1, False)
        assert running.servers["web"].ready
        agreed.set()
        result = await call.result()
    assert result.raw["content"][0]["text"] == "edited"
    assert keeper.choices == [SignInConsent(("read",))]
    assert len(approver.questions) == questions
    if questions == 2:
        again = approver.questions[1]
        assert "refused this before it did anything, for want of a sign-in" in (again.note or "")
        assert again.arguments == {"text": "edited"}
    assert door.refused == ["echo"]


async def test_waiting_calls_share_one_sign_in(until: Until) -> None:
    door, keeper, agreed = Door("good"), Keeper("good"), asyncio.Event()
    keeper.token = "good"

    async def agree(question: SignInQuestion) -> Answer:
        await agreed.wait()
        return YES

    async with hosted(door, keeper, Approver(agrees=agree), policy=ALLOW) as running:
        keeper.token = "old"
        works = [asyncio.create_task(running.run("web", "echo", {"text": str(number)})) for number in range(4)]
        reading = asyncio.create_task(running.resources.read("web", "memo:///x"))
        await until(lambda: len(door.refused) == 5)
        agreed.set()
        assert [(await work).state for work in works] == [CallState.DONE] * 4
        assert (await reading).raw == RESOURCE
        assert len(running.sign_ins.all) == 1


async def test_a_call_goes_over_to_the_session_of_whoever_is_signed_in_now() -> None:
    """Servers tie a session to its user and client; a session they forgot is replaced."""
    door, keeper = Door("good"), Keeper("good")
    door.stateless, keeper.token = False, "good"
    door.capabilities = {"tools": {}}  # no resources: listing them could find the session gone before the call does

    async def agree(question: SignInQuestion) -> Answer:
        door.sessions.clear()
        return YES

    approver = Approver(agrees=agree)
    async with hosted(door, keeper, approver) as running:
        keeper.token = "old"
        assert (await running.run("web", "echo", SAY)).state is CallState.DONE
        notes = [question.note or "" for question in approver.questions]
        assert [note.partition(":")[0].rpartition(", ")[2] for note in notes] == [
            "",
            "for want of a sign-in; now you are signed in",
            "but the server refused this before it did anything",
        ]
        door.sessions.clear()
        call = await running.run("web", "echo", SAY)
        assert isinstance(call.error, SessionExpired)  # which no sign-in explains


@pytest.mark.requirement("AUTH-37")
async def test_after_a_sign_in_no_call_is_repeated_in_a_new_session() -> None:
    keeper = Keeper("good")
    async with hosted(Door("good"), keeper) as running:
        retry = SignInRetry(running.sign_ins, begins=True)
        operation = retry.operation(running.servers["web"], "echo")
        await operation.sign_in(AuthorizationRequired("Bearer"))
        with pytest.raises(SessionExpired, match="gone"):
            await operation.new_session(SessionExpired("gone", refused=False))
        await operation.new_session(SessionExpired("gone", refused=True))
        with pytest.raises(SessionExpired):  # a new session was waited for already
            await operation.new_session(SessionExpired("gone", refused=True))


async def test_a_call_to_a_server_that_waits_begins_the_sign_in() -> None:
    door, keeper = Door("good"), Keeper("good")
    async with hosted(door, keeper, policy=ALLOW) as running:
        assert running.servers["web"].state is ServerState.NEEDS_SIGN_IN
        assert (await running.run("web", "echo", SAY)).state is CallState.DONE
        assert (await running.resources.read("web", "memo:///x")).contents


@pytest.mark.parametrize(
    ("agrees", "token", "state", "words"),
    [
        (NO, "good", CallState.DECLINED, "signing in to web was declined"),
        (YES, SignInFailed("as.example did not sign you in"), CallState.ERROR, "did not sign you in"),
        (None, "good", CallState.DECLINED, "the sign-in to web was cancelled"),
    ],
    ids=["declined", "failed", "cancelled"],
)
async def test_a_failed_sign_in_ends_the_waiting_calls_with_its_reason(
    agrees: Answer | None, token: Any, state: CallState, words: str, until: Until
) -> None:
    asked = asyncio.Event()

    async def agree(question: SignInQuestion) -> Answer:
        await asked.wait()
        return agrees or YES

    door, keeper = Door("good"), Keeper(token)
    keeper.token = "good"
    async with hosted(door, keeper, Approver(agrees=agree), policy=ALLOW) as running:
        keeper.token = "old"
        reading = asyncio.create_task(outcome(running.resources.read("web", "memo:///x")))
        await until(lambda: 1 in running.sign_ins.all)  # what one cannot see waiting goes first
        calls = [running.tool_calls.call("web", "echo", SAY) for _ in range(2)]
        await until(lambda: all(call.state is CallState.SIGNING_IN for call in calls))
        if agrees is None:
            running.sign_ins.all[1].cancel()
        asked.set()
        for call in calls:
            await running.end_of(call)
            assert (call.state, words in str(call.error)) == (state, True)
        assert words in str(await reading)


async def test_stopping_a_call_does_not_stop_its_sign_in(until: Until) -> None:
    keeper = Keeper("good", pastes=True)
    keeper.token = "good"
    async with hosted(Door("good"), keeper, policy=ALLOW) as running:
        keeper.token = "old"
        call = running.tool_calls.call("web", "echo", SAY)
        await until(
            lambda: call.state is CallState.SIGNING_IN and running.sign_ins.all[1].state is SignInState.VISITING
        )
        call.cancel()
        await running.end_of(call)
        assert call.state is CallState.CANCELLED
        sign_in = running.sign_ins.all[1]
        assert sign_in.state is SignInState.VISITING
        sign_in.paste("?code=c")
        assert (await sign_in.result()).signed_in


@pytest.mark.hostile("O15")
@pytest.mark.requirement("AUTH-38")
async def test_rights_are_widened_twice_at_most_for_one_operation() -> None:
    """A server that refuses for ever leads to no endless loop of browsers, until the user begins again."""
    door = Door(wants={"echo": "more", "resources/read": "more"})
    door.why = ', error_description="ask your administrator"'
    keeper = Keeper(*(f"t{number}" for number in range(9)))
    async with hosted(door, keeper, policy=ALLOW) as running:
        calls = [await running.run("web", "echo", SAY) for _ in range(2)]
        for call in calls:
            assert call.state is CallState.ERROR
            assert "although they were widened 2 times (HTTP 403): ask your administrator; to try" in str(call.error)
        assert [status for status, _ in keeper.challenges] == [403, 403]
        assert 'scope="more"' in keeper.challenges[0][1]
        assert "widened 2 times" in str(await outcome(running.resources.read("web", "memo:///x")))
        assert len(keeper.challenges) == 4  # another operation has its own count
        door.wants.clear()
        await running.sign_ins.begin("web").result()
        assert (await running.run("web", "echo", SAY)).state is CallState.DONE


@pytest.mark.hostile("O15")
@pytest.mark.requirement("AUTH-22")
async def test_a_fresh_sign_in_that_is_refused_at_once_ends_the_call() -> None:
    door, keeper = Door("good"), Keeper("bad", "bad", "bad", "bad")
    keeper.token, door.why = "good", ', error_description="audience is another"'
    async with hosted(door, keeper, policy=ALLOW) as running:
        keeper.token = "old"
        call = await running.run("web", "echo", SAY)
        assert "refuses echo even with a fresh sign-in (HTTP 401): audience is another" in str(call.error)
        assert "refuses memo:///x even with" in str(await outcome(running.resources.read("web", "memo:///x")))
        assert len(keeper.challenges) == 2


@pytest.mark.parametrize("kind", ["begins none", "signs in nowhere", "no sign-in wanted", "a header of its own"])
async def test_where_no_sign_in_is_begun_the_refusal_is_the_answer(kind: str) -> None:
    keeper = Keeper("good") if kind != "signs in nowhere" else None
    door = Door()
    entries: dict[str, dict[str, Any]] = {
        "begins none": {"dependencies": {"begin_sign_ins": False}},
        "no sign-in wanted": {"oauth": {"enabled": False}},
        "a header of its own": {"http_headers": {"authorization": "Bearer x"}},
    }
    async with hosted(door, keeper, policy=ALLOW, **entries.get(kind, {})) as running:
        door.open_to = {"Bearer good"}
        call = await running.run("web", "echo", SAY)
        assert isinstance(call.error, AuthorizationRequired)
        assert not running.sign_ins.all
        assert isinstance(await outcome(running.resources.read("web", "memo:///x")), AuthorizationRequired)


async def test_a_list_that_needs_a_sign_in_is_read_after_it(until: Until) -> None:
    door, keeper = Door(), Keeper("good")
    async with hosted(door, keeper, policy=ALLOW) as running:
        server, call = running.servers["web"], running.tool_calls.call("web", "sleep", {})
        await until(lambda: "sleep" in door.let_in)
        door.open_to = {"Bearer good"}
        server.listings.tools.mark_stale()
        await until(lambda: "wants a sign-in" in (server.notice or ""))
        assert (server.ready, server.refusal is not None, call.state) == (True, True, CallState.RUNNING)
        await running.sign_ins.begin("web").result()
        await until(lambda: server.notice is None)
        assert (server.refusal, call.state) == (None, CallState.RUNNING)


@pytest.mark.requirement("AUTH-38")
async def test_a_refused_list_is_read_again_after_rights_were_widened(until: Until) -> None:
    door, keeper = Door(wants={"tools/list": "more"}), Keeper("t1", "with more", *("t",) * 9)
    async with hosted(door, keeper) as running:
        server = running.servers["web"]
        await until(lambda: server.ready and server.refusal is not None)
        assert (server.tools, running.sign_ins.all) == ([], {})  # no question about an unwanted list
        await running.resources.relist("web", CatalogKind.TOOLS)
        assert len(server.tools) == 5
        assert [status for status, _ in keeper.challenges] == [403, 403]
        door.wants["tools/list"] = "most"
        with pytest.raises(SignInFailed, match="refuses the list of tools for want of rights although"):
            await running.resources.relist("web", CatalogKind.TOOLS)
        assert len(keeper.challenges) == 4


async def test_a_server_whose_first_list_needs_a_sign_in_waits_for_one(until: Until) -> None:
    door, keeper = Door(), Keeper("good")
    door.closed_to = {"tools/list"}
    async with hosted(door, keeper) as running:
        assert running.servers["web"].state is ServerState.NEEDS_SIGN_IN
        await running.sign_ins.begin("web").result()
        await until(lambda: running.servers["web"].tools)


async def test_forgetting_a_server_says_what_was_forgotten(until: Until) -> None:
    async def more(config: Config, name: str) -> tuple[str, ...]:
        return (f"the transport of {name}",)

    keeper = Keeper()
    keeper.token = "good"
    async with hosted(Door("good"), keeper, dependencies={"forget": more}) as running:
        await running.run("web", "echo", SAY)
        told = await running.forget("web")
        assert told == ("signed out", "what you allowed or saw of 1 of its tools", "the transport of web")
        assert not (await running.sign_ins.status("web")).signed_in
        await until(lambda: running.servers["web"].state is ServerState.NEEDS_SIGN_IN)
        assert list(running.consent.approvals.saved_part()) == []


async def test_a_sign_in_ends_with_its_server_and_with_the_host(until: Until) -> None:
    keeper = Keeper("good", "good", pastes=True)
    async with hosted(Door("good"), keeper) as running:
        first = running.sign_ins.begin("web")
        await until(lambda: first.state is SignInState.VISITING)
        await running.apply(settings(web={"url": "http://127.0.0.1:9/other"}))
        await until(lambda: first.state is SignInState.CANCELLED)
        second = running.sign_ins.begin("web")
        await until(lambda: second.state is SignInState.VISITING)
    assert second.state is SignInState.CANCELLED


async def test_what_was_declined_is_written_down(tmp_path: Any) -> None:
    path = tmp_path / "audit.jsonl"
    dependencies = {"audit_path": path}
    async with hosted(Door("good"), Keeper("good"), Approver(agrees=NO), dependencies=dependencies) as running:
        with pytest.raises(Declined, match="signing in to web was declined"):
            await running.sign_ins.begin("web").result()
    *_, last = map(json.loads, path.read_text().splitlines())
    assert (last["server"], last["outcome"]) == ("web", "declined")


@dataclass
class ScriptedIdentity:
    """The port of an identity, whose sign-in gives both servers their token."""

    keeper: Keeper
    visits: int = 0

    async def sign_in(self, person: SignInUser) -> SignInStatus:
        await person.agree(plan(identity="corp"))
        self.visits += 1
        self.keeper.token = "good"
        return SignInStatus(True, "https://idp.example")

    async def status(self) -> IdentityStatus:
        return IdentityStatus("corp", "https://idp.example", bool(self.keeper.token))

    async def sign_out(self) -> tuple[str, Sequence[str]]:
        self.keeper.token = ""
        return "signed out", ("a", "b")


@pytest.mark.requirement("EMA-06")
async def test_one_sign_in_lets_every_server_of_the_identity_go_on(until: Until) -> None:
    identity = ScriptedIdentity(Keeper())

    async def opened(config: Config, name: str) -> ScriptedIdentity:
        return identity

    with Web(Door("good")) as web:

        async def open_transport(config: Config, name: str) -> Transport:
            return HttpTransport(web.url, TransportLimits(), timeouts=QUICK, auth=Carried(identity.keeper))

        oauth = {"grant": "enterprise", "identity": "corp", "client_id": "x"}
        config = Config.model_validate(
            {
                "servers": {name: {"url": web.url, "oauth": oauth} for name in "ab"},
                "identity": {"corp": {"issuer": "https://idp.example", "client_id": "y"}},
            }
        )
        parts = {"open_transport": open_transport, "identity": opened}
        async with RecordingHost(config, Approver(), **parts) as running:
            await running.servers.ready()
            servers = [running.servers[name] for name in "ab"]
            assert [server.state for server in servers] == [ServerState.NEEDS_SIGN_IN] * 2
            sign_in = running.identities.begin("corp")
            assert running.identities.begin("corp") is sign_in
            await sign_in.result()
            await until(lambda: all(server.ready for server in servers))
            assert (sign_in.state, identity.visits) == (SignInState.DONE, 1)
            assert (await running.identities.status("corp")).signed_in

            assert await running.identities.sign_out("corp") == "signed out"
            await until(lambda: all(server.state is ServerState.NEEDS_SIGN_IN for server in servers))
            with pytest.raises(UnknownName, match="in your configuration; there are corp"):
                running.identities.begin("crop")
