"""The modern era over HTTP: no session, no stream but those of requests, and a probe that decides nothing else."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from mcphost.client.client import Client, Identity
from mcphost.errors import ConnectionLost, HttpStatusError
from mcphost.transports.http.detection import DetectedTransport
from mcphost.transports.http.sse_2024 import SseTransport
from mcphost.transports.http.streamable import HttpTransport
from tests.client.scripted import Notes
from tests.conftest import Until
from tests.transports.http.http_connection import QUICK, SMALL, Echo, Talk, Web

Serve = Callable[[Talk], None]
DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}


@asynccontextmanager
async def opened(
    serve: Serve, *, auth: httpx.Auth | None = None, seconds: float = 10, **more: Any
) -> AsyncIterator[tuple[Web, Client]]:
    """A client whose session is open, and the server that it met."""
    with Web(serve) as web:
        transport = DetectedTransport(
            lambda: HttpTransport(web.url, SMALL, timeouts=QUICK, auth=auth),
            lambda: SseTransport(web.url, SMALL, timeouts=QUICK, endpoint_seconds=0.5),
        )
        client = Client(transport, Notes(), Identity("1"), era="auto", **more)
        try:
            await client.connect(seconds)
            yield web, client
        finally:
            await client.aclose()


def modern(talk: Talk) -> None:
    """A server without a handshake, which names a session all the same."""
    results = {"server/discover": DISCOVERED, "tools/list": {"tools": []}, "tools/call": {"content": []}}
    request = talk.visit.message
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": results[request["method"]]}
    talk.json(answer, Mcp_Session_Id="trap")


@pytest.mark.requirement("MOD-03", "MOD-05", "MOD-07", "HDR-01", "HDR-02", "HDR-10")
async def test_a_modern_session_is_posts_alone_each_with_its_headers() -> None:
    async with opened(modern) as (web, client):
        await client.list_tools()
        await client.call_tool("naïve")
    assert [visit.method for visit in web.visits] == ["POST"] * 3
    for visit in web.visits:
        message = visit.message
        assert visit.headers["mcp-protocol-version"] == "2026-07-28"
        assert (
            visit.headers["mcp-protocol-version"]
            == message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
        )
        assert visit.headers["mcp-method"] == message["method"]
        assert not {"mcp-session-id", "last-event-id"} & visit.headers.keys()
    assert web.visits[-1].headers["mcp-name"] == "=?base64?bmHDr3Zl?="
    assert "mcp-name" not in web.visits[0].headers


def error(code: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "no"}}


REFUSALS: list[Callable[[Talk], None]] = [
    lambda talk: talk.json(error(-32000), 400, Mcp_Session_Id="trap"),
    lambda talk: talk.json(error(-32601), 404),
    lambda talk: talk.whole(400),
    lambda talk: talk.whole(404, b"<html>", "text/html"),
    lambda talk: talk.whole(405),
    lambda talk: talk.whole(200, b"<html>", "text/html", Mcp_Session_Id="trap"),
]


@pytest.mark.requirement("MOD-09", "MOD-11", "MOD-12", "MOD-30", "HTTP-30")
@pytest.mark.parametrize("refuse", REFUSALS)
@pytest.mark.parametrize("old", [False, True])
async def test_a_refused_probe_decides_no_transport_and_no_session(refuse: Serve, old: bool) -> None:
    echo = Echo(old=old)

    def serve(talk: Talk) -> None:
        probe = talk.command == "POST" and talk.visit.message.get("method") == "server/discover"
        refuse(talk) if probe else echo(talk)

    async with opened(serve) as (web, client):
        assert client.session is not None
        assert not client.session.revision.modern
        assert not (await client.list_tools()).rejected
    first, second = web.visits[:2]
    assert (first.method, first.message["method"]) == ("POST", "server/discover")
    assert (second.method, second.message["method"]) == ("POST", "initialize")
    assert all(visit.headers.get("mcp-session-id") != "trap" for visit in web.visits)


@pytest.mark.requirement("MOD-07", "MOD-17")
async def test_a_broken_stream_loses_its_request_and_repeats_nothing() -> None:
    def serve(talk: Talk) -> None:
        if talk.visit.message["method"] != "tools/call":
            modern(talk)
            return
        talk.begin_events()
        talk.events(b"id: 7\ndata: \n\n")
        talk.end_events()

    async with opened(serve) as (web, client):
        with pytest.raises(ConnectionLost):
            await client.call_tool("t")
    assert [visit.message["method"] for visit in web.visits] == ["server/discover", "tools/call"]


@pytest.mark.requirement("MOD-09", "MOD-14")
@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_an_outage_lasts_through_the_probe_and_the_handshake(status: int) -> None:
    visits: list[str] = []

    def serve(talk: Talk) -> None:
        visits.append(talk.visit.message["method"])
        talk.whole(status)

    with pytest.raises(HttpStatusError) as raised:
        async with opened(serve):
            pass
    assert visits == ["server/discover", "initialize"]
    assert not raised.value.after_probe


def hangs(talk: Talk) -> None:
    talk.linger()


def resets(talk: Talk) -> None:
    talk.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    talk.connection.close()


def empty_stream(talk: Talk) -> None:
    talk.begin_events()
    talk.end_events()


@pytest.mark.requirement("MOD-09", "MOD-12")
@pytest.mark.parametrize(
    "answer",
    [
        lambda talk: talk.whole(500, b"<h1>Internal Server Error</h1>", "text/html"),
        lambda talk: talk.whole(501, b"Not implemented", "text/plain"),
        lambda talk: talk.whole(502, b'{"message": "Bad gateway"}', "application/json"),
        lambda talk: talk.result({}),
        empty_stream,
        resets,
        hangs,
    ],
    ids=["500", "501", "502", "empty result", "empty stream", "reset", "hang"],
)
async def test_a_server_that_breaks_at_the_probe_gets_a_handshake(answer: Serve) -> None:
    echo = Echo()

    def serve(talk: Talk) -> None:
        probed = talk.visit.body and talk.visit.message.get("method") == "server/discover"
        answer(talk) if probed else echo(talk)

    async with opened(serve, seconds=6) as (_, client):
        assert client.open_session.revision.version == "2025-11-25"
        assert (await client.list_tools()).items


async def test_a_late_probe_answer_over_http_opens_a_modern_session() -> None:
    greeted = threading.Event()

    def serve(talk: Talk) -> None:
        if talk.visit.message["method"] == "initialize":
            greeted.set()
            talk.linger()
            return
        if talk.visit.message["method"] == "server/discover":
            greeted.wait(20)
        modern(talk)

    async with opened(serve, seconds=3) as (_, client):
        assert client.open_session.revision.modern
        assert client.open_session.evidence == "asked in 2026-07-28, answered late"


# Whose results are kept.


class Token(httpx.Auth):
    """Sends a token that a test may replace; empty is none."""

    def __init__(self, value: str) -> None:
        self.value = value

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        if self.value:
            request.headers["Authorization"] = f"Bearer {self.value}"
        yield request


def tools_of_the_token(talk: Talk) -> None:
    """Each token has its own tool, and lists may be kept for long."""
    request = talk.visit.message
    tool = {"name": talk.visit.headers.get("authorization", "nobody")[7:] or "nobody", "inputSchema": {}}
    kept = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private"}
    results = {"server/discover": DISCOVERED, "tools/list": {"tools": [tool], **kept}}
    talk.json({"jsonrpc": "2.0", "id": request["id"], "result": results[request["method"]]})


@pytest.mark.requirement("CACHE-03")
@pytest.mark.parametrize(("first", "second"), [("anna", "bert"), ("anna", ""), ("", "bert")])
async def test_what_is_kept_goes_when_a_request_carries_another_token(first: str, second: str) -> None:
    token = Token(first)
    async with opened(tools_of_the_token, auth=token) as (web, client):

        async def names() -> list[str]:
            return [tool.name for tool in (await client.list_tools()).items]

        assert await names() == await names() == [first or "nobody"]
        assert len(web.visits) == 2
        token.value = second
        await client.ping()  # any request that is sent will do
        assert await names() == [second or "nobody"]
        assert await names() == [second or "nobody"]
        assert len(web.visits) == 4


@pytest.mark.requirement("CACHE-03")
async def test_an_answer_to_the_token_before_is_not_kept(until: Until) -> None:
    token, held = Token("anna"), threading.Event()

    def slow_for_anna(talk: Talk) -> None:
        if talk.visit.message["method"] == "tools/list" and talk.visit.headers["authorization"] == "Bearer anna":
            held.wait(20)
        tools_of_the_token(talk)

    async with opened(slow_for_anna, auth=token) as (web, client):
        listing = asyncio.create_task(client.list_tools())
        await until(lambda: len(web.visits) == 2)
        token.value = "bert"
        await client.ping()
        held.set()
        assert [tool.name for tool in (await listing).items] == ["anna"]
        assert [tool.name for tool in (await client.list_tools()).items] == ["bert"]


@pytest.mark.requirement("CACHE-03")
async def test_the_same_token_again_empties_nothing() -> None:
    async with opened(tools_of_the_token, auth=Token("anna")) as (web, client):
        for _ in range(3):
            await client.ping()
            await client.list_tools()
        assert [visit.message["method"] for visit in web.visits].count("tools/list") == 1
