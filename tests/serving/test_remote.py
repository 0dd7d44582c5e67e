"""A gate before a server at an address, in both eras and over both transports of HTTP."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from mcphost.composition.gated_addresses import AddressProgram
from mcphost.serving.gate import Finished, GateAction, GateOptions
from mcphost.serving.remote import RemoteServer
from mcphost.transports.http.detection import DetectedTransport
from mcphost.transports.http.sse_2024 import SseTransport
from mcphost.transports.http.streamable import HttpTransport
from tests.conftest import Until
from tests.serving.gate_rig import META, NO, YES, Rig, call, modern_meta, notification, request, result
from tests.transports.http.http_connection import QUICK, SMALL, Echo, Talk, Web

TOKEN = "c4nary-t0ken-of-a-header"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
ANNOTATED = {
    "name": "echo",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}},
}
WRONG = {
    "name": "wrong",
    "inputSchema": {"type": "object", "properties": {"all": {"type": "object", "x-mcp-header": "All"}}},
}


class RemoteRig(Rig):
    """A rig whose server is at an address."""

    def __init__(self, url: str) -> None:
        super().__init__(GateOptions(answer_within=float("inf")))
        self.lines, self.said = asyncio.StreamReader(), list[str]()
        more: Any = {"headers": HEADERS, "timeouts": QUICK}
        self.remote = RemoteServer(
            lambda: DetectedTransport(
                partial(HttpTransport, url, SMALL, **more), partial(SseTransport, url, SMALL, **more)
            ),
            self.server,
            self.said.append,
            advice=lambda: "use --bearer-env",
            mask=lambda text: text.replace(TOKEN, "•••"),
        )

    def _do(self, actions: Sequence[GateAction]) -> None:
        before = len(self.to_server)
        super()._do(actions)
        for each in self.to_server[before:]:
            self.lines.feed_data(each)


@asynccontextmanager
async def gated(serve: Callable[[Talk], None]) -> AsyncIterator[tuple[RemoteRig, Web]]:
    with Web(serve) as web:
        rig = RemoteRig(web.url)
        running = asyncio.create_task(rig.remote.run(rig.lines))
        try:
            yield rig, web
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def open_legacy(rig: RemoteRig, until: Until) -> None:
    rig.agent(request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "a"}))
    await until(lambda: rig.to_agent)
    rig.agent(notification("notifications/initialized"), request("list", "tools/list"))
    await until(lambda: len(rig.to_agent) == 2)
    rig.clear()


async def answer(rig: Rig, until: Until, request_id: object) -> Any:
    """The answer that the agent got."""
    found: list[Any] = []

    def came() -> bool:
        found[:] = [each for each in rig.agent_got if each.get("id") == request_id and "method" not in each]
        return bool(found)

    await until(came)
    return found[0]


def calls_at(web: Web) -> list[Any]:
    return [each.message for each in web.visits if each.body and each.message.get("method") == "tools/call"]


@pytest.mark.parametrize("echo", [Echo("json"), Echo("sse"), Echo(old=True)], ids=["json", "sse", "old"])
async def test_only_an_allowed_call_reaches_the_address(echo: Echo, until: Until) -> None:
    async with gated(echo) as (rig, web):
        await open_legacy(rig, until)
        rig.agent(call(1, text="no"), call(2, text="yes"))
        rig.decide(NO, rig.asked[0].number)
        rig.decide(YES, rig.asked[1].number)
        assert (await answer(rig, until, 2))["result"]["content"][0]["text"] == "yes"
        assert (await answer(rig, until, 1))["result"]["isError"] is True
        assert [each["params"]["arguments"] for each in calls_at(web)] == [{"text": "yes"}]
        assert {each.headers["authorization"] for each in web.visits} == {HEADERS["Authorization"]}


async def test_messages_before_the_answer_and_questions_of_the_server_pass(until: Until) -> None:
    async with gated(Echo("sse")) as (rig, _):
        await open_legacy(rig, until)
        rig.agent(call(1, "notify", count=2), call(2, "ask"))
        for asked in rig.asked:
            rig.decide(YES, asked.number)
        await until(lambda: any(each.get("id") == "from server" for each in rig.agent_got))
        rig.agent(result("from server"))
        assert (await answer(rig, until, 2))["result"]["content"][0]["text"] == "replied"
        await answer(rig, until, 1)
        assert [each["params"]["data"] for each in rig.agent_got if each.get("method") == "notifications/message"] == [
            "0",
            "1",
        ]


async def test_a_broken_stream_is_resumed_behind_the_gate(until: Until) -> None:
    async with gated(Echo("sse")) as (rig, web):
        await open_legacy(rig, until)
        rig.agent(call(1, "breaks", count=1, retry=500))
        rig.decide(YES)
        assert (await answer(rig, until, 1))["result"]["content"][0]["text"] == "whole"
        assert any("last-event-id" in each.headers for each in web.visits)


async def test_a_cancelled_call_is_cancelled_at_the_address(until: Until) -> None:
    async with gated(Echo("sse")) as (rig, web):
        await open_legacy(rig, until)
        rig.agent(call(1, "sleep"))
        rig.decide(YES)
        await until(lambda: calls_at(web))
        rig.agent(notification("notifications/cancelled", requestId=1))
        await until(lambda: any(b"notifications/cancelled" in each.body for each in web.visits))
        await until(lambda: web.hung_up)
        assert rig.to_agent == []


def modern(talk: Talk) -> None:
    """A server of 2026-07-28."""
    message = talk.visit.message
    match message.get("method"):
        case "server/discover":
            talk.result({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"})
        case "tools/list":
            talk.result({"tools": [ANNOTATED, WRONG], "resultType": "complete"})
        case "tools/call" if message["params"]["arguments"].get("text") == "sleep":
            talk.begin_events()
            talk.linger()
        case "tools/call":
            talk.result({"content": [{"type": "text", "text": "done"}], "resultType": "complete"})
        case _:
            talk.whole(202)


async def test_headers_repeat_a_modern_request(until: Until) -> None:
    async with gated(modern) as (rig, web):
        rig.agent(request(0, "server/discover", _meta=modern_meta()))
        await answer(rig, until, 0)
        rig.agent(call(1, meta=modern_meta(), text="grüße"))
        await until(lambda: rig.asked)
        assert rig.asked[0].definition == ANNOTATED
        rig.decide(YES)
        assert (await answer(rig, until, 1))["result"]["content"][0]["text"] == "done"
        sent = web.visits[-1].headers
        assert {name: sent[name] for name in ("mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-text")} == {
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": "echo",
            "mcp-param-text": "=?base64?Z3LDvMOfZQ==?=",
        }
        assert "mcp-session-id" not in sent
        assert any("wrong" in each for each in rig.said)


async def test_the_end_of_its_stream_cancels_a_modern_call(until: Until) -> None:
    async with gated(modern) as (rig, web):
        rig.agent(call(1, meta=modern_meta(), text="sleep"))
        await until(lambda: rig.asked)
        rig.decide(YES)
        await until(lambda: calls_at(web))
        rig.agent(notification("notifications/cancelled", requestId=1))
        await until(lambda: web.hung_up)
        assert not any(b"cancelled" in each.body for each in web.visits)


@pytest.mark.parametrize("method", ["tools/ca\r\nX: y", "ä"])
async def test_no_header_is_made_of_a_hostile_method(method: str, until: Until) -> None:
    async with gated(modern) as (rig, web):
        rig.agent(request(1, method, _meta=modern_meta()))
        assert (await answer(rig, until, 1))["error"]["code"] == -32602
        assert web.visits == []


async def test_a_version_that_no_header_can_hold_is_refused(until: Until) -> None:
    async with gated(modern) as (rig, web):
        rig.agent(request(1, "tools/list", _meta={**modern_meta(), f"{META}protocolVersion": "2026\r\nX: y"}))
        assert (await answer(rig, until, 1))["error"]["code"] == -32602
        assert web.visits == []


async def test_an_older_server_refuses_the_probe_as_programs_do(until: Until) -> None:
    async with gated(Echo(old=True)) as (rig, _):
        rig.agent(request(0, "server/discover", _meta=modern_meta()))
        assert (await answer(rig, until, 0))["error"]["code"] == -32601
        rig.clear()
        await open_legacy(rig, until)


async def test_a_demand_for_a_sign_in_says_what_to_do(until: Until) -> None:
    def refuse(talk: Talk) -> None:
        talk.whole(401, f"no access with {talk.headers['authorization']}".encode(), "text/plain")

    async with gated(refuse) as (rig, _):
        rig.agent(request(0, "initialize", protocolVersion="2025-11-25", capabilities={}))
        words = (await answer(rig, until, 0))["error"]["message"]
        assert "HTTP 401" in words
        assert "use --bearer-env" in words
        assert TOKEN not in words + "".join(rig.said)


async def test_a_server_that_is_gone_fails_the_call(until: Until) -> None:
    def serve(talk: Talk) -> None:
        if talk.visit.message.get("method") == "tools/call":
            talk.connection.shutdown(2)
        else:
            echo(talk)

    echo = Echo(listens=False)
    async with gated(serve) as (rig, _):
        await open_legacy(rig, until)
        rig.agent(call(1, text="x"))
        rig.decide(YES)
        assert (await answer(rig, until, 1))["error"]["code"] == -32603
        assert [each.state for each in rig.all(Finished)] == ["failed"]


async def test_a_session_that_the_server_forgot_is_opened_again(until: Until) -> None:
    echo = Echo(listens=False)
    async with gated(echo) as (rig, _):
        await open_legacy(rig, until)
        echo.sessions.clear()
        rig.agent(request(1, "ping"))
        assert "result" in await answer(rig, until, 1)
        assert [each["method"] for each in rig.agent_got if "method" in each] == ["notifications/tools/list_changed"]
        assert (echo.begun, len(echo.sessions), rig.remote.lost) == (2, 1, None)


async def test_a_call_is_not_sent_to_what_took_the_servers_place(until: Until) -> None:
    echo = Echo(listens=False)
    async with gated(echo) as (rig, web):
        await open_legacy(rig, until)
        echo.sessions.clear()
        echo.tools[0] = {**echo.tools[0], "description": "newer"}
        rig.agent(call(1, text="x"))
        rig.decide(YES)
        assert (await answer(rig, until, 1))["result"]["isError"]
        rig.agent(call(2, text="x"))
        await until(lambda: len(rig.asked) == 2)
        assert (rig.asked[1].definition or {})["description"] == "newer"
        assert len(calls_at(web)) == 1  # refused with its session
        rig.decide(YES)
        assert "result" in await answer(rig, until, 2)


async def test_a_server_that_forgets_each_session_is_not_asked_for_ever(until: Until) -> None:
    def serve(talk: Talk) -> None:
        if talk.visit.message and talk.visit.message.get("method") == "ping":
            echo.sessions.clear()
        echo(talk)

    echo = Echo(listens=False)
    async with gated(serve) as (rig, _):
        await open_legacy(rig, until)
        rig.agent(request(1, "ping"))
        assert "no longer knows this session" in (await answer(rig, until, 1))["error"]["message"]
        assert echo.begun == 2


async def test_a_session_that_cannot_be_opened_again_ends_the_connection(until: Until) -> None:
    def serve(talk: Talk) -> None:
        if gone:
            talk.whole(404)
        else:
            echo(talk)

    echo, gone = Echo(listens=False), list[int]()
    async with gated(serve) as (rig, _):
        await open_legacy(rig, until)
        gone.append(1)
        rig.agent(request(1, "ping"))
        assert "no longer knows this session" in (await answer(rig, until, 1))["error"]["message"]
        await until(lambda: rig.remote.lost)


@pytest.mark.parametrize("request_id", [1.5, 7])
async def test_a_request_that_http_cannot_carry_is_answered(request_id: float, until: Until) -> None:
    async with gated(Echo(listens=False)) as (rig, _):
        await open_legacy(rig, until)
        broken = {"id": request_id, "method": "ping", **({"jsonrpc": "2.0"} if request_id == 1.5 else {})}
        rig.agent([broken, request(8, "ping")])
        assert (await answer(rig, until, request_id))["error"]["code"] == -32600
        assert "result" in await answer(rig, until, 8)
        assert sum(each.get("id") == request_id for each in rig.agent_got) == 1


async def test_a_flood_of_notifications_opens_few_connections(until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcphost.serving.remote.MOST_REQUESTS", 3)
    async with gated(Echo("sse")) as (rig, web):
        await open_legacy(rig, until)
        for _ in range(20):
            rig.agent(notification("notifications/initialized"))
        rig.agent(*(notification("notifications/cancelled", requestId=number) for number in range(50)))
        rig.agent(request(1, "ping"))
        await answer(rig, until, 1)
        await until(lambda: web.seen("GET"))
        assert len(web.seen("GET")) == 1
        assert sum(b"notifications/cancelled" in each.body for each in web.visits) <= 3


async def test_a_flood_of_requests_is_refused_before_it_opens_connections(
    until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcphost.serving.remote.MOST_REQUESTS", 1)
    async with gated(Echo("sse", listens=False)) as (rig, web):
        await open_legacy(rig, until)
        rig.agent(call(1, "sleep"))
        rig.decide(YES)
        await until(lambda: calls_at(web))
        rig.agent(request(2, "ping"))
        assert (await answer(rig, until, 2))["error"]["code"] == -32603


@pytest.mark.skipif(os.name == "nt", reason="a gate does not run there yet")
def test_an_address_takes_the_place_of_a_programs_streams() -> None:
    (reads, to_server), (from_server, writes), (noted, notes) = os.pipe(), os.pipe(), os.pipe()
    with Web(Echo(listens=False)) as web:
        program = AddressProgram(web.url, HEADERS, str, str)
        program.start((reads, writes, notes))
        os.write(to_server, json.dumps(request(1, "initialize", protocolVersion="2025-11-25")).encode() + b"\n")
        os.close(to_server)
        with open(from_server, "rb") as lines, open(noted, "rb") as said:
            assert json.loads(lines.read())["id"] == 1
            assert (program.wait(), said.read()) == (0, b"")
    assert web.seen("DELETE")


def test_an_address_that_is_stopped_ends_and_leaves_no_stream_open() -> None:
    (reads, to_server), (from_server, writes), (noted, notes) = os.pipe(), os.pipe(), os.pipe()
    program = AddressProgram("http://127.0.0.1:1/", {}, str, str)
    program.start((reads, writes, notes))
    os.write(to_server, b"not JSON\n")
    with open(noted, "rb") as said:
        assert said.readline()  # it reads by now
        program.stop()
        assert program.wait() == 0
    os.close(to_server)
    os.close(from_server)
    gc.collect()  # reports what is left open
