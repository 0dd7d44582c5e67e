"""The HTTP listener over real sockets, with plain HTTP requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from mcphost.protocol.lifecycle.revisions import META_PREFIX, REVISIONS, V2025_03_26, Revision
from mcphost.protocol.limits import MESSAGE_BYTES
from mcphost.serving.http_listener import PATH, SESSION_HEADER, HttpListener
from mcphost.serving.served_request import Json
from tests.serving.http_rig import MODERN, HttpSite, SiteContent, events, modern, request

server = pytest.mark.server_requirement
HTTP_REVISIONS = pytest.mark.parametrize(
    "revision", [each for each in REVISIONS if each.version > "2024-11-05"], ids=lambda each: each.version
)


@pytest.fixture
async def site() -> AsyncIterator[HttpSite]:
    contents = {"one": SiteContent(), "two": SiteContent()}
    listener = HttpListener(lambda token, path: contents[token], contents.__contains__)
    site = HttpSite(listener, contents, await listener.open())
    async with site.http:
        yield site
        await listener.aclose()


@server("SHTTP-03", "SHTTP-04", "SHTTP-06")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer three"}, 401),
        ({"Authorization": "Basic one"}, 401),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_foreign_request_is_refused(site: HttpSite, method: str, headers: dict[str, str], status: int) -> None:
    if method != "POST" and status == 415:
        return
    answer = await site.http.request(method, site.url, headers=headers)
    assert answer.status_code == status
    assert not any(name.startswith("access-control") for name in answer.headers)


async def test_a_page_of_the_server_itself_may_ask(site: HttpSite) -> None:
    origin = site.url.removesuffix(PATH)
    assert (await site.modern("server/discover", Origin=origin, Sec_Fetch_Site="same-origin")).status_code == 200


async def test_an_oversize_body_is_refused(site: HttpSite) -> None:
    answer = await site.http.post(site.url, content=b" " * (MESSAGE_BYTES + 1))
    assert answer.status_code == 413


@server("SMSG-23")
async def test_a_body_that_is_not_json_gets_an_error(site: HttpSite) -> None:
    answer = await site.http.post(site.url, content=b"{")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)


@server("SHTTP-11", "SHTTP-12", "SHTTP-13", "SHTTP-19", "SHTTP-20", "SHTTP-23")
@HTTP_REVISIONS
async def test_an_answer_is_json_or_ends_a_stream(site: HttpSite, revision: Revision) -> None:
    now = await site.call(revision, "now")
    assert (now.headers["content-type"], now.json()["id"]) == ("application/json", 7)
    later = await site.call(revision, "later")
    assert (later.headers["content-type"], later.headers["x-accel-buffering"]) == ("text/event-stream", "no")
    progress, answer = events(later.text)
    assert (progress["params"], answer["id"]) == ({"progressToken": 5, "progress": 1}, 7)


@server("SMETA-10", "SHDR-03", "SHDR-04", "SHDR-05", "SHDR-08", "SHDR-09", "SHDR-10", "SHDR-11", "SHDR-15")
@pytest.mark.parametrize(
    ("headers", "params", "status", "number"),
    [
        ({"MCP-Protocol-Version": "2025-11-25"}, {}, 400, -32020),
        ({"Mcp-Method": "tools/list"}, {}, 400, -32020),
        ({"Mcp-Method": "Tools/Call"}, {}, 400, -32020),
        ({"Mcp-Name": "other"}, {}, 400, -32020),
        ({"Mcp-Name": "=?base64?bm93?="}, {}, 200, 0),
        ({}, {"_meta": {f"{META_PREFIX}protocolVersion": "2099-01-01"}}, 400, -32020),
        (
            {"MCP-Protocol-Version": "2099-01-01"},
            {"_meta": {f"{META_PREFIX}protocolVersion": "2099-01-01"}},
            400,
            -32022,
        ),
        ({}, {"_meta": {}}, 400, -32602),
        ({}, {"_meta": {f"{META_PREFIX}protocolVersion": MODERN}}, 400, -32602),
    ],
)
async def test_headers_repeat_the_body(
    site: HttpSite, headers: dict[str, str], params: Json, status: int, number: int
) -> None:
    message, own = modern("tools/call", {"name": "now"})
    message["params"] |= params
    answer = await site.post(message, **{**own, **headers})
    assert (answer.status_code, answer.json().get("error", {}).get("code", 0)) == (status, number)


@server("SHDR-16", "SHDR-17", "SHDR-18", "SHDR-19", "SHDR-20")
@pytest.mark.parametrize(
    ("region", "header", "status"),
    [
        ("north", "north", 200),
        ("north", "=?base64?bm9ydGg=?=", 200),
        ("north", "=?base64?bm9ydGg?=", 400),
        ("north", "South", 400),
        ("north", None, 400),
        (None, None, 200),
    ],
)
async def test_a_marked_argument_is_repeated_in_its_header(
    site: HttpSite, region: str | None, header: str | None, status: int
) -> None:
    headers = {} if header is None else {"Mcp-Param-Region": header}
    answer = await site.modern("tools/call", {"name": "marked", "arguments": {"region": region}}, **headers)
    assert (answer.status_code, answer.json().get("error", {}).get("code", -32020)) == (status, -32020)


@server("SHDR-05", "SMETA-15", "SVER-12")
@pytest.mark.parametrize(
    ("method", "params", "status", "number"),
    [
        ("ping", {}, 404, -32601),
        ("tools/unknown", {}, 404, -32601),
        ("tasks/get", {"taskId": "x", "capabilities": {}}, 400, -32021),
        ("tasks/get", {"taskId": "x"}, 200, -32602),
    ],
)
async def test_a_modern_error_has_its_status(
    site: HttpSite, method: str, params: Json, status: int, number: int
) -> None:
    answer = await site.modern(method, params)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, number)


@server("SCANC-12", "SHTTP-26", "SHTTP-27")
async def test_a_dropped_modern_response_cancels_its_request(site: HttpSite) -> None:
    message, headers = modern("tools/call", {"name": "never", "_meta": {"progressToken": 1}})
    async with site.http.stream("POST", site.url, content=json.dumps(message), headers=headers) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                break
    await asyncio.wait_for(site.contents["one"].cancelled.wait(), 10)
    assert site.listener.sessions == []


@server("SMRTR-01", "SMRTR-11")
async def test_a_round_goes_on_in_another_request_of_the_same_client(site: HttpSite) -> None:
    asked = (await site.modern("tools/call", {"name": "ask"})).json()["result"]
    again = {
        "name": "ask",
        "requestState": asked["requestState"],
        "inputResponses": {key: {"roots": []} for key in asked["inputRequests"]},
    }
    stolen = await site.modern("tools/call", again, 2, Authorization="Bearer two")
    assert stolen.json()["error"]["code"] == -32602
    answer = (await site.modern("tools/call", again, 3)).json()
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (3, '{"roots": []}')


@server("SSUB-12", "SSUB-07")
async def test_a_listener_stays_open_and_hears_of_changes(site: HttpSite) -> None:
    message, headers = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "a")
    found = list[Json]()
    async with site.http.stream("POST", site.url, content=json.dumps(message), headers=headers) as response:
        async for line in response.aiter_lines():
            found += events(line)
            if len(found) == 1 and line.startswith("data: "):
                for session in site.listener.sessions:
                    session.list_changed("tools")
            if len(found) == 2:
                break
    assert [each["method"] for each in found] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    ]
    assert found[1]["params"]["_meta"] == {f"{META_PREFIX}subscriptionId": "a"}


# Sessions of the handshake.


@server("SSESS-01", "SSESS-03", "SSESS-04", "SSESS-05", "SSESS-07", "SSESS-09", "SHDR-02")
async def test_a_session_is_that_of_its_client_until_it_ends(site: HttpSite) -> None:
    headers = await site.open(V2025_03_26)
    ping = request("ping", {})
    assert (await site.post(ping, **headers)).json()["result"] == {}
    changes = [
        ({SESSION_HEADER: "x"}, 404),
        ({"Authorization": "Bearer two"}, 404),
        ({"MCP-Protocol-Version": "2020-01-01"}, 400),
    ]
    for change, status in changes:
        assert (await site.post(ping, **{**headers, **change})).status_code == status
    assert (await site.post(ping)).status_code == 400
    assert (await site.http.delete(site.url, headers=headers)).status_code == 204
    assert (await site.post(ping, **headers)).status_code == 404


@server("SHTTP-07", "SBATCH-05", "SBATCH-06", "SBATCH-07")
async def test_a_batch_is_answered_in_one_body(site: HttpSite) -> None:
    headers = await site.open(V2025_03_26)
    notice = {"jsonrpc": "2.0", "method": "notifications/unknown"}
    assert (await site.post([notice], **headers)).status_code == 202
    answers = (await site.post([request("ping", {}, 5), notice, request("ping", {}, 6)], **headers)).json()
    assert [each["id"] for each in answers] == [5, 6]


@server("SGET-01", "SGET-02", "SGET-03", "SGET-05", "SGET-06", "SHTTP-13")
@pytest.mark.parametrize("revision", [each for each in REVISIONS if not each.modern and each.version > "2024"])
async def test_a_question_comes_on_the_stream_of_its_call(site: HttpSite, revision: Revision) -> None:
    headers = await site.open(revision)
    call = asyncio.create_task(site.post(request("tools/call", {"name": "ask"}, 8), **headers))
    await asyncio.wait_for(site.contents["one"].asked.wait(), 10)
    reply = {"jsonrpc": "2.0", "id": "ask-1", "result": {"roots": []}}
    assert (await site.post(reply, **headers)).status_code == 202
    question, answer = events((await call).text)
    assert (question["method"], answer["id"]) == ("roots/list", 8)
    async with site.http.stream("GET", site.url, headers=headers) as response:
        assert (await site.http.get(site.url, headers=headers)).status_code == 409
        (session,) = site.listener.sessions
        session.list_changed("tools")
        async for line in response.aiter_lines():
            if found := events(line):
                break
    assert found == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]


@server("SCANC-04")
async def test_a_cancelled_call_ends_its_stream_without_an_answer(site: HttpSite) -> None:
    headers = await site.open(V2025_03_26)
    params = {"name": "never", "_meta": {"progressToken": 1}}
    message = json.dumps(request("tools/call", params, 8))
    async with site.http.stream("POST", site.url, content=message, headers=headers) as response:
        notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 8}}
        assert (await site.post(notice, **headers)).status_code == 202
        text = "".join([line async for line in response.aiter_text()])
    assert ["id" in each for each in events(text)] == [False]
    assert site.contents["one"].cancelled.is_set()


async def test_a_second_request_with_an_open_id_leaves_the_first_alone(site: HttpSite) -> None:
    headers = await site.open(V2025_03_26)
    call = asyncio.create_task(site.post(request("tools/call", {"name": "ask"}, 8), **headers))
    await asyncio.wait_for(site.contents["one"].asked.wait(), 10)
    assert (await site.post(request("ping", {}, 8), **headers)).status_code == 400
    await site.post({"jsonrpc": "2.0", "id": "ask-1", "result": {}}, **headers)
    assert "result" in events((await call).text)[-1]
