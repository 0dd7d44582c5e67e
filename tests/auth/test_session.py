"""Tokens on their way to a server: renewed ahead of their end and once when refused, by one for all."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from mcphost.auth.ports import OAuthSettings
from mcphost.auth.shared_renewal import RENEWAL_PAUSE
from mcphost.auth.storage.credentials import Credentials
from mcphost.client.client import Client, Identity
from mcphost.config.state import named_lock
from mcphost.errors import ConfigError
from mcphost.transports.http.streamable import HttpTransport
from tests.auth.keychains import FileShelf, Shelf, locked_in, shelved
from tests.auth.people import NO_TLS, Echo, Guarded, House, house
from tests.client.scripted import Notes
from tests.conftest import Until
from tests.transports.http.http_connection import SMALL, Talk

ROOT = Path(__file__).parents[2]


async def refresh_token(home: House) -> str:
    [grant] = (await home.store.read("web")).grants
    return grant.refresh_token


@pytest.mark.requirement("AUTH-12", "AUTH-23", "AUTH25-07")
@pytest.mark.parametrize("rotates", [True, False])
async def test_renewals_are_early_and_use_the_newest_refresh_token(
    rotates: bool,
) -> None:
    with house(Guarded(inner=Echo(stateless=True), rotates=rotates)) as home:
        await home.sign_in()
        tokens = [await refresh_token(home)]
        async with home.client() as client:
            for _ in range(2):
                assert await home.ask(client) == 200
                home.clock[0] += 3580
                assert await home.ask(client) == 200
                tokens.append(await refresh_token(home))
        renewals = [visit.body.decode() for visit in home.visits("/token")[1:]]
        assert [f"refresh_token={token}&" in body for token, body in zip(tokens[:2], renewals, strict=True)] == [
            True
        ] * 2
        assert [parse_qs(body)["resource"] for body in renewals] == [[home.web.url]] * 2
        assert len(set(tokens)) == (3 if rotates else 1)
        assert (home.guard.renewed, home.guard.reused) == (2, [])
        assert [visit.headers["authorization"] for visit in home.visits("/mcp")][-1][7:] in home.guard.valid


@pytest.mark.requirement("AUTH-22", "AUTH-23")
async def test_a_refused_token_is_renewed_once_and_the_call_sent_again() -> None:
    with house() as home:
        await home.sign_in()
        home.guard.valid.clear()
        async with home.client() as client:
            assert await home.ask(client) == 200
        first, second = home.visits("/mcp")
        assert first.body == second.body
        assert first.headers["authorization"] != second.headers["authorization"]


@pytest.mark.requirement("CACHE-03")
@pytest.mark.parametrize("refused", [True, False])
async def test_a_renewed_token_empties_what_a_modern_session_kept(refused: bool) -> None:
    with house(Guarded(inner=_of_the_token)) as home:
        await home.sign_in()
        client = Client(HttpTransport(home.web.url, SMALL, auth=home.bearer), Notes(), Identity("1"), era="modern")
        try:
            await client.connect(10)
            [first], [kept] = (await client.list_tools()).items, (await client.list_tools()).items
            if refused:
                home.guard.valid.clear()
            else:
                home.clock[0] += 3580
            await client.ping()
            [second] = (await client.list_tools()).items
        finally:
            await client.aclose()
        assert home.guard.renewed == 1
        assert first.name == kept.name != second.name


def _of_the_token(talk: Talk) -> None:
    """A modern server whose one tool is named after the token, and may be kept."""
    kept = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private"}
    results = {
        "server/discover": {**kept, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
        "tools/list": {**kept, "tools": [{"name": talk.visit.headers["authorization"][-8:], "inputSchema": {}}]},
    }
    talk.result(results[talk.visit.message["method"]])


@pytest.mark.hostile("O15")
@pytest.mark.requirement("AUTH-22")
@pytest.mark.parametrize("spoiled", ["always-401", "endless-401"])
async def test_a_server_that_refuses_all_tokens_gets_one_renewal(spoiled: str) -> None:
    """Nor is the body of a refusal read, however long; a token of this minute is not renewed for it."""
    with house() as home:
        await home.sign_in()
        home.guard.spoiled = {"mcp": spoiled}
        async with home.client() as client:
            for _ in range(3):
                async with client.stream("POST", home.web.url, json={}) as response:
                    assert response.status_code == 401
        assert (len(home.visits("/mcp")), home.guard.renewed) == (4, 1)
        home.clock[0] += 60
        async with home.client() as client, client.stream("POST", home.web.url, json={}) as response:
            assert response.status_code == 401
        assert home.guard.renewed == 2


@pytest.mark.requirement("AUTH-49")
async def test_without_a_refresh_token_an_expired_one_needs_a_sign_in() -> None:
    with house(Guarded(inner=Echo(stateless=True), refreshes=False)) as home:
        assert not (await home.sign_in()).renewable
        home.clock[0] += 4000
        home.guard.valid.clear()
        async with home.client() as client:
            assert await home.ask(client) == 401
        assert len(home.visits("/token")) == 1


async def test_a_short_lived_token_is_not_renewed_at_every_call() -> None:
    with house(Guarded(inner=Echo(stateless=True), lifetime=8)) as home:
        await home.sign_in()
        async with home.client() as client:
            for _ in range(16):
                home.clock[0] += 0.5
                assert await home.ask(client) == 200
        assert home.guard.renewed == 1


@pytest.mark.hostile("O14")
@pytest.mark.parametrize("lifetime", [0, -1])
async def test_a_token_that_has_no_life_is_not_renewed_at_every_call(lifetime: float) -> None:
    with house(Guarded(inner=Echo(stateless=True), lifetime=lifetime)) as home:
        await home.sign_in()
        async with home.client() as client:
            assert [await home.ask(client) for _ in range(5)] == [200] * 5
        assert home.guard.renewed == 1


@pytest.mark.hostile("O17")
@pytest.mark.parametrize(
    ("spoiled", "kept", "words"),
    [
        ("invalid-grant", False, "invalid_grant"),
        ("invalid-client", False, "invalid_client"),
        ("unauthorized-client", False, "Invalid client_id"),
        ("down", True, "try again later"),
        ("hangs-up", True, "disconnected"),
        ("redirects", True, "gave no token"),
        ("html", True, "not JSON"),
        ("list", True, "not a JSON object"),
    ],
)
async def test_only_a_definite_refusal_ends_a_sign_in(spoiled: str, kept: bool, words: str) -> None:
    """And whatever else goes wrong is not tried again at once."""
    with house() as home:
        await home.sign_in()
        home.guard.valid.clear()
        home.guard.spoiled = {"token": spoiled}
        async with home.client() as client:
            assert [await home.ask(client) for _ in range(3)] == [401] * 3
            assert len(home.visits("/token")) == 2
            standing = await home.authorizer.status("web")
            assert (standing.signed_in, words in standing.problem) == (kept, True)
            home.guard.spoiled = {}
            home.clock[0] += RENEWAL_PAUSE
            assert await home.ask(client) == (200 if kept else 401)
            assert (await home.authorizer.status("web")).problem == ("" if kept else standing.problem)


async def test_a_sign_in_clears_the_pause_after_failed_renewals() -> None:
    with house() as home:
        await home.sign_in()
        home.guard.spoiled = {"token": "invalid-grant"}
        home.guard.valid.clear()
        async with home.client() as client:
            assert await home.ask(client) == 401
            home.guard.spoiled = {}
            await home.sign_in()
            home.guard.valid.clear()
            assert await home.ask(client) == 200


@pytest.mark.hostile("O17")
@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
async def test_a_clock_that_jumps_costs_one_renewal_at_most(jump: float) -> None:
    with house() as home:
        await home.sign_in()
        home.guard.valid.clear()
        home.guard.spoiled = {"token": "down"}
        async with home.client() as client:
            assert await home.ask(client) == 401
            home.guard.spoiled = {}
            home.clock[0] += jump
            assert [await home.ask(client) for _ in range(3)] == [200] * 3
        assert home.guard.renewed == 1


# Several at once.


@pytest.mark.hostile("O17")
@pytest.mark.parametrize("ahead", [True, False])
async def test_sixty_four_calls_share_one_renewal(ahead: bool) -> None:
    with house() as home:
        await home.sign_in()
        if ahead:
            home.clock[0] += 3590
        else:
            home.guard.valid.clear()
        async with home.client() as client:
            assert await asyncio.gather(*(home.ask(client) for _ in range(64))) == [200] * 64
        assert (home.guard.renewed, home.guard.reused) == (1, [])


@pytest.mark.hostile("O17")
async def test_cancelling_a_call_during_a_renewal_loses_no_token(until: Until) -> None:
    """The answer that brings the next refresh token is awaited all the same."""
    with house() as home:
        await home.sign_in()
        before = await refresh_token(home)
        home.guard.valid.clear()
        home.guard.turn.acquire()
        async with home.client() as client:
            call = asyncio.ensure_future(home.ask(client))
            await until(lambda: len(home.visits("/token")) == 2)
            call.cancel()
            await asyncio.wait([call])
            home.guard.turn.release()
            await home.authorizer.aclose()
            assert await refresh_token(home) != before
            assert await home.ask(client) == 200
        assert (home.guard.renewed, home.guard.reused) == (1, [])


@pytest.mark.hostile("O17")
async def test_a_renewal_outlives_the_settings_that_it_began_with(until: Until) -> None:
    with house() as home:
        await home.sign_in()
        before = await refresh_token(home)
        home.guard.valid.clear()
        home.guard.turn.acquire()
        async with home.client() as client:
            call = asyncio.ensure_future(home.ask(client))
            await until(lambda: len(home.visits("/token")) == 2)
            home.authorizer.session("web", home.web.url, replace(home.settings, scopes=("read",)))
            home.guard.turn.release()
            await home.authorizer.aclose()
            assert await refresh_token(home) != before
            assert await call == 200


async def test_the_end_of_a_run_does_not_wait_long_for_a_renewal(monkeypatch: pytest.MonkeyPatch, until: Until) -> None:
    monkeypatch.setattr("mcphost.auth.authorizer.ENDING_SECONDS", 0.05)
    with house() as home:
        await home.sign_in()
        home.guard.valid.clear()
        home.guard.spoiled = {"token": "silent"}
        async with home.client() as client:
            call = asyncio.ensure_future(home.ask(client))
            await until(lambda: len(home.visits("/token")) == 2)
            async with asyncio.timeout(20):
                await home.authorizer.aclose()
            call.cancel()
            await asyncio.wait([call])
        [renewal] = [task for task in asyncio.all_tasks() if task.get_name().startswith("renew")]
        renewal.cancel()
        await asyncio.wait([renewal])


@pytest.mark.hostile("O17")
async def test_two_runs_that_share_a_keychain_share_one_renewal(tmp_path: Path) -> None:
    """At the authorization server no rotated refresh token comes twice."""
    shelf = Shelf()
    share: dict[str, Any] = {"lock": locked_in(tmp_path / "locks")}
    with house(keychain=shelved(shelf), **share) as one:
        await one.sign_in()
        with house(one.guard, keychain=shelved(shelf), web=one.web, **share) as other:
            async with one.client() as mine, other.client() as theirs:
                for _ in range(3):
                    one.clock[0] = other.clock[0] = one.clock[0] + 3590
                    every = [home.ask(client) for home, client in ((one, mine), (other, theirs)) for _ in range(8)]
                    assert await asyncio.gather(*every) == [200] * 16
            assert (one.guard.renewed, one.guard.reused) == (3, [])
            assert await one.store.read("web", again=True) == await other.store.read("web", again=True)


CHILD = """
import asyncio, sys
from mcphost.auth.storage.tokens import TokenStore
from tests.auth.people import house, Guarded
from tests.auth.keychains import FileShelf, locked_in, shelved
from pathlib import Path

class There:
    url = sys.argv[1]

async def main():
    keychain, lock = shelved(FileShelf(Path(sys.argv[2]))), locked_in(Path(sys.argv[3]))
    with house(Guarded(), keychain=keychain, lock=lock, web=There()) as home:
        async with home.client() as client:
            print("ready", flush=True)
            sys.stdin.readline()
            print(await asyncio.gather(*(home.ask(client) for _ in range(8))))

asyncio.run(main())
"""


@pytest.mark.hostile("O17")
@pytest.mark.slow
async def test_two_processes_that_share_a_keychain_share_one_renewal(tmp_path: Path) -> None:
    with house(keychain=shelved(FileShelf(tmp_path / "shelf"))) as home:
        await home.sign_in()
        home.guard.valid.clear()
        command = [sys.executable, "-c", CHILD, home.web.url, str(tmp_path / "shelf"), str(tmp_path / "locks")]
        children = [started(command) for _ in range(3)]
        try:
            assert [await asyncio.to_thread(said_by, child) for child in children] == ["ready\n"] * 3
            told = await asyncio.gather(*(asyncio.to_thread(child.communicate, "go\n", 20) for child in children))
        finally:
            for child in children:
                child.kill()
                child.communicate()
        assert [json.loads(out) for out, _ in told] == [[200] * 8] * 3
        assert (home.guard.renewed, home.guard.reused) == (1, [])


def started(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, text=True)


def said_by(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline()


@pytest.mark.hostile("O17")
async def test_tokens_stored_by_another_mcphost_are_used() -> None:
    """A sign-in in another window, seen at the next refusal."""
    shelf = Shelf()
    with house(keychain=shelved(shelf)) as one, house(one.guard, keychain=shelved(shelf), web=one.web) as other:
        async with other.client() as client:
            assert await other.ask(client) == 401
            await one.sign_in()
            assert await other.ask(client) == 200
            one.guard.valid.clear()
            async with one.client() as mine:
                assert await one.ask(mine) == 200
            assert await other.ask(client) == 200
            assert (one.guard.renewed, one.guard.reused) == (1, [])
            assert "signed out" in await one.authorizer.sign_out("web")
            assert await other.ask(client) == 401
            assert await other.store.read("web") == Credentials()


async def test_a_lock_that_cannot_be_had_is_a_reason_and_no_renewal(tmp_path: Path) -> None:
    def impatient(server: str) -> Any:
        return named_lock(tmp_path, server, 0.05)

    with house(lock=impatient) as home:
        await home.sign_in()
        home.guard.valid.clear()
        async with impatient("web"), home.client() as client:
            assert await home.ask(client) == 401
            assert "held by another mcphost" in (await home.authorizer.status("web")).problem
            with pytest.raises(ConfigError, match="held by another"):
                await home.authorizer.sign_out("web")


# What the token does not go with.


@pytest.mark.requirement("AUTH-17", "AUTH-25", "SEC-06")
async def test_a_token_goes_to_its_origin_and_replaces_no_header() -> None:
    with house() as home, house() as other:
        await home.sign_in()
        async with home.client() as client:
            for url in (other.web.url, home.web.url.replace("127.0.0.1", "localhost")):
                await client.post(url, json={})
            await client.post(home.web.url, json={}, headers={"Authorization": "ApiKey mine"})
        seen = [*other.visits("/mcp"), *home.visits("/mcp")]
        assert [visit.headers.get("authorization") for visit in seen] == [None, None, "ApiKey mine"]
        assert home.guard.renewed == 0


async def test_a_server_registered_twice_keeps_its_session() -> None:
    with house() as home:
        await home.sign_in()
        home.guard.valid.clear()
        home.guard.spoiled = {"token": "down"}
        for _ in range(3):
            async with httpx.AsyncClient(auth=home.bearer, verify=NO_TLS, trust_env=False) as client:
                assert await home.ask(client) == 401
        assert len(home.visits("/token")) == 2
        home.settings = OAuthSettings(scopes=("other",))
        async with home.client() as client:
            assert await home.ask(client) == 401
        assert len(home.visits("/token")) == 3
