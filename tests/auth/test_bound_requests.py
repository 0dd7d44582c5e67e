"""Tokens that are bound to a key, on every request of a transport to a server that verifies each proof."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcphost.auth.authorizer import Authorizer
from mcphost.auth.ports import BOUND
from mcphost.auth.storage.tokens import TokenStore
from mcphost.errors import AuthorizationRequired, HttpStatusError
from mcphost.transports.base import TransportLimits
from mcphost.transports.http.sse_2024 import SseTransport
from mcphost.transports.http.streamable import HttpTransport
from tests.auth.bound_server import BoundServer
from tests.auth.keychains import Shelf, shelved
from tests.auth.people import Echo, House, Person, Talk, Web, house
from tests.conftest import Until
from tests.transports.http.http_connection import WebLine


@asynccontextmanager
async def line_to(home: House, kind: Any = HttpTransport) -> AsyncIterator[WebLine]:
    line = WebLine(home.web, kind(home.web.url, TransportLimits(), auth=home.bearer))
    await line.transport.open(line.inbox)
    try:
        yield line
    finally:
        await line.transport.aclose()


def guard_of(home: House) -> BoundServer:
    assert isinstance(home.guard, BoundServer)
    return home.guard


@pytest.mark.hostile("C10")
@pytest.mark.requirement("DPOP-01", "DPOP-02", "DPOP-03", "DPOP-06")
async def test_every_request_is_proven_and_nothing_shows_key_or_proof(until: Until) -> None:
    with house(BoundServer(inner=Echo())) as home:
        person, guard = Person(), guard_of(home)
        standing = await home.sign_in(person, guard.challenge)
        assert (standing.binding, person.plans[0].bound) == (BOUND, True)
        async with line_to(home) as line:
            await line.shake_hands()
            listening = asyncio.ensure_future(line.transport.listen())
            assert await line.call("echo", text="x") == "x"
            await until(lambda: home.web.seen("GET")[-1].path == "/mcp")
        await asyncio.gather(listening, return_exceptions=True)
        visits = home.visits("/mcp")
        assert {visit.method for visit in visits} == {"POST", "GET", "DELETE"}
        assert {visit.headers["authorization"] for visit in visits} == {f"DPoP {token}" for token in guard.valid}
        assert (guard.faults, guard.challenged) == ([], ["issuer", "server"])
        assert len({*guard.proofs}) == len(guard.proofs) == len(visits) + len(home.visits("/token"))
        [grant] = (await home.store.read("web")).grants
        assert grant.key is not None
        assert {grant.key.d, *guard.valid} <= home.learned
        shown = f"{person.steps} {standing} {person.plans}"
        assert not [secret for secret in (grant.key.d, *guard.proofs, *guard.valid) if secret in shown]
        assert "use_dpop_nonce" in shown


@pytest.mark.requirement("DPOP-02")
async def test_a_broken_stream_is_resumed_with_new_proofs() -> None:
    with house(BoundServer(inner=Echo())) as home:
        await home.sign_in(challenge="DPoP")
        async with line_to(home) as line:
            await line.shake_hands()
            assert await line.call("breaks", count=2, retry=1) == "whole"
        resumed = [visit.headers["last-event-id"] for visit in home.web.seen("GET") if visit.path == "/mcp"]
        assert resumed == ["stream-2/1", "stream-2/2"]
        assert guard_of(home).faults == []


@pytest.mark.requirement("DPOP-02")
async def test_a_message_of_http_and_sse_is_proven_for_its_own_url() -> None:
    with house(BoundServer(inner=Echo(old=True))) as home:
        await home.sign_in(challenge="DPoP")
        async with line_to(home, SseTransport) as line:
            response = await line.ask("initialize", {"protocolVersion": "2024-11-05", "capabilities": {}})
            assert response.result is not None
        assert [visit.method for visit in home.visits("/messages")] == ["POST"]
        assert guard_of(home).faults == []


@pytest.mark.requirement("DPOP-02", "DPOP-04")
async def test_a_redirect_on_the_origin_gets_a_proof_for_its_target() -> None:
    with house(BoundServer(inner=Echo(stateless=True), moved_to="/there?a=b")) as home:
        await home.sign_in(challenge="DPoP")
        async with line_to(home) as line:
            await line.shake_hands()
            guard_of(home).nonces["server"].clear()
            assert await line.call("echo", text="x") == "x"
        assert guard_of(home).faults == []
        assert guard_of(home).challenged == ["issuer", "server", "server"]


@pytest.mark.hostile("O15")
@pytest.mark.requirement("DPOP-02")
async def test_no_proof_and_no_token_follow_a_redirect_to_another_origin() -> None:
    def other(talk: Talk) -> None:
        talk.whole(200)

    with Web(other) as elsewhere, house(BoundServer(moved_to=elsewhere.url)) as home:
        await home.sign_in(challenge="DPoP")
        async with line_to(home) as line:
            with pytest.raises(HttpStatusError, match="another origin"):
                await line.ask("ping")
        assert elsewhere.visits == []


@pytest.mark.hostile("O15")
@pytest.mark.requirement("DPOP-04")
async def test_a_server_that_takes_no_nonce_gets_two_requests_for_a_message() -> None:
    with house(BoundServer(content=False)) as home:
        await home.sign_in(challenge="DPoP")
        async with line_to(home) as line:
            with pytest.raises(AuthorizationRequired, match="the server asked for its nonce in the proof"):
                await line.ask("ping")
        assert len(home.visits("/mcp")) == 2
        assert home.guard.renewed == 0


@pytest.mark.requirement("DPOP-03")
async def test_a_later_run_renews_with_the_key_in_the_keychain() -> None:
    shelf = Shelf()
    with house(BoundServer(inner=Echo(stateless=True)), keychain=shelved(shelf)) as home:
        await home.sign_in(challenge="DPoP")
        home.authorizer = Authorizer(TokenStore(shelved(shelf), home.learned.add), lambda: home.clock[0])
        guard = guard_of(home)
        guard.valid.clear()
        async with home.client() as client:
            assert await home.ask(client) == 200
        assert (guard.renewed, guard.faults, len({*guard.keys.values()})) == (1, [], 1)
