"""The address at which agents are served: who comes in by which token, and what is at which path."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcphost.composition.bearers import BEARERS, Bearers, BearerTokens
from mcphost.composition.secret_items import SecretItems
from mcphost.composition.served_address import AddressChoice, ServedAddress
from mcphost.config.state import StateStore
from mcphost.errors import ConfigError, NotDone
from tests.auth.keychains import Shelf
from tests.host.endpoint.rig import EndpointRig, ServerContent, rig, says

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "claims-codex", "version": "1"}}


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    return StateStore(tmp_path, lambda _: None)


@pytest.fixture
def tokens(store: StateStore, shelf: Shelf) -> BearerTokens:
    return BearerTokens(store, SecretItems())


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    made = Shelf()
    monkeypatch.setattr("mcphost.auth.storage.keychain.best_backend", lambda: made)
    return made


class Client:
    """An agent that sends its token, which is empty for one without."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._headers = {"Accept": "application/json, text/event-stream"}
        self._headers |= {"Authorization": f"Bearer {token}"} if token else {}

    async def post(self, path: str, method: str, **params: Any) -> httpx.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.post(f"{self._address}{path}", json=message, headers=self._headers)
        if session := answer.headers.get("mcp-session-id"):
            self._headers["Mcp-Session-Id"] = session
        return answer

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[httpx.Response]:
        """The stream of the session, once it is open."""
        headers = {**self._headers, "Accept": "text/event-stream"}
        async with (
            httpx.AsyncClient(trust_env=False, timeout=20) as client,
            client.stream("GET", self._address, headers=headers) as answer,
        ):
            assert answer.status_code == 200
            yield answer

    async def tools(self, path: str = "") -> list[str]:
        """The names of the tools there."""
        self._headers.pop("Mcp-Session-Id", None)
        assert (await self.post(path, "initialize", **HELLO)).status_code == 200
        listed = (await self.post(path, "tools/list")).json()
        return [each["name"] for each in listed["result"]["tools"]]


@asynccontextmanager
async def served(store: StateStore, **choice: Any) -> AsyncIterator[tuple[EndpointRig, str]]:
    contents = {"rock": ServerContent(lamp=says("lit")), "pier": ServerContent(bell=says("rung"))}
    async with rig(contents, profiles={"night": {"servers": ["rock"]}}) as running:
        address = ServedAddress(running.host.endpoint, AddressChoice(**choice), Bearers(store))
        await address.open(0)
        try:
            yield running, address.address
        finally:
            await address.aclose()


async def test_each_path_serves_what_it_names(store: StateStore, tokens: BearerTokens) -> None:
    async with served(store) as (_, address):
        agent = Client(address, await tokens.token("codex"))
        assert [len(await agent.tools()), await agent.tools("/pier"), await agent.tools("/@night")] == [
            2, ["bell"], ["lamp"],
        ]  # fmt: skip
        assert (await agent.post("/moon", "initialize", **HELLO)).status_code == 404
        assert (await agent.post("/@day", "initialize", **HELLO)).status_code == 404


async def test_a_path_gives_no_more_than_the_command_line(store: StateStore, tokens: BearerTokens) -> None:
    async with served(store, servers=("pier",), profile=None) as (_, address):
        agent = Client(address, await tokens.token("codex"))
        assert await agent.tools() == await agent.tools("/pier") == ["bell"]
        assert (await agent.post("/rock", "initialize", **HELLO)).status_code == 404
        assert (await agent.post("/@night", "initialize", **HELLO)).status_code == 404


def test_a_profile_of_the_command_line_is_not_left() -> None:
    choice = AddressChoice(profile="night")
    assert [choice.at(path) for path in ("", "pier", "@night", "@day")] == [
        ((), "night"), (("pier",), "night"), ((), "night"), None,
    ]  # fmt: skip


async def test_rules_know_an_agent_by_its_token_alone(store: StateStore, tokens: BearerTokens) -> None:
    async with served(store) as (running, address):
        await Client(address, await tokens.token("claude-code")).tools()
        (session,) = running.host.endpoint.sessions
        assert session.options.agent.given == "claude-code"


@pytest.mark.server_requirement("SAUTH-04", "SAUTH-05", "SAUTH-09")
async def test_no_other_token_is_admitted(store: StateStore, tokens: BearerTokens) -> None:
    async with served(store) as (running, address):
        await tokens.token("codex")
        for wrong in ("", "wrong"):
            refused = await Client(address, wrong).post("", "initialize", **HELLO)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == 'Bearer realm="mcphost"'
        assert running.host.endpoint.sessions == ()


async def test_a_revoked_token_ends_its_sessions(store: StateStore, tokens: BearerTokens) -> None:
    async with served(store) as (running, address):
        agent, other = Client(address, await tokens.token("codex")), Client(address, await tokens.token("cursor"))
        await agent.tools()
        await other.tools()
        assert await tokens.revoke("codex")
        assert (await agent.post("", "ping")).status_code == 401
        assert [each.options.agent.given for each in running.host.endpoint.sessions] == ["cursor"]
        assert not await tokens.revoke("codex")


@pytest.mark.skipif(sys.platform != "linux", reason="files are watched on Linux only")
async def test_a_revoked_token_ends_a_stream_that_is_open(store: StateStore, tokens: BearerTokens) -> None:
    async with served(store) as (running, address):
        agent = Client(address, await tokens.token("codex"))
        await agent.tools()
        async with agent.listening() as stream:
            assert await tokens.revoke("codex")
            assert [line async for line in stream.aiter_lines() if line.startswith("data: {")] == []
        assert running.host.endpoint.sessions == ()


async def test_the_state_file_holds_no_token(store: StateStore, tokens: BearerTokens, tmp_path: Path) -> None:
    token = await tokens.token("codex")
    assert (tmp_path / f"{BEARERS}.toml").stat().st_mode & 0o777 == 0o600
    assert token not in (tmp_path / f"{BEARERS}.toml").read_text()
    assert Bearers(store).agent_of(token) == "codex"


@pytest.mark.parametrize("name", ["", "a b", "../x", "x" * 65])
async def test_a_token_is_made_for_plain_names_only(name: str, tokens: BearerTokens, shelf: Shelf) -> None:
    with pytest.raises(ConfigError, match="cannot be an agent's name"):
        await tokens.token(name)
    assert not shelf.items


async def test_a_port_in_use_is_named(store: StateStore) -> None:
    async with rig({}) as running:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = ServedAddress(running.host.endpoint, AddressChoice(), Bearers(store))
            with pytest.raises(NotDone, match="another program listens there"):
                await address.open(taken.getsockname()[1])
            await address.aclose()
