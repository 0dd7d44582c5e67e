"""A session without a handshake: what each request says, what is never sent, and what is taken of an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp_types.methods import validate_client_request

from mcphost.client import session_opening
from mcphost.client.client import RequestTimeouts
from mcphost.errors import (
    CapabilityMissing,
    ConnectionLost,
    EraUnclear,
    InvalidResult,
    MethodRemoved,
    ProbeFailed,
    RequestTimeout,
    ServerError,
)
from mcphost.protocol.lifecycle.revisions import NEWEST_HANDSHAKE, V2026_07_28
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.wire.jsonrpc import ErrorObject, Malformed, Notification, Request
from tests.client.conftest import Draw, Line, hello
from tests.client.scripted import NEVER
from tests.conftest import Until

META = "io.modelcontextprotocol/"
CAPABILITIES: dict[str, Any] = {
    "tools": {}, "prompts": {}, "resources": {"subscribe": True}, "completions": {}, "logging": {},
}  # fmt: skip
KEYS = ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel")
DISCOVERED: dict[str, Any] = {
    "resultType": "complete",
    "supportedVersions": ["2025-11-25", "2026-07-28"],
    "capabilities": CAPABILITIES,
    "instructions": "Be kind.",
    "_meta": {f"{META}serverInfo": {"name": "s", "version": "1"}},
}


async def modern(draw: Draw, script: dict[str, Any] | None = None, **more: Any) -> Line:
    """A line whose session is open without a handshake."""
    line = draw({"server/discover": DISCOVERED, **(script or {})}, era="auto", **more)
    await line.client.connect(5)
    return line


@pytest.mark.requirement("MOD-08", "MOD-24", "LIFE-08")
async def test_a_modern_session_opens_with_one_request(draw: Draw) -> None:
    line = await modern(draw)
    session = line.client.session
    assert session is not None
    assert (session.revision, line.server.revision) == (V2026_07_28, V2026_07_28)
    assert (session.server.server_info.name, session.server.instructions) == ("s", "Be kind.")
    assert session.versions == ("2025-11-25", "2026-07-28")
    assert line.server.methods() == ["server/discover"]


@pytest.mark.requirement("MOD-25", "MOD-26")
@pytest.mark.parametrize("info", [None, 5, {"name": 5}, {}])
async def test_a_server_may_say_nothing_of_itself(draw: Draw, info: Any) -> None:
    bare = {"supportedVersions": ["2026-07-28"], "_meta": {f"{META}serverInfo": info}}
    line = draw({"server/discover": bare}, era="modern")
    session = await line.client.connect(5)
    assert (session.server.server_info.name, session.server.capabilities) == ("", {})


EVERYTHING = {
    "tools/list": {"tools": []},
    "tools/call": {"content": []},
    "prompts/list": {"prompts": []},
    "prompts/get": {"messages": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": []},
    "completion/complete": {"completion": {"values": []}},
}


@pytest.mark.requirement("META-06", "MOD-01", "MOD-02", "MOD-23", "MSG-04", "LOG-05")
async def test_each_request_carries_its_metadata_and_is_one_of_its_revision(draw: Draw) -> None:
    declared: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {"form": {}}}
    line = await modern(draw, EVERYTHING, capabilities=declared)
    client = line.client
    await client.set_log_level(LogLevel.WARNING)
    await client.list_tools()
    await client.call_tool("t", {"a": 1})
    await client.prompts.list()
    await client.prompts.get("p", {"a": "b"})
    await client.resources.list()
    await client.resources.templates()
    await client.resources.read("memo://x")
    await client.request(
        "completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
    )
    await client.ping()
    requests = [message for message in line.server.sent if isinstance(message, Request)]
    assert len(requests) == len(line.server.sent) == 10
    assert len({request.id for request in requests}) == 10
    for request in requests:
        assert request.params is not None
        validate_client_request(request.method, "2026-07-28", dict(request.params))
        meta = request.params["_meta"]
        assert meta[f"{META}protocolVersion"] == "2026-07-28"
        assert meta[f"{META}clientInfo"] == {"name": "mcphost", "title": "mcphost", "version": "1.0"}
        assert meta[f"{META}clientCapabilities"] == declared
        assert meta.keys() <= {"progressToken", *(META + key for key in KEYS)}  # and no other key
    levels = [request.params["_meta"].get(f"{META}logLevel") for request in requests if request.params]
    assert levels == [None, *["warning"] * 9]


@pytest.mark.requirement("MOD-02")
async def test_nobody_can_forge_the_metadata_of_a_request(draw: Draw) -> None:
    line = await modern(draw, EVERYTHING)
    forged = {f"{META}protocolVersion": "1.0", f"{META}clientInfo": {}, f"{META}subscriptionId": 1, "com.example/x": 1}
    await line.client.request("tools/call", {"name": "t", "_meta": forged})
    (call,) = line.server.requests("tools/call")
    assert call.params is not None
    assert call.params["_meta"] == {
        "com.example/x": 1,
        f"{META}protocolVersion": "2026-07-28",
        f"{META}clientInfo": {"name": "mcphost", "title": "mcphost", "version": "1.0"},
        f"{META}clientCapabilities": {},
    }


@pytest.mark.requirement("MOD-04", "PING-04")
@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/result", "tasks/list"]
)
async def test_a_method_that_the_revision_lost_is_never_sent(draw: Draw, method: str) -> None:
    line = await modern(draw)
    with pytest.raises(MethodRemoved, match="2026-07-28 has no"):
        await line.client.request(method, {})
    with pytest.raises(CapabilityMissing):
        await line.client.request("tasks/get", {"taskId": "1"})
    assert line.server.methods() == ["server/discover"]


@pytest.mark.requirement("MOD-05", "MOD-06", "MOD-34", "ROOT-12")
async def test_nothing_but_requests_is_sent_whatever_the_server_sends(draw: Draw) -> None:
    line = await modern(draw, capabilities={"roots": {}})
    line.server.asks(1, "ping")
    line.server.asks("x", "sampling/createMessage", {})
    assert line.server.inbound is not None
    line.server.inbound.malformed(Malformed("no message", b"{}", asks=7))
    await line.client.notify_roots_changed()
    await asyncio.sleep(0)
    assert line.server.methods() == ["server/discover"]
    assert len(line.notes.all("malformed")) == 3


@pytest.mark.requirement("CANC-10", "CANC-11")
@pytest.mark.parametrize("own_stream", [False, True])
async def test_an_abandoned_request_is_cancelled_as_its_transport_does(
    draw: Draw, until: Until, own_stream: bool
) -> None:
    line = draw({"server/discover": DISCOVERED, "tools/call": NEVER}, era="auto")
    line.server.own_stream = own_stream
    await line.client.connect(5)
    call = asyncio.create_task(line.client.call_tool("t"))
    await until(lambda: line.server.waiting)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    with pytest.raises(RequestTimeout):
        await line.client.call_tool("t", timeouts=RequestTimeouts(0.02, 0.02))
    await line.client.aclose()
    cancelled = [message for message in line.server.sent if isinstance(message, Notification)]
    ids = [request.id for request in line.server.requests("tools/call")]
    assert [message.params and message.params["requestId"] for message in cancelled] == ([] if own_stream else ids)
    assert line.server.waiting == 0


@pytest.mark.requirement("CANC-12")
async def test_a_modern_server_cancels_no_call(draw: Draw) -> None:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    line = await modern(draw, {"tools/call": answer})
    call = asyncio.create_task(line.client.call_tool("t"))
    await asyncio.sleep(0)
    (request,) = line.server.requests("tools/call")
    for given in (request.id, str(request.id), None, {"a": 1}):
        line.server.says("notifications/cancelled", {"requestId": given})
    answer.set_result({"content": []})
    await call


@pytest.mark.requirement("ERR-09", "MOD-19", "MOD-10")
@pytest.mark.parametrize("code", [-32020, -32021])
async def test_a_modern_error_at_the_opening_prevents_a_handshake(draw: Draw, code: int) -> None:
    data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
    line = draw({"server/discover": ErrorObject(code, "no", data)}, era="auto")
    with pytest.raises(ServerError) as raised:
        await line.client.connect(5)
    assert (raised.value.code, raised.value.data) == (code, data)
    assert line.server.methods() == ["server/discover"]


@pytest.mark.requirement("MOD-28", "MOD-32")
async def test_a_process_that_ends_at_the_probe_is_recognized(draw: Draw) -> None:
    lost = ConnectionLost("exited", exit_code=3, stderr_tail=["bad method"])
    line = draw({"server/discover": lost}, era="auto")
    with pytest.raises(ProbeFailed) as raised:
        await line.client.connect(5)
    assert (raised.value.exit_code, raised.value.stderr_tail) == (3, ("bad method",))
    web = draw({"server/discover": lost, "initialize": lost}, era="auto")
    web.server.own_stream = True
    with pytest.raises(ConnectionLost) as outage:
        await web.client.connect(5)
    assert not isinstance(outage.value, ProbeFailed)


@pytest.mark.requirement("MOD-28")
async def test_a_process_that_refuses_all_after_the_probe_is_recognized(draw: Draw) -> None:
    refused = {
        "server/discover": ErrorObject(-32002, "no"),
        "initialize": ErrorObject(-32002, "Server not initialized"),
    }
    with pytest.raises(ProbeFailed, match=r"refused initialize after .*: Server not initialized \(-32002\)"):
        await draw(refused, era="auto").client.connect(5)
    with pytest.raises(ServerError, match=r"^Server not initialized"):
        await draw(refused).client.connect(5)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_opening, "MOST_PROBE_SECONDS", 0.05)
    monkeypatch.setattr(session_opening, "SILENCE", 0.05)


@pytest.mark.usefixtures("hasty")
@pytest.mark.requirement("MOD-27", "MOD-29")
async def test_a_late_probe_answer_opens_a_modern_session(draw: Draw) -> None:
    probe: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def greeted(request: Any) -> Any:
        probe.set_result(DISCOVERED)
        return NEVER

    line = draw({"server/discover": probe, "initialize": greeted, "tools/list": {"tools": []}}, era="auto")
    await line.client.connect(20)
    session = line.client.open_session
    assert (session.revision.modern, session.evidence) == (True, "asked in 2026-07-28, answered late")
    await line.client.list_tools()
    assert line.server.methods() == ["server/discover", "initialize", "tools/list"]


@pytest.mark.usefixtures("hasty")
async def test_answers_to_probe_and_handshake_demand_a_restart(draw: Draw) -> None:
    probe: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    greeting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def greeted(request: Any) -> Any:
        probe.set_result(DISCOVERED)
        asyncio.get_running_loop().call_soon(greeting.set_result, hello(NEWEST_HANDSHAKE))
        return greeting

    script = {"server/discover": probe, "initialize": greeted}
    with pytest.raises(EraUnclear, match="answered late when it was asked for its protocol versions"):
        await draw(script, era="auto").client.connect(20)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("late", [{}, {"supportedVersions": ["2025-11-25"]}, ErrorObject(-32601, "no")])
async def test_a_late_probe_answer_of_an_old_server_changes_nothing(draw: Draw, late: Any) -> None:
    probe: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def greeted(request: Any) -> Any:
        probe.set_result(late)
        return hello(NEWEST_HANDSHAKE)

    line = draw({"server/discover": probe, "initialize": greeted}, era="auto")
    await line.client.connect(20)
    assert not line.client.open_session.revision.modern


async def test_a_probe_that_no_handshake_may_follow_has_all_the_time(draw: Draw) -> None:
    line = draw({"server/discover": NEVER}, era="modern")
    with pytest.raises(RequestTimeout, match=r"^server/discover timed out after 0\.2 s"):
        await line.client.connect(0.2)


@pytest.mark.requirement("HDR-06", "HDR-12", "HDR-14")
@pytest.mark.parametrize(("http", "usable", "rejected"), [(True, ["good"], ["bad"]), (False, ["good", "bad"], [])])
async def test_tools_with_invalid_header_annotations_are_left_out(
    draw: Draw, http: bool, usable: list[str], rejected: list[str]
) -> None:
    def tool(name: str, **annotated: Any) -> dict[str, Any]:
        return {"name": name, "inputSchema": {"type": "object", "properties": {"a": annotated}}}

    tools = [tool("good", type="string", **{"x-mcp-header": "A"}), tool("bad", type="number", **{"x-mcp-header": "A"})]
    line = draw({"server/discover": DISCOVERED, "tools/list": {"tools": tools}}, era="auto")
    line.server.own_stream = http
    await line.client.connect(5)
    listed = await line.client.list_tools()
    assert [each.name for each in listed.items] == usable
    assert [each.name for each in listed.rejected] == rejected
    assert all("is not a string, integer or boolean" in each.reason for each in listed.rejected)


async def test_a_task_that_nobody_asked_for_is_no_answer(draw: Draw) -> None:
    line = await modern(draw, {"prompts/get": {"resultType": "task", "taskId": "1"}})
    with pytest.raises(InvalidResult):
        await line.client.prompts.get("p", {})
