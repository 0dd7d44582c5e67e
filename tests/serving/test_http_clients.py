"""Clients of the HTTP listener: what each is served by token and path, what ends it, and what it can resume."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from mcphost.errors import UnknownName
from mcphost.protocol.lifecycle.revisions import V2025_03_26, V2025_06_18, V2025_11_25, Revision
from mcphost.protocol.limits import MESSAGE_BYTES
from mcphost.serving import http_listener
from mcphost.serving.http_listener import SESSION_HEADER, HttpListener
from mcphost.serving.session import SessionHandle
from tests.conftest import Until
from tests.serving.http_rig import HttpSite, SiteContent, events, modern, request

server = pytest.mark.server_requirement


class OwnContent(SiteContent):
    """The content of one session, which keeps what the listener does with it."""

    def __init__(self, token: str, path: str) -> None:
        super().__init__()
        self.opened_for = token, path
        self.handle: SessionHandle | None = None
        self.closings = 0

    def attach(self, session: SessionHandle) -> None:
        self.handle = session

    def closed(self) -> None:
        self.closings += 1


class Estate(HttpSite):
    """A listener that opens content for each session; ``opened`` has all, and ``tokens`` are admitted."""

    def __init__(self) -> None:
        self.opened: list[OwnContent] = []
        self.tokens = {"one", "two"}
        super().__init__(HttpListener(self._open_content, lambda token: token in self.tokens), {}, 0)

    def _open_content(self, token: str, path: str) -> OwnContent | None:
        if path == "nobody":
            raise UnknownName("no server is called 'nobody'; there are: git")
        if path not in ("", "git", "@work"):
            return None
        self.opened.append(OwnContent(token, path))
        return self.opened[-1]


@pytest.fixture
async def estate() -> AsyncIterator[Estate]:
    estate = Estate()
    estate.url = f"http://127.0.0.1:{await estate.listener.open()}/mcp"
    async with estate.http:
        yield estate
        await estate.listener.aclose()


# Contents.


async def test_sessions_have_content_each_and_modern_requests_share_it(estate: Estate) -> None:
    headers = await estate.open(V2025_06_18)
    await estate.open(V2025_06_18)
    for key in (1, 2):
        assert (await estate.modern("server/discover", key=key)).status_code == 200
    estate.url += "/@work"
    await estate.modern("server/discover")
    assert [content.opened_for[1] for content in estate.opened] == ["", "", "", "@work"]
    estate.url = estate.url.removesuffix("/@work")
    await estate.http.delete(estate.url, headers=headers)
    assert [content.closings for content in estate.opened] == [1, 0, 0, 0]
    await estate.listener.aclose()
    assert [content.closings for content in estate.opened] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/mcp/other", 404, "Nothing is served at this path."),
        ("/mcp/nobody", 404, "no server is called 'nobody'; there are: git"),
        ("/mcpx", 404, "Nothing is here. The address of mcphost ends with /mcp."),
        ("/.well-known/oauth-protected-resource", 404, "Nothing is here. The address of mcphost ends with /mcp."),
        ("/.well-known/oauth-authorization-server/mcp", 404, None),
        ("/mcp/git", 200, None),
        ("/mcp/", 200, None),
        ("/mcp/%40work", 200, None),
    ],
)
async def test_a_path_names_what_is_served(estate: Estate, path: str, status: int, words: str | None) -> None:
    estate.url = estate.url.removesuffix("/mcp") + path
    answer = await estate.modern("server/discover")
    assert (answer.status_code, words or answer.text) == (status, answer.text)


async def test_a_session_belongs_to_its_path(estate: Estate) -> None:
    headers = await estate.open(V2025_06_18)
    estate.url += "/git"
    assert (await estate.post(request("ping", {}), **headers)).status_code == 404


async def test_a_refused_handshake_leaves_no_session(estate: Estate) -> None:
    answer = await estate.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": 7})
    assert "error" in answer.json()
    assert SESSION_HEADER not in answer.headers
    assert (estate.listener.sessions, estate.opened[0].closings) == ([], 1)


async def test_content_can_disconnect_its_session(estate: Estate) -> None:
    headers = await estate.open(V2025_06_18)
    async with estate.http.stream("GET", estate.url, headers=headers) as listening:
        handle = estate.opened[0].handle
        assert handle is not None
        handle.disconnect()
        assert (await listening.aread()) == b""
    assert (await estate.post(request("ping", {}), **headers)).status_code == 404
    assert estate.opened[0].closings == 1


async def test_content_can_disconnect_a_modern_client(estate: Estate) -> None:
    message, headers = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "a")
    async with estate.http.stream("POST", estate.url, content=json.dumps(message), headers=headers) as listening:
        handle = estate.opened[0].handle
        assert handle is not None
        handle.list_changed("tools")
        handle.disconnect()
        found = events((await listening.aread()).decode())
    assert [each.get("method", "answer").split("/")[-1] for each in found] == ["acknowledged", "list_changed", "answer"]
    assert (estate.opened[0].closings, estate.listener.sessions) == (1, [])


async def test_what_an_idle_client_keeps_is_closed(
    estate: Estate, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    await estate.listener.aclose()
    monkeypatch.setattr(http_listener, "CLIENT_SECONDS", 0.01)
    monkeypatch.setattr(http_listener, "SESSION_SECONDS", 0.01)
    estate.url = f"http://127.0.0.1:{await estate.listener.open()}/mcp"
    await estate.modern("server/discover")
    await estate.post(request("initialize", {"protocolVersion": "2025-06-18"}))
    asked = (await estate.modern("tools/call", {"name": "ask"}, Authorization="Bearer two")).json()
    await until(lambda: [content.closings for content in estate.opened][:2] == [1, 1])
    assert (asked["result"]["resultType"], estate.opened[2].closings) == ("input_required", 0)


# Admission.


@server("SAUTH-04", "SAUTH-05", "SAUTH-09", "SAUTH-10", "SAUTH-34")
@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer three", "Bearer one two", "Basic one", "one"])
async def test_a_request_without_a_valid_bearer_gets_words(estate: Estate, authorization: str) -> None:
    answer = await estate.modern("server/discover", Authorization=authorization)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="mcphost"')
    assert "bearer token" in answer.text
    assert estate.opened == []


@server("SAUTH-11")
async def test_a_token_in_the_query_gives_no_access(estate: Estate) -> None:
    estate.url += "?access_token=one&token=one"
    assert (await estate.modern("server/discover", Authorization="")).status_code == 401


async def test_a_revoked_token_ends_what_it_opened(estate: Estate) -> None:
    headers = await estate.open(V2025_06_18)
    await estate.open(V2025_06_18, "two")
    await estate.modern("server/discover")
    estate.tokens.remove("one")
    assert (await estate.post(request("ping", {}), **headers)).status_code == 401
    assert [content.closings for content in estate.opened] == [1, 0, 1]


@server("SHTTP-03", "SHTTP-04", "SHTTP-05")
@pytest.mark.parametrize(
    "headers",
    [
        [("Host", "rebound.example:PORT")],
        [("Host", "127.0.0.1.rebound.example:PORT")],
        [("Host", "127.0.0.1")],
        [("Origin", "http://rebound.example")],
        [("Origin", "http://rebound.example:PORT")],
        [("Origin", "https://127.0.0.1:PORT")],
        [("Origin", "http://127.0.0.1:1")],
        [("Origin", "null")],
        [("Origin", "")],
        [("Origin", "http://127.0.0.1:PORT"), ("Origin", "http://rebound.example")],
        [("Sec-Fetch-Site", "same-site")],
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/.well-known/x"])
async def test_a_web_page_is_refused_before_its_bearer_is_read(
    estate: Estate, headers: list[tuple[str, str]], path: str
) -> None:
    base = estate.url.removesuffix("/mcp")
    port = base.rpartition(":")[2]
    given = [(name, value.replace("PORT", port)) for name, value in headers]
    for method in ("POST", "GET", "OPTIONS"):
        answer = await estate.http.request(method, base + path, headers=[*given, ("Authorization", "")])
        assert answer.status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "[::1]"])
async def test_all_names_of_loopback_are_served(estate: Estate, host: str) -> None:
    port = estate.url.removesuffix("/mcp").rpartition(":")[2]
    answer = await estate.modern("server/discover", Host=f"{host}:{port}", Origin=f"http://{host.lower()}:{port}")
    assert answer.status_code == 200


async def test_a_preflight_is_refused(estate: Estate) -> None:
    answer = await estate.http.options(estate.url)
    assert answer.status_code == 403
    assert not any(name.startswith("access-control") for name in answer.headers)


async def test_an_oversize_body_is_refused_unread(estate: Estate) -> None:
    port = int(estate.url.removesuffix("/mcp").rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer one\r\n"
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {MESSAGE_BYTES + 1}\r\n\r\n".encode())
    assert b" 413 " in await asyncio.wait_for(reader.readline(), 10)
    writer.close()


async def test_the_open_requests_of_a_client_are_bounded(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_listener, "OPEN_REQUESTS", 1)
    headers = await estate.open(V2025_06_18)
    async with estate.http.stream("GET", estate.url, headers=headers):
        assert (await estate.modern("server/discover")).status_code == 429
        assert (await estate.modern("server/discover", Authorization="Bearer two")).status_code == 200


async def test_connections_are_bounded(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_listener, "CONNECTIONS", 1)
    port = int(estate.url.removesuffix("/mcp").rpartition(":")[2])
    await estate.modern("server/discover")  # over a connection that stays open
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()


@server("SMRTR-10", "SMRTR-11", "SMRTR-14")
async def test_a_sealed_state_is_of_one_client_path_and_request(estate: Estate) -> None:
    asked = (await estate.modern("tools/call", {"name": "ask"})).json()["result"]
    again = {
        "name": "ask",
        "requestState": asked["requestState"],
        "inputResponses": {key: {"roots": []} for key in asked["inputRequests"]},
    }

    async def attempt(**headers: str) -> int:
        answer: int = (await estate.modern("tools/call", again, 2, **headers)).json().get("error", {}).get("code", 0)
        return answer

    assert await attempt(Authorization="Bearer two") == -32602
    estate.url += "/git"
    assert await attempt() == -32602
    estate.url = estate.url.removesuffix("/git")
    assert [await attempt(), await attempt()] == [0, -32602]


# Resumption.


async def first_events(estate: Estate, headers: dict[str, str], count: int) -> list[dict[str, str]]:
    """The fields of the first events of a call of ``ask``, whose connection then breaks."""
    message = request("tools/call", {"name": "ask"}, 8)
    found: list[dict[str, str]] = []
    async with estate.http.stream("POST", estate.url, content=json.dumps(message), headers=headers) as response:
        fields: dict[str, str] = {}
        async for line in response.aiter_lines():
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
            else:
                found.append(fields)
                fields = {}
                if len(found) == count:
                    break
    return found


@server("SHTTP-16", "SHTTP-18", "SHTTP-21", "SRESUME-01", "SRESUME-04", "SRESUME-06", "SGET-04")
@pytest.mark.parametrize("revision", [V2025_03_26, V2025_06_18, V2025_11_25], ids=lambda each: each.version)
async def test_a_broken_call_is_resumed_with_its_answer(estate: Estate, revision: Revision) -> None:
    headers = await estate.open(revision)
    primed = revision is V2025_11_25
    found = await first_events(estate, headers, 2 if primed else 1)
    if primed:
        assert (found[0]["data"], found[0]["retry"]) == ("", "1000")
    assert json.loads(found[-1]["data"])["method"] == "roots/list"
    reply = {"jsonrpc": "2.0", "id": "ask-1", "result": {"roots": []}}
    assert (await estate.post(reply, **headers)).status_code == 202
    for last in found:
        resumed = await estate.http.get(estate.url, headers={**headers, "Last-Event-ID": last["id"]})
        messages = [each for each in resumed.text.splitlines() if each.startswith("data: ")]
        assert [json.loads(each[6:]).get("id") for each in messages] == (["ask-1", 8] if last is not found[-1] else [8])


@server("SRESUME-05", "SSESS-09")
async def test_events_of_another_session_are_not_resumed(estate: Estate) -> None:
    headers = await estate.open(V2025_11_25)
    found = await first_events(estate, headers, 2)
    other = await estate.open(V2025_11_25)
    for last in (found[-1]["id"], "7.7", "x"):
        answer = await estate.http.get(estate.url, headers={**other, "Last-Event-ID": last})
        assert (answer.status_code, answer.text) == (400, "This event is not known, or not any more.")


@server("SGET-06", "SRESUME-04")
async def test_a_listener_that_comes_back_takes_over_its_stream(estate: Estate) -> None:
    headers = await estate.open(V2025_06_18)
    (session,) = estate.listener.sessions
    async with estate.http.stream("GET", estate.url, headers=headers) as first:
        session.list_changed("tools")
        lines = first.aiter_lines()
        event_id = (await anext(lines)).removeprefix("id: ")
        async with estate.http.stream("GET", estate.url, headers={**headers, "Last-Event-ID": event_id}) as second:
            session.list_changed("resources")
            found = [line async for line in lines if line.startswith("data: ")]
            assert len(found) == 1
            async for line in second.aiter_lines():
                if line.startswith("data: "):
                    assert "resources/list_changed" in line
                    break
