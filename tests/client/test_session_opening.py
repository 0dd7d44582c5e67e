from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcphost.client import session_opening
from mcphost.errors import (
    CapabilityMissing,
    ConnectionLost,
    HttpStatusError,
    InvalidResult,
    McphostError,
    NoAnswerFound,
    RequestTimeout,
    ServerError,
    ServerNotReady,
    SessionExpired,
    VersionRefused,
)
from mcphost.protocol.lifecycle.negotiation import Era
from mcphost.protocol.lifecycle.revisions import NEWEST_HANDSHAKE, Revision
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.jsonrpc import ErrorObject, Malformed, Notification, Request, Response
from tests.client.conftest import Connect, Draw, hello
from tests.client.scripted import NEVER, Answer
from tests.conftest import Until


@pytest.mark.requirement("LIFE-01", "LIFE-02", "LIFE-03", "LIFE-04", "LIFE-08", "LIFE-22", "CAP-01", "BATCH-02")
@pytest.mark.parametrize("capabilities", [{}, {"roots": {"listChanged": True}}, {"sampling": {}, "elicitation": {}}])
async def test_a_session_opens_with_initialize_and_one_notice(
    connect: Connect, revision: Revision, capabilities: dict[str, Any]
) -> None:
    line = await connect(capabilities=capabilities)
    initialize, initialized = line.server.sent
    assert isinstance(initialize, Request)
    assert initialize.method == "initialize"
    assert initialize.params == {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "mcphost", "title": "mcphost", "version": "1.0"},
    }
    assert initialized == Notification("notifications/initialized")
    assert line.client.session is not None
    assert line.client.session.revision is revision


@pytest.mark.requirement("LIFE-05", "LIFE-12", "LIFE-13", "BATCH-01", "BATCH-04")
async def test_the_agreed_revision_governs_the_session(connect: Connect, revision: Revision) -> None:
    line = await connect({"tools/list": {"tools": []}})
    assert line.server.revision is revision
    await line.client.list_tools()
    with pytest.raises(CapabilityMissing):  # 2024-11-05 has no word for completions, and nothing is sent for prompts
        await line.client.request("prompts/list")
    assert line.server.methods() == ["initialize", "notifications/initialized", "tools/list"]


HANDSHAKE = ("initialize", "notifications/initialized")
BAD_HANDSHAKES: list[tuple[dict[str, Answer], type[Exception]]] = [
    ({"initialize": ErrorObject(-32603, "\x1b[2Jno")}, ServerError),
    ({"initialize": {"protocolVersion": "1999-01-01"}}, VersionRefused),
    ({"initialize": {"protocolVersion": 3}}, InvalidResult),
    ({"initialize": {}}, InvalidResult),
    ({"initialize": {"protocolVersion": NEWEST_HANDSHAKE.version, "capabilities": ["tools"]}}, InvalidResult),
    ({"initialize": {"protocolVersion": NEWEST_HANDSHAKE.version, "capabilities": "tools"}}, InvalidResult),
    ({"initialize": ConnectionLost("gone")}, ConnectionLost),
    ({"initialize": NEVER}, RequestTimeout),
]
BAD_NOTICES: list[tuple[dict[str, Answer], type[Exception]]] = [
    ({"initialize": hello(NEWEST_HANDSHAKE), "notifications/initialized": ConnectionLost("gone")}, ConnectionLost),
    ({"initialize": hello(NEWEST_HANDSHAKE), "notifications/initialized": NEVER}, RequestTimeout),
]


@pytest.mark.hostile("J12")
@pytest.mark.requirement("LIFE-06", "LIFE-08", "LIFE-11", "LIFE-15", "LIFE-24", "CANC-02", "TIME-01")
@pytest.mark.parametrize(("script", "error"), BAD_HANDSHAKES + BAD_NOTICES)
async def test_a_handshake_that_fails_leaves_no_session(
    draw: Draw, script: dict[str, Answer], error: type[Exception]
) -> None:
    line = draw(script)
    with pytest.raises(error):
        await line.client.connect(0.5 if NEVER in script.values() else 30)
    assert line.client.session is None
    with pytest.raises(ServerNotReady):
        await line.client.list_tools()
    await line.client.aclose()
    assert line.server.methods() == [each for each in HANDSHAKE if each in script]
    assert line.server.closed


@pytest.mark.parametrize("refusal", [HttpStatusError(404), HttpStatusError(500), SessionExpired("gone")])
async def test_a_refused_initialized_notification_is_tolerated(draw: Draw, refusal: McphostError) -> None:
    script = {"initialize": hello(NEWEST_HANDSHAKE), "notifications/initialized": refusal, "tools/list": {"tools": []}}
    line = draw(script)
    await line.client.connect(5)
    assert not (await line.client.list_tools()).items
    assert [note for note in line.notes.all("noted") if "refused notifications/initialized" in note]
    await line.client.aclose()


STRAY = Malformed("not JSON", b"INFO listening", is_json=False)
FRAMED = Malformed("not JSON", b"Content-Length: 120", is_json=False)
PIECE = Malformed("not JSON", b'  "jsonrpc": "2.0",', is_json=False)
FLOAT_ID = Malformed("a result whose id is neither", b'{"id": 1.0, "result": {}}')
LINES = "lines that are not messages; each message must be one line of JSON"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_opening, "SILENCE", 0.05)
    monkeypatch.setattr(session_opening, "PROBE_SILENCE", 0.02)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("output", "says"),
    [
        ([Response("1", result={})], r'an answer came with the id "1" \(a text\), which no request has; .* had \d+$'),
        ([Response(0, result={})], "came with the id 0, which no request has"),
        ([Response(None, error=ErrorObject(-32700, "cannot parse"))], "an error to no request: cannot parse"),
        ([FLOAT_ID], "what answers no request: a result whose id is neither"),
        ([STRAY] * 3, LINES),
        ([FRAMED], LINES),
        ([PIECE], LINES),
    ],
)
@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_output_without_an_answer_ends_the_wait_soon(
    draw: Draw, output: list[Response | Malformed], says: str, era: Era
) -> None:
    def writes(request: Request) -> Answer:
        assert line.server.inbound is not None
        for each in output:
            if isinstance(each, Response):
                line.server.inbound.unmatched(each)
            else:
                line.server.inbound.malformed(each)
        return NEVER

    line = draw({"server/discover": writes, "initialize": writes}, era=era)
    with pytest.raises(NoAnswerFound, match=says):
        await line.client.connect(60)


async def test_a_wait_too_short_to_be_sure_names_the_output_all_the_same(draw: Draw) -> None:
    def writes(request: Request) -> Answer:
        assert line.server.inbound is not None
        line.server.inbound.unmatched(Response("1", result={}))
        return NEVER

    line = draw({"initialize": writes})
    with pytest.raises(RequestTimeout, match=r"initialize timed out .*; an answer came with the id"):
        await line.client.connect(0.05)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("output", [[STRAY] * 2, [Malformed("params is no object", b'{"method": "x", "params": 1}')]])
async def test_few_stray_lines_do_not_end_the_opening(draw: Draw, output: list[Malformed], until: Until) -> None:
    line = draw({"initialize": NEVER})
    connecting = asyncio.create_task(line.client.connect(0.5))
    await until(lambda: line.server.waiting)
    for each in output:
        line.client.malformed(each)
    with pytest.raises(RequestTimeout):
        await connecting


@pytest.mark.requirement("TIME-01")
async def test_a_time_limit_names_the_step_that_took_the_time(draw: Draw) -> None:
    line = draw({"initialize": hello(NEWEST_HANDSHAKE), "notifications/initialized": NEVER})
    with pytest.raises(RequestTimeout, match=r"^notifications/initialized timed out after 0\.1 s"):
        await line.client.connect(0.1)


@pytest.mark.requirement("CANC-02")
async def test_giving_up_a_handshake_sends_no_cancel(draw: Draw, until: Until) -> None:
    line = draw({"initialize": NEVER})
    task = asyncio.create_task(line.client.connect(5))
    await until(lambda: line.server.waiting)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert line.server.methods() == ["initialize"]


@pytest.mark.hostile("J13")
@pytest.mark.requirement("LIFE-09", "LIFE-10", "PING-01", "LOG-02")
async def test_before_the_session_is_open_only_ping_and_log_pass(draw: Draw, until: Until) -> None:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    line = draw({"initialize": answer}, capabilities={"roots": {}})
    connecting = asyncio.create_task(line.client.connect(5))
    await until(lambda: line.server.waiting)
    line.server.asks("a", "ping")
    line.server.asks("b", "roots/list")
    line.server.says("notifications/message", {"level": "info", "data": "early"})
    line.server.says("notifications/tools/list_changed")
    with pytest.raises(ServerNotReady):
        await line.client.list_tools()
    await until(lambda: len(line.server.replies()) == 2)
    ping, roots = sorted(line.server.replies(), key=lambda reply: str(reply["id"]))
    assert ping == {"jsonrpc": "2.0", "id": "a", "result": {}}
    assert (roots["id"], roots["error"]["code"]) == ("b", ErrorCode.INVALID_REQUEST)
    assert line.notes.all("logged") == [{"level": "info", "data": "early"}]
    assert line.notes.all("changed") == []
    answer.set_result(hello(NEWEST_HANDSHAKE))
    await connecting
    assert line.server.methods().count("notifications/initialized") == 1


@pytest.mark.requirement("LIFE-11")
async def test_the_best_listed_version_is_offered_once_more(draw: Draw) -> None:
    refusal = ErrorObject(-32602, "Unsupported", {"supported": ["2024-11-05"]})
    line = draw({"initialize": [refusal, {"protocolVersion": "2024-11-05"}]})
    session = await line.client.connect(5)
    assert session.revision.version == "2024-11-05"
    offered = [request.params for request in line.server.requests("initialize")]
    assert [params["protocolVersion"] for params in offered if params] == ["2025-11-25", "2024-11-05"]


@pytest.mark.requirement("LIFE-18", "CAP-06", "MSG-17", "META-01", "META-05")
async def test_what_the_server_says_of_itself_is_kept(draw: Draw) -> None:
    capabilities = {"zzz": {"a": 1}, "experimental": {"foo": {}}}
    server = {"name": "n", "version": "2", "title": "T", "description": "D", "websiteUrl": "https://x.invalid"}
    more = {"instructions": "Be kind.", "_meta": {"io.modelcontextprotocol/x": [None]}, "x-future": {}}
    result = hello(NEWEST_HANDSHAKE, serverInfo=server, **more) | {"capabilities": capabilities}
    session = await draw({"initialize": result}).client.connect(5)
    about = session.server.server_info
    assert (about.title, about.description, about.website_url) == ("T", "D", "https://x.invalid")
    assert session.server.capabilities == capabilities
    assert session.server.instructions == "Be kind."
