"""A workload signs in over real sockets: its JWT is fresh each time, and goes to one place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from mcphost.auth import session
from mcphost.auth.assertions import AssertionReader
from mcphost.auth.http import SECONDS
from mcphost.auth.ports import AssertionSource, OAuthSettings
from mcphost.auth.storage.keychain import CHANGE_SECONDS
from mcphost.composition.sign_in import LOCK_SECONDS
from mcphost.errors import SignInFailed
from tests.auth.flow.flows import jwt
from tests.auth.people import Guarded, House, Person, Web, house


@contextmanager
def workload(file: Path) -> Iterator[House]:
    """A house whose authorization server takes any JWT, and a workload whose JWT is in ``file``."""
    learned: set[str] = set()
    reader = AssertionReader(lambda name: None, lambda program: (program, {}), learned.add)
    with house(assertions=reader) as home:
        home.guard.clients[""] = ""
        issuer = home.web.url.removesuffix("/mcp")
        source = AssertionSource(file=str(file))
        home.settings = OAuthSettings(grant="workload", issuer=issuer, assertion=source)
        home.learned = learned
        yield home


def issued(home: House, name: str) -> str:
    return jwt(aud=home.settings.issuer, jti=name, exp=home.clock[0] + 100_000)


def presented(home: House) -> list[str]:
    return [parse_qs(visit.body.decode())["assertion"][0] for visit in home.visits("/token")]


@pytest.mark.requirement("WIF-03")
async def test_each_token_is_asked_for_by_the_jwt_of_the_moment(tmp_path: Path) -> None:
    """The JWT is kept nowhere, and only the token endpoint gets it."""
    file = tmp_path / "token"
    with workload(file) as home:
        async with home.client() as client:
            written = [issued(home, name) for name in ("first", "second")]
            for each in written:
                file.write_text(each)
                assert await home.ask(client) == 200
                home.clock[0] += 3590
        first, second = presented(home)
        assert [first, second] == written
        kept = (await home.store.read("web")).model_dump_json()
        status = await home.authorizer.status("web")
        others = [str(visit) for visit in home.web.visits if visit.path != "/token"]
        assert not [each for each in (first, second) for text in (kept, str(status), *others) if each in text]
        assert home.learned == {first, second}
        assert (status.signed_in, status.renewable) == (True, True)


@pytest.mark.requirement("WIF-02")
async def test_a_refused_jwt_is_sent_once_until_it_changes_or_a_person_asks(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with workload(file) as home:
        home.guard.spoiled["token"] = "invalid-grant"
        file.write_text(issued(home, "first"))
        async with home.client() as client:
            for _ in range(3):
                assert await home.ask(client) == 401
                home.clock[0] += 60
            assert len(presented(home)) == 1
            with pytest.raises(SignInFailed, match="was refused before"):
                await home.sign_in(Person(began=False))  # a refused operation began it
            with pytest.raises(
                SignInFailed, match=r"invalid_grant.*must trust the JWT's issuer 'https://platform.exam"
            ):
                await home.sign_in(Person())
            assert len(presented(home)) == 2
            file.write_text(issued(home, "second"))
            del home.guard.spoiled["token"]
            assert await home.ask(client) == 200
        assert len(set(presented(home))) == 2


@pytest.mark.requirement("WIF-06")
async def test_a_jwt_follows_no_redirect_and_no_other_issuer(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with workload(file) as home, Web(Guarded()) as evil:
        file.write_text(issued(home, "first"))
        home.guard.spoiled["token"] = "redirects-with-body"
        with pytest.raises(SignInFailed, match=r"gave no token \(HTTP 307\)"):
            await home.sign_in()
        assert not home.visits("/elsewhere")
        home.guard.more["resource"] = {"authorization_servers": [evil.url.removesuffix("/mcp")]}
        with pytest.raises(SignInFailed, match="the configuration allows"):
            await home.sign_in()
        assert (len(presented(home)), evil.visits) == (1, [])


async def test_a_failed_renewal_keeps_the_token_that_is_still_good(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with workload(file) as home:
        file.write_text(issued(home, "first"))
        async with home.client() as client:
            assert await home.ask(client) == 200
            home.clock[0] += 3590
            home.guard.spoiled["token"] = "invalid-grant"
            assert await home.ask(client) == 200
        status = await home.authorizer.status("web")
        assert (status.signed_in, "invalid_grant" in status.problem) == (True, True)


async def test_the_token_of_a_person_is_not_used_for_a_workload(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with workload(file) as home:
        file.write_text(issued(home, "first"))
        home.settings, of_job = OAuthSettings(), home.settings
        await home.sign_in()
        home.settings = of_job
        async with home.client() as client:
            assert await home.ask(client) == 200
        assert parse_qs(home.visits("/token")[-1].body.decode())["assertion"] == [issued(home, "first")]


async def test_a_program_that_gets_no_token_in_time_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> str:
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(AssertionReader, "read", never)
    monkeypatch.setattr(session, "RENEWAL_SECONDS", 0.05)
    with workload(tmp_path / "token") as home:
        async with home.client() as client:
            assert await home.ask(client) == 401
        assert "the steps to a token took more than 0.05 s" in str((await home.authorizer.status("web")).problem)


def test_the_wait_for_a_renewal_elsewhere_is_longer_than_one() -> None:
    """The keychain is read and written; a renewal by a refresh token repeats one request at most."""
    steps = max(session.RENEWAL_SECONDS, 2 * SECONDS["token"], 2 * SECONDS["metadata"] + SECONDS["token"])
    assert steps + 2 * CHANGE_SECONDS < LOCK_SECONDS
