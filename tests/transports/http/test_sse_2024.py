from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from mcphost.errors import ConnectionLost, HttpStatusError, McphostError, MessageTooLarge
from mcphost.protocol.lifecycle.revisions import V2024_11_05, V2025_06_18, Revision
from mcphost.protocol.wire.jsonrpc import Notification, Request
from mcphost.transports.http.detection import DetectedTransport
from mcphost.transports.http.endpoint import PhaseTimeouts
from mcphost.transports.http.sse_2024 import SseTransport
from mcphost.transports.http.streamable import HttpTransport
from tests.conftest import Until
from tests.transports.http.http_connection import (
    HELLO,
    PROMPT,
    QUICK,
    SMALL,
    Echo,
    Inbox,
    Talk,
    Web,
    WebLine,
    connected,
    redirecting,
)


@pytest.mark.requirement("OLD-01", "OLD-02", "OLD-03", "HTTP-16")
@pytest.mark.parametrize("revision", [V2024_11_05, V2025_06_18], ids=lambda revision: revision.version)
async def test_messages_go_where_the_server_says_and_answers_come_as_events(revision: Revision) -> None:
    async with connected(Echo(old=True), revision=revision, kind=SseTransport) as line:
        assert await line.call("notify", count=3) == "told"
        assert line.words == ["0", "1", "2"]
        both = await asyncio.gather(line.call("echo", text="a"), line.call("echo", text="b"))
        assert list(both) == ["a", "b"]
        assert line.web.visits[0].method == "GET"
        assert {visit.path for visit in line.web.seen("POST")} == {"/messages?session=old%2F1"}
        opening, *rest = line.web.seen("POST")
        named = None if revision is V2024_11_05 else revision.version
        assert {visit.headers.get("mcp-protocol-version") for visit in rest} == {named}
        assert "mcp-protocol-version" not in opening.headers


@pytest.mark.requirement("OLD-05")
async def test_the_end_of_the_stream_is_the_end_of_the_session(until: Until) -> None:
    async with connected(Echo(old=True), revision=V2024_11_05, kind=SseTransport) as line:
        waiting = asyncio.create_task(line.call("sleep"))
        with pytest.raises(ConnectionLost):
            await line.call("hang up")
        with pytest.raises(ConnectionLost):
            await waiting
        with pytest.raises(ConnectionLost):
            await line.transport.send(Notification("n"))
        await until(lambda: len(line.inbox.ends) == 1)


@pytest.mark.requirement("OLD-05")
async def test_leaving_closes_the_stream_and_tells_who_waits(until: Until) -> None:
    async with connected(Echo(old=True), revision=V2024_11_05, kind=SseTransport) as line:
        waiting = asyncio.create_task(line.call("sleep"))
        await until(lambda: len(line.web.seen("POST")) == 3)
        await line.transport.aclose()
        with pytest.raises(ConnectionLost, match="mcphost closed the connection"):
            await waiting
        await until(lambda: line.web.hung_up == ["/mcp"])
        assert line.inbox.ends == []
    assert line.web.seen("DELETE") == []


def saying(*events: bytes) -> Callable[[Talk], None]:
    def serve(talk: Talk) -> None:
        if talk.command == "POST":
            talk.whole(202)
            return
        talk.begin_events()
        talk.events(*events)
        talk.linger()

    return serve


def endpoint(where: str) -> Callable[[Talk], None]:
    return saying(f"event: endpoint\ndata: {where}\n\n".encode())


ELSEWHERE = [
    *("https://evil.example/m", "//evil.example/m", "http://127.0.0.1:1/m", "http://user@127.0.0.1/m", "\\\\evil/m"),
    *("javascript:alert(1)", "file:///etc/passwd", "http://[", "http://127.0.0.1\x00@evil/", "/a\x0bb"),
    *("http://me@{here}/m", "https://{here}/m", "http://{canary}/m", "//{canary}/m", "http://localhost:{port}/m"),
]


@pytest.mark.hostile("H11")
@pytest.mark.requirement("OLD-04")
@pytest.mark.parametrize("where", ELSEWHERE)
async def test_messages_never_go_to_another_origin(where: str) -> None:
    """Such an address is refused at once, and nothing is sent there."""
    began = time.monotonic()
    with Web(Echo()) as canary:

        def serve(talk: Talk) -> None:
            here = talk.headers["host"]
            told = where.format(here=here, port=here.partition(":")[2], canary=f"127.0.0.1:{canary.port}")
            endpoint(told)(talk)

        with pytest.raises(ConnectionLost, match="messages sent to") as caught:
            async with connected(serve, revision=None, kind=SseTransport):
                pass
        assert canary.visits == []
    assert caught.value.lasting
    assert time.monotonic() - began < PROMPT


@pytest.mark.hostile("H11")
@pytest.mark.requirement("OLD-01", "OLD-02")
async def test_only_the_first_endpoint_counts_and_nothing_is_sent_before_it() -> None:
    both = saying(b": hm\n\nevent: endpoint\ndata: /one?a=b\n\n", b"event: endpoint\ndata: /two\n\n")
    async with connected(both, revision=None, kind=SseTransport) as line:
        await line.transport.send(Notification("n"))
        assert [f"{visit.method} {visit.path}" for visit in line.web.visits] == ["GET /mcp", "POST /one?a=b"]


@pytest.mark.requirement("OLD-01")
@pytest.mark.parametrize(
    ("serve", "failure", "says"),
    [
        (saying(b": nothing\n\n"), HttpStatusError, "did not say where it takes messages in 0.2 s"),
        (lambda talk: talk.begin_events() or talk.end_events(), HttpStatusError, "closed its event stream"),
        (lambda talk: talk.whole(200, b"<html>", "text/html"), HttpStatusError, "is not an event stream: <html>"),
        (lambda talk: talk.whole(404), HttpStatusError, "HTTP 404"),
        (redirecting(302, lambda talk: "http://127.0.0.1:1/x"), HttpStatusError, "another origin"),
    ],
)
async def test_a_server_without_the_stream_is_told_at_once(
    serve: Callable[[Talk], None], failure: type[McphostError], says: str
) -> None:
    with pytest.raises(failure, match=says):
        async with connected(serve, revision=None, kind=SseTransport, endpoint_seconds=0.2):
            pass


@pytest.mark.hostile("H07")
async def test_an_event_over_the_limit_fails_the_call_it_answers() -> None:
    huge = b'data: {"jsonrpc":"2.0","id":1,"result":{"x":"' + b"x" * 150_000 + b'"}}\n\n'
    streams: list[Talk] = []

    def serve(talk: Talk) -> None:
        if talk.command == "GET":
            streams.append(talk)
            endpoint("/m")(talk)
        else:
            talk.whole(202)
            streams[0].events(huge)

    async with connected(serve, revision=None, kind=SseTransport) as line:
        with pytest.raises(MessageTooLarge, match="over the limit"):
            await line.ask("ping")


async def test_a_post_may_wait_for_the_work_it_asks_for_and_for_ever(until: Until) -> None:
    """As servers of Java's SDK do; the answer comes by the stream, whatever becomes of the POST."""
    streams: list[Talk] = []

    def serve(talk: Talk) -> None:
        if talk.command == "GET":
            streams.append(talk)
            endpoint("/m")(talk)
        else:
            talk.linger(0.5)
            streams[0].events({"jsonrpc": "2.0", "id": 1, "result": {"late": True}})
            talk.linger()

    timeouts = PhaseTimeouts(headers=0.3, ending=0.5)
    async with connected(serve, revision=None, kind=SseTransport, timeouts=timeouts) as line:
        assert (await line.ask("ping")).result == {"late": True}
        await until(lambda: line.web.hung_up == ["/m"])
        assert line.inbox.ends == []


async def test_a_refused_message_fails_who_sent_it() -> None:
    def serve(talk: Talk) -> None:
        endpoint("/m")(talk) if talk.command == "GET" else talk.whole(400, b"no such session", "text/plain")

    async with connected(serve, revision=None, kind=SseTransport) as line:
        with pytest.raises(HttpStatusError, match=r"HTTP 400 \(text/plain\): no such session"):
            await line.ask("ping")


# Finding out


def detecting(web: Web) -> DetectedTransport:
    return DetectedTransport(
        lambda: HttpTransport(web.url, SMALL, timeouts=QUICK), lambda: SseTransport(web.url, SMALL, timeouts=QUICK)
    )


@pytest.mark.requirement("HTTP-30", "HTTP-31")
@pytest.mark.parametrize("old", [False, True])
async def test_one_url_may_name_either_transport(old: bool) -> None:
    with Web(Echo(old=old, listens=False)) as web:
        line = WebLine(web, detecting(web))
        await line.transport.open(line.inbox)
        await line.shake_hands(V2024_11_05)
        assert isinstance(line.transport, DetectedTransport)
        assert (line.transport.found, line.transport.own_stream) == (("sse", False) if old else ("http", True))
        assert await line.call("echo", text="x") == "x"
        await line.transport.listen()
        await line.transport.aclose()
        assert line.transport.report().pid is None


ERROR = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}'


@pytest.mark.requirement("HTTP-30", "HTTP-31", "HTTP-32", "HTTP-33")
@pytest.mark.parametrize(
    ("status", "body", "kind", "gets"),
    [
        (404, b"nothing here", "text/plain", 1),
        (405, b"", "", 1),
        (400, b'{"detail":"no"}', "application/json", 1),
        (404, ERROR, "application/json", 0),
        (401, b"", "", 0),
        (403, b"", "", 0),
        (409, b"", "", 0),
        (302, b"", "", 0),
        (503, b"", "", 0),
        (200, b"<html>", "text/html", 0),
    ],
)
async def test_the_older_transport_is_tried_only_where_it_may_be_there(
    status: int, body: bytes, kind: str, gets: int
) -> None:
    with Web(lambda talk: talk.whole(status, body, kind)) as web:
        transport = detecting(web)
        await transport.open(Inbox())
        if body == ERROR:
            assert (await transport.request(Request(1, "initialize", HELLO), {})).error is not None
        else:
            with pytest.raises(McphostError, match=f"HTTP {status}"):
                await transport.request(Request(1, "initialize", HELLO), {})
        assert len(web.seen("GET")) == gets
        await transport.aclose()
