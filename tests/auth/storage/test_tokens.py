"""Token stores over keychains that are locked, slow, lying or missing; and races for one token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.auth.flow.steps import HttpAnswer, HttpExchange, Unreachable
from mcphost.auth.ports import OAuthSettings
from mcphost.auth.session import TokenSession
from mcphost.auth.storage import keychain, tokens
from mcphost.auth.storage.credentials import Credentials
from mcphost.auth.storage.keychain import Keychain, KeychainUnusable, NoKeychain
from mcphost.auth.storage.tokens import TokenStore
from mcphost.errors import SignInFailed
from tests.auth.flow.flows import document
from tests.auth.keychains import Forgetful, Lagging, Lying, Shelf, locked, shelved
from tests.auth.people import house
from tests.auth.storage.grants import GRANT, HELD, URL
from tests.conftest import Until


def store_over(shelf: Any, clock: list[float] | None = None) -> TokenStore:
    clock = clock or [0.0]
    return TokenStore(shelved(shelf), lambda secret: None, clock=lambda: clock[0])


async def token_of(session: TokenSession) -> str:
    grant = await session.grant_to_send()
    return "" if grant is None else grant.access_token


@pytest.mark.hostile("C10")
@pytest.mark.requirement("AUTH-18", "AUTH-49")
async def test_tokens_are_read_by_the_next_run_and_masked() -> None:
    shelf, learned = Shelf(), set[str]()
    await TokenStore(shelved(shelf), learned.add).write("web", HELD)
    assert learned == {"access-0", "refresh-0", "client-secret"}
    learned.clear()
    again = TokenStore(shelved(shelf), learned.add)
    assert await again.read("web") == HELD
    assert learned == {"access-0", "refresh-0", "client-secret"}
    assert again.place("web") == "in the keychain (Shelf)"
    for shown in (repr(HELD), str(GRANT), str(again), str(GRANT.client)):
        assert not [secret for secret in learned if secret in shown]


async def test_the_keychain_is_read_again_only_if_it_may_have_changed() -> None:
    shelf = Shelf()
    store = store_over(shelf)
    for _ in range(3):
        await store.read("web")
    assert shelf.calls == ["get"]
    await store.read("web", again=True)
    async with store.changing("web"):
        pass
    assert shelf.calls == ["get"] * 3


@pytest.mark.hostile("C09")
@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"grants": [{}]}', '{"grants": 7}', "parts 3 zz", "\ud800"])
async def test_an_item_that_something_else_wrote_is_as_good_as_none(text: str) -> None:
    shelf = Shelf()
    shelf.items["test web"] = text
    assert await store_over(shelf).read("web") == Credentials()


@pytest.mark.hostile("O16")
@pytest.mark.requirement("AUTH-45")
async def test_a_grant_of_another_issuer_replaces_the_old_one() -> None:
    """Once the second one ends the sign-in, no token of the first is sent, renewed or kept."""
    shelf = Shelf()
    store = store_over(shelf)
    second = GRANT.model_copy(
        update={
            "issuer": "https://other.example.com",
            "token_endpoint": "https://other.example.com/token",
            "access_token": "access-of-other",
            "refresh_token": "refresh-of-other",
        }
    )
    asked: list[HttpExchange] = []

    async def refuse(fetch: HttpExchange) -> HttpAnswer | Unreachable:
        asked.append(fetch)
        return document({"error": "invalid_grant"}, 400)

    for grant in (GRANT, second):
        async with store.changing("web") as held:
            await store.write("web", held.with_grant(grant))
    session = TokenSession("web", URL, OAuthSettings(), store, lambda: 0.0)
    session.steps.fetch = refuse
    assert await token_of(session) == "access-of-other"
    assert await session.replacement("access-of-other", "") is None
    assert await token_of(session) == ""
    assert await session.replacement("", "") is None
    assert [fetch.url for fetch in asked] == ["https://other.example.com/token"]
    kept = (await store_over(shelf).read("web")).grants
    assert kept == ()
    assert not [text for text in shelf.items.values() if "access-0" in text or "refresh-0" in text]


@pytest.mark.hostile("C08")
@pytest.mark.requirement("AUTH-18")
@pytest.mark.parametrize("shelf", [Forgetful(), Lying()], ids=["forgets", "lies"])
async def test_a_keychain_that_loses_secrets_is_not_relied_on(shelf: Shelf) -> None:
    """Tokens stay in memory, and it is said why."""
    store = store_over(shelf)
    assert await store.write("web", HELD) is False
    assert await store.read("web") == HELD
    assert store.place("web") == "in memory until mcphost ends: it does not give back what it was given"


@pytest.mark.hostile("C08")
async def test_an_unlocked_keychain_gets_the_writes_it_missed() -> None:
    shelf, clock = Shelf(), [0.0]
    shelf.before = locked
    store = store_over(shelf, clock)
    assert await store.read("web") == Credentials()
    assert store.unread("web") == "it is locked"
    assert await store.write("web", HELD) is False
    assert (store.unread("web"), store.place("web")) == ("", "in memory until mcphost ends: it is locked")
    assert len(shelf.calls) == 1  # not at each turn
    shelf.before = lambda call: None
    clock[0] += tokens.KEYCHAIN_PAUSE
    async with store.changing("web") as held:
        assert held == HELD
    assert store.place("web") == "in the keychain (Shelf)"
    assert await store_over(shelf).read("web") == HELD


@pytest.mark.hostile("C08")
async def test_tokens_behind_a_lock_are_found_once_it_is_open() -> None:
    """A first read that came too early does not force a new sign-in."""
    shelf, clock = Shelf(), [0.0]
    await store_over(shelf).write("web", HELD)
    shelf.before = locked
    store = store_over(shelf, clock)
    assert await store.read("web") == Credentials()
    shelf.before = lambda call: None
    clock[0] += tokens.KEYCHAIN_PAUSE
    assert await store.read("web") == HELD


@pytest.mark.hostile("C08")
async def test_a_slow_keychain_gets_one_call_at_a_time(monkeypatch: pytest.MonkeyPatch, until: Until) -> None:
    """A keychain may be asking its owner."""
    shelf, lag = Shelf(), Lagging()
    shelf.before = lag
    vault = shelved(shelf)
    with monkeypatch.context() as soon:
        soon.setattr(keychain, "SECONDS", 0.05)
        with pytest.raises(KeychainUnusable, match=r"not answer within 0\.05 s; it may be waiting for you"):
            await vault.read("web")
    with pytest.raises(KeychainUnusable, match="has not answered yet"):
        await vault.write("web", "x")
    assert shelf.calls == ["get"]
    lag.free.set()
    await until(lambda: vault._late is not None and not vault._late.is_alive())
    await vault.write("web", "x")
    assert await vault.read("web") == "x"


@pytest.mark.hostile("C08", "O17")
async def test_a_change_waits_longer_for_a_slow_keychain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that was renewed but not stored would be renewed once more by the next program."""
    monkeypatch.setattr(keychain, "SECONDS", 0.01)
    shelf, lag = Shelf(), Lagging()
    shelf.before = lag
    store = store_over(shelf)
    writing = asyncio.create_task(store.write("web", HELD))
    await asyncio.sleep(0)
    with pytest.raises(KeychainUnusable, match="not answer within"):  # as long as others wait
        await shelved(shelf).read("web")
    lag.free.set()
    assert await writing is True
    assert await store_over(shelf).read("web") == HELD


@pytest.mark.hostile("C08", "O17")
async def test_a_token_is_not_renewed_while_the_keychain_is_shut() -> None:
    """Another program may have used the refresh token that this one remembers."""
    shelf, clock, server = Shelf(), [0.0], Server([])
    await store_over(shelf).write("web", HELD.with_grant(GRANT))
    session = TokenSession("web", URL, OAuthSettings(), store_over(shelf, clock), lambda: clock[0])
    session.steps.fetch = server.answer
    assert await token_of(session) == "access-0"
    shelf.before = locked
    assert await session.replacement("access-0", "") is None
    assert (server.given, session.problem) == (0, "the keychain cannot be asked: it is locked")
    shelf.before = lambda call: None
    clock[0] += tokens.KEYCHAIN_PAUSE
    replaced = await session.replacement("access-0", "")
    assert replaced is not None
    assert replaced.access_token == "access-1"


@pytest.mark.hostile("C08")
async def test_without_a_keychain_tokens_stay_in_memory() -> None:
    def none() -> Any:
        asked.append(1)
        raise NoKeychain("this system has no keychain that mcphost knows")

    asked: list[int] = []
    store = TokenStore(Keychain("test", none), lambda secret: None, clock=iter(range(0, 10**6, 1000)).__next__)
    assert await store.write("web", HELD) is True
    assert await store.read("web", again=True) == HELD
    assert store.place("web").endswith("ends: this system has no keychain that mcphost knows")
    assert await store.write("web", Credentials()) is True
    assert asked == [1]
    told = TokenStore(None, lambda secret: None)
    await told.write("web", HELD)
    assert "set to use no keychain" in told.place("web")


async def test_signing_out_says_where_the_keychain_did_not_forget() -> None:
    shelf = Shelf()
    with house(keychain=shelved(shelf)) as home:
        await home.sign_in()
        shelf.before = locked
        with pytest.raises(SignInFailed, match="the keychain may hold them still: it is locked"):
            await home.authorizer.sign_out("web")
        assert home.guard.valid == set()
        shelf.before = lambda call: None
        home.clock[0] += tokens.KEYCHAIN_PAUSE
        assert await home.authorizer.sign_out("web") == "no one was signed in"
        assert shelf.items == {}


# Items larger than a keychain takes.


@pytest.mark.hostile("C09")
@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 20, 95])
async def test_a_large_secret_is_kept_in_parts_and_nothing_is_left_of_it(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keychain, "PART", 10)
    shelf = Shelf()
    vault = shelved(shelf)
    for number in (size, 45, size):
        await vault.write("web", str(number % 10) * number)
        assert await vault.read("web") == str(number % 10) * number
        assert max(map(len, shelf.items.values())) <= max(10, len("parts 10 12345678"))
        assert len(shelf.items) == (1 if number <= 10 else 1 + -(-number // 10))
    await vault.delete("web")
    await vault.delete("web")
    assert shelf.items == {}


async def test_a_secret_that_reads_like_a_list_of_parts_is_none() -> None:
    vault = shelved(Shelf())
    await vault.write("web", "parts 2 0123abcd")
    assert await vault.read("web") == "parts 2 0123abcd"


@pytest.mark.hostile("C09")
async def test_a_missing_part_means_signed_out_until_the_next_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An entry deleted meanwhile, a stale index."""
    monkeypatch.setattr(keychain, "PART", 10)
    shelf = Shelf()
    vault = shelved(shelf)
    await vault.write("web", "x" * 45)
    del shelf.items[next(name for name in shelf.items if name.endswith("/2"))]
    assert await vault.read("web") is None
    await vault.write("web", "y" * 25)
    assert await vault.read("web") == "y" * 25
    assert len(shelf.items) == 4


@pytest.mark.hostile("C09")
async def test_a_write_that_fails_half_way_leaves_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keychain, "PART", 10)
    shelf = Shelf()
    vault = shelved(shelf)
    await vault.write("web", "x" * 45)
    before = dict(shelf.items)

    def fail_at_the_third(call: str) -> None:
        if shelf.calls.count("set") == 6 + 3 and call == "set":
            raise OSError("the disk is full\x1b[2J")

    shelf.before = fail_at_the_third
    with pytest.raises(KeychainUnusable, match=r"it fails \(OSError: the disk is full␛"):
        await vault.write("web", "y" * 55)
    assert shelf.items == before


# Races: three mcphosts, one keychain, and an authorization server that counts.

Outcome = Literal["good", "down", "lost", "killed"]


@dataclass
class Server:
    """Rotates; ends the family where a token comes twice. ``lost``: how many answers never arrived."""

    outcomes: list[Outcome]
    current: str = "refresh-0"
    given: int = 0
    reused: int = 0
    lost: int = 0
    spent: set[str] = field(default_factory=set)

    async def answer(self, fetch: HttpExchange) -> HttpAnswer | Unreachable:
        outcome = self.outcomes.pop() if self.outcomes else "good"
        await asyncio.sleep(0)
        if outcome == "down":
            return HttpAnswer(503, {}, b"")
        found = self._renewed(str((fetch.body or {})["refresh_token"]))
        await asyncio.sleep(0)
        if outcome == "good":
            return found
        self.lost += 1
        if outcome == "killed":
            raise asyncio.CancelledError
        return Unreachable("it broke off")

    def _renewed(self, token: str) -> HttpAnswer:
        self.reused += token in self.spent
        if token != self.current or token in self.spent:
            self.current = ""
            return document({"error": "invalid_grant"}, 400)
        self.spent.add(token)
        self.given += 1
        self.current = f"refresh-{self.given}"
        return document(
            {
                "token_type": "Bearer",
                "access_token": f"access-{self.given}",
                "refresh_token": self.current,
                "expires_in": 3600,
            }
        )


Turn = tuple[tuple[int, ...], float]
"""Which of the three call at once, and how many seconds later."""

TURNS = st.lists(
    st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple), st.sampled_from([1.0, 31.0, 3590.0])),
    min_size=1,
    max_size=6,
)


@pytest.mark.hostile("O17")
@given(TURNS, st.lists(st.sampled_from(["good", "good", "down", "lost", "killed"]), max_size=6))
async def test_no_refresh_token_comes_twice_unless_an_answer_was_lost(
    turns: list[Turn], outcomes: list[Outcome]
) -> None:
    shelf, server, now = Shelf(), Server(outcomes), [1e6]
    between_processes = asyncio.Lock()

    @asynccontextmanager
    async def lock(name: str) -> AsyncIterator[None]:
        async with between_processes:
            yield

    def run() -> TokenSession:
        store = TokenStore(shelved(shelf), lambda secret: None, lock)
        found = TokenSession("web", URL, OAuthSettings(), store, lambda: now[0])
        found.steps.fetch = server.answer
        return found

    async def call(actor: TokenSession) -> None:
        with suppress(asyncio.CancelledError):
            token = await token_of(actor)
            if token != f"access-{server.given}":  # as the server would refuse it
                await actor.replacement(token, "Bearer")

    actors = [run(), run(), run()]
    await actors[0]._store.write("web", HELD.with_grant(GRANT.model_copy(update={"expires_at": now[0] + 3600})))
    for calling, seconds in turns:
        await asyncio.gather(*(call(actors[each]) for each in calling))
        assert server.reused <= server.lost
        kept = (await store_over(shelf).read("web")).grant_for(URL)
        if not server.lost:
            assert kept is not None
            assert kept.refresh_token == server.current
        now[0] += seconds
