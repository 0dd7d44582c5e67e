"""A tap of an address: the same bytes on both sides, at once, with copies that hold no token."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from mcphost.composition.tapped_address import TappedAddress
from mcphost.serving.http_relay import HttpRelay
from tests.transports.http.http_connection import Talk, Web

TOKEN = "Bearer canary-12345678"
SENT = b'{"jsonrpc": "2.0",\n "id": 1,  "method": "ping"}'


class Copies:
    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []
        self.secrets: list[tuple[str, str]] = []
        self.refusals = 0

    def sent(self, data: bytes) -> None:
        self.all.append(("sent", data.decode()))

    def received(self, data: bytes) -> None:
        self.all.append(("received", data.decode()))

    def noted(self, kind: str, text: str) -> None:
        self.all.append((kind, text))

    def of(self, kind: str) -> list[str]:
        return [text for each, text in self.all if each == kind]

    def passing(self, name: str, value: str) -> None:
        self.secrets.append((name, value))

    def refused(self) -> None:
        self.refusals += 1


@asynccontextmanager
async def tapped(answer: Callable[[Talk], None]) -> AsyncIterator[tuple[httpx.AsyncClient, Web, Copies]]:
    copies = Copies()
    with Web(answer) as web:
        address = TappedAddress(web.url, copies, copies.passing)
        relay = HttpRelay(address.exchange, copies, copies.refused)
        port = await relay.open()
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
                yield client, web, copies
        finally:
            await relay.aclose()
            await address.aclose()


async def test_a_request_and_its_answer_pass_unchanged() -> None:
    body = b'{"jsonrpc":"2.0",\n\n"id":1,"result":{}}'

    def answer(talk: Talk) -> None:
        talk.whole(200, body, "application/json", Mcp_Session_Id="s1", X_Own="a b")

    async with tapped(answer) as (client, web, copies):
        headers = {"Authorization": TOKEN, "Mcp-Protocol-Version": "2025-06-18"}
        found = await client.post("/mcp?a=1%2F2", content=SENT, headers=headers)
    (visit,) = web.visits
    assert (visit.method, visit.path, visit.body) == ("POST", "/mcp?a=1%2F2", SENT)
    assert visit.headers["authorization"] == TOKEN
    assert visit.headers["host"] == web.url.split("/")[2]
    assert (found.content, found.headers["mcp-session-id"], found.headers["x-own"]) == (body, "s1", "a b")
    assert (copies.of("sent"), copies.of("received")) == ([SENT.decode()], [body.decode()])
    assert ("Authorization", TOKEN) in copies.secrets
    heads = "\n".join(copies.of("http"))
    assert "canary" not in heads
    assert "HTTP 200" in heads


async def test_events_come_one_by_one() -> None:
    read = threading.Event()

    def answer(talk: Talk) -> None:
        talk.begin_events()
        talk.events({"id": 1})
        assert read.wait(30)
        talk.events(b"data: {\ndata: }\n\n", b": nothing\n\n")
        talk.end_events()

    async with tapped(answer) as (client, _, copies), client.stream("GET", "/mcp") as stream:
        pieces = stream.aiter_raw()
        assert await anext(pieces) == b'data: {"id": 1}\r\n\r\n'
        read.set()
        assert b"".join([each async for each in pieces]) == b"data: {\ndata: }\n\n: nothing\n\n"
    assert copies.of("received") == ['{"id": 1}', "{\n}"]


async def test_a_stream_that_breaks_off_breaks_off_for_the_agent() -> None:
    def answer(talk: Talk) -> None:
        talk.begin_events()
        talk.events({"id": 1})
        talk.connection.close()
        talk.close_connection = True

    async with tapped(answer) as (client, _, _copies):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get("/mcp")


async def test_a_sign_in_is_reported() -> None:
    async with tapped(lambda talk: talk.whole(401, b"", WWW_Authenticate="Bearer")) as (client, _, copies):
        found = await client.post("/mcp", content=SENT)
    assert (found.status_code, found.headers["www-authenticate"]) == (401, "Bearer")
    assert copies.refusals == 1


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}])
async def test_web_pages_are_not_relayed(headers: dict[str, str]) -> None:
    async with tapped(lambda talk: talk.json({})) as (client, web, _):
        assert (await client.post("/mcp", content=SENT, headers=headers)).status_code == 403
    assert web.visits == []


async def test_a_server_that_does_not_answer_is_named() -> None:
    async with tapped(lambda talk: talk.json({})) as (client, web, _):
        web.__exit__(None, None, None)
        found = await client.post("/mcp", content=SENT)
    assert found.status_code == 502
    assert "mcphost tap: 127.0.0.1 does not answer" in found.text
