from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
from contextlib import suppress

import pytest

from mcphost import __version__
from mcphost.errors import (
    AuthorizationRequired,
    ConnectionLost,
    HttpStatusError,
    InvalidResult,
    McphostError,
    MessageTooLarge,
    SessionExpired,
)
from mcphost.protocol.lifecycle.revisions import HANDSHAKE_REVISIONS, V2025_03_26, V2025_06_18, Revision
from mcphost.protocol.wire.jsonrpc import Notification, Request, Response
from mcphost.transports.base import TransportLimits
from mcphost.transports.http.streamable import HttpTransport
from tests.conftest import Until
from tests.loop_watchdog import LoopWatchdog
from tests.transports.http.http_connection import HELLO, PROMPT, Echo, Talk, answer, connected, spoiling

HTTP_REVISIONS = HANDSHAKE_REVISIONS[1:]
JSON = "application/json"

# Headers and sessions


@pytest.mark.requirement("HTTP-01", "HTTP-02", "HTTP-03", "HTTP-04", "HTTP-05", "HTTP-07", "HTTP-09", "BATCH-02")
@pytest.mark.requirement("HTTP-15", "HTTP-16", "HTTP-17", "HTTP-18", "HTTP-12", "BATCH-03", "LIFE-22")
@pytest.mark.parametrize("revision", HTTP_REVISIONS, ids=lambda revision: revision.version)
@pytest.mark.parametrize("session", ["", "Mcp_Session_Id", "MCP_SESSION_ID", "mcp_session_id"])
async def test_each_message_is_a_post_with_the_headers_it_needs(revision: Revision, session: str) -> None:
    stateless = not session
    async with connected(Echo(stateless=stateless, session_header=session, listens=False), revision=revision) as line:
        assert await line.call("echo", text="caf\u00e9") == "caf\u00e9"
        await line.transport.send(Response(7, result={}))
        await line.transport.listen()
    opening, *rest = line.web.visits
    methods = [visit.method for visit in line.web.visits]
    assert methods == ["POST", "POST", "POST", "POST", "GET"] + ["DELETE"] * (not stateless)
    assert [visit.message.get("method", "reply") for visit in line.web.seen("POST")] == [
        *("initialize", "notifications/initialized", "tools/call", "reply")
    ]
    assert not {"mcp-session-id", "mcp-protocol-version"} & set(opening.headers)
    assert {visit.headers["mcp-protocol-version"] for visit in rest} == {revision.version}
    assert {visit.headers.get("mcp-session-id") for visit in rest} == {None if stateless else "session-1!"}
    for visit in line.web.seen("POST"):
        assert visit.headers["content-type"] == "application/json"
        assert visit.headers["accept"] == "application/json, text/event-stream"
    assert line.web.seen("GET")[0].headers["accept"] == "text/event-stream"
    assert not any({"cookie", "referer", "origin"} & set(visit.headers) for visit in line.web.visits)
    assert {visit.headers["user-agent"] for visit in line.web.visits} == {f"mcphost/{__version__}"}


@pytest.mark.hostile("H02")
@pytest.mark.requirement("HTTP-13")
@pytest.mark.parametrize("given", ["a b", "caf\u00e9", "x" * 1025, "x" * 8000, "a\tb", "a\x7fb", "a, b"])
@pytest.mark.parametrize("answers", ["json", "sse"])
async def test_a_session_id_that_no_header_may_hold_ends_the_handshake(given: str, answers: str) -> None:
    def serve(talk: Talk) -> None:
        Echo(answers, stateless=True).say(talk, {"jsonrpc": "2.0", "id": 1, "result": {}}, Mcp_Session_Id=given)

    async with connected(serve, revision=None) as line:
        with pytest.raises(InvalidResult, match="session id") as caught:
            await line.ask("initialize")
    assert given not in str(caught.value)
    assert len(line.web.visits) == 1


@pytest.mark.hostile("H02")
@pytest.mark.requirement("HTTP-13")
async def test_a_session_id_over_two_lines_ends_the_handshake() -> None:
    """Folded lines may hide a header."""
    async with connected(spoiling("folded-session", "initialize"), revision=None) as line:
        with pytest.raises((InvalidResult, ConnectionLost)):
            await line.ask("initialize", HELLO)
    assert len(line.web.visits) == 1  # not even a farewell, which would name the session


@pytest.mark.hostile("H02", "H12")
@pytest.mark.requirement("HTTP-14", "SEC-09")
async def test_only_initialize_names_the_session_and_cookies_are_dropped() -> None:
    echo = Echo()

    def serve(talk: Talk) -> None:
        if talk.visit.body and talk.visit.message["method"] == "tools/call":
            echo_of = talk.headers.get("mcp-session-id", "")
            talk.whole(500, f"no {echo_of}".encode(), "text/plain", mcp_session_id="other", set_cookie="a=b; Path=/")
        else:
            echo(talk)

    async with connected(serve) as line:
        for _ in range(2):
            with pytest.raises(HttpStatusError) as caught:
                await line.call("echo", text="x")
            assert str(caught.value) == "the server answered HTTP 500 (text/plain): no \u2026"
    assert {visit.headers.get("mcp-session-id") for visit in line.web.visits[1:]} == {"session-1!"}
    assert not any("cookie" in visit.headers for visit in line.web.visits)


@pytest.mark.hostile("H02")
@pytest.mark.requirement("HTTP-09", "HTTP-14")
@pytest.mark.parametrize("answers", ["json", "sse"])
async def test_a_later_answer_cannot_change_the_session(answers: str) -> None:
    echo, others = Echo(answers), iter(["other", ""])

    def serve(talk: Talk) -> None:
        if _is_call(talk):
            echo.say(talk, answer(talk.visit.message["id"], "x"), Mcp_Session_Id=next(others))
        else:
            echo(talk)

    async with connected(serve) as line:
        for _ in range(2):
            assert await line.call("echo", text="x") == "x"
    assert {visit.headers.get("mcp-session-id") for visit in line.web.visits[1:]} == {"session-1!"}


@pytest.mark.hostile("H02")
@pytest.mark.requirement("HTTP-09", "HTTP-18", "LIFE-11")
@pytest.mark.parametrize("answers", ["json", "sse"])
@pytest.mark.parametrize("second", ["second", None])
async def test_the_session_is_that_of_the_handshake_that_succeeded(answers: str, second: str | None) -> None:
    """A refused attempt may name a session, too; the next attempt carries neither it nor a version."""
    echo = Echo(answers, stateless=True)

    def serve(talk: Talk) -> None:
        message = talk.visit.message or {}
        if message.get("method") != "initialize":
            echo(talk)
        elif message["id"] == 1:
            error = {"code": -32602, "message": "no", "data": {"supported": [V2025_06_18.version]}}
            echo.say(talk, {"jsonrpc": "2.0", "id": 1, "error": error}, Mcp_Session_Id="first")
        else:
            echo.say(talk, echo.plain(message), **({"Mcp_Session_Id": second} if second else {}))

    async with connected(serve, revision=None) as line:
        refused = await line.ask("initialize", HELLO)
        assert refused.error is not None
        await line.shake_hands(V2025_06_18)
        assert await line.call("echo", text="x") == "x"
    refused_visit, accepted, *rest = line.web.visits
    for visit in (refused_visit, accepted):
        assert not {"mcp-session-id", "mcp-protocol-version"} & set(visit.headers)
    assert {visit.headers.get("mcp-session-id") for visit in rest} == {second}
    assert {visit.headers["mcp-protocol-version"] for visit in rest} == {V2025_06_18.version}


@pytest.mark.hostile("H03")
@pytest.mark.requirement("HTTP-10")
async def test_a_forgotten_session_is_reported_and_nothing_repeated() -> None:
    echo = Echo()
    async with connected(echo) as line:
        echo.sessions.clear()
        for each in (line.call("echo", text="x"), line.transport.send(Notification("n"))):
            with pytest.raises(SessionExpired):
                await each
        assert len(line.web.seen("POST")) == 4


def _is_call(talk: Talk) -> bool:
    return bool(talk.visit.body) and talk.visit.message.get("method") == "tools/call"


@pytest.mark.parametrize(
    ("kind", "body", "forgotten"),
    [
        (JSON, b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"No valid session ID"}}', True),
        (JSON, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Server not initialized"}}', True),
        (JSON, b'{"error": "Invalid or expired session"}', True),
        (JSON, b'{"error": {"message": "unknown mcp-session-id"}}', True),
        (JSON, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID"}}', True),
        ("text/plain", b"Invalid session ID", True),
        (JSON, b'{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"which session?"}}', False),
        (JSON, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no version"}}', False),
        ("text/plain", b"bad header", False),
    ],
)
@pytest.mark.parametrize("status", [400, 410, 422])
async def test_many_servers_do_not_say_404_of_a_session_they_forgot(
    status: int, kind: str, body: bytes, forgotten: bool
) -> None:
    echo = Echo()
    async with connected(lambda talk: talk.whole(status, body, kind) if _is_call(talk) else echo(talk)) as line:
        (outcome,) = await asyncio.gather(line.ask("tools/call"), return_exceptions=True)
        assert isinstance(outcome, SessionExpired) is forgotten


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("forgotten", [True, False])
async def test_an_error_that_names_a_session_is_checked_with_a_ping(status: int, forgotten: bool) -> None:
    echo = Echo()

    def serve(talk: Talk) -> None:
        method = talk.visit.message.get("method") if talk.visit.body else ""
        if method == "tools/call" or (method == "ping" and forgotten):
            error = {"code": -32000, "message": "Session not found: session-1!"}
            talk.json({"jsonrpc": "2.0", "id": talk.visit.message["id"], "error": error}, status)
        else:
            echo(talk)

    async with connected(serve) as line:
        (outcome,) = await asyncio.gather(line.ask("tools/call"), return_exceptions=True)
    if forgotten:
        assert isinstance(outcome, SessionExpired)
        assert (outcome.refused, "session-1!" in str(outcome)) == (True, False)
    else:
        assert isinstance(outcome, Response)
        assert outcome.error is not None


async def test_an_error_about_sessions_is_an_answer_without_sessions() -> None:
    echo = Echo(stateless=True)
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session not found"}}'
    async with connected(lambda talk: talk.whole(400, body, JSON) if _is_call(talk) else echo(talk)) as line:
        assert (await line.ask("tools/call")).error is not None
        assert not [visit for visit in line.web.seen("POST") if visit.message["method"] == "ping"]


async def test_a_session_that_is_named_too_late_is_named_in_the_refusal() -> None:
    echo = Echo(stateless=True)

    def serve(talk: Talk) -> None:
        if _is_call(talk):
            talk.whole(400, b"Missing session id", "text/plain")
        elif talk.visit.body and talk.visit.message.get("method") == "ping":
            talk.result({}, Mcp_Session_Id="late")
        else:
            echo(talk)

    async with connected(serve) as line:
        await line.ask("ping")
        with pytest.raises(HttpStatusError, match=r": a later answer named a session, .*: Missing session id$"):
            await line.ask("tools/call")


@pytest.mark.parametrize("kind", ["body", "stream"])
async def test_an_answer_under_another_id_is_named(kind: str) -> None:
    def serve(talk: Talk) -> None:
        wrong = answer(str(talk.visit.message["id"]), "fine")
        if kind == "body":
            talk.json(wrong)
            return
        talk.begin_events()
        talk.events(wrong)
        talk.end_events()

    async with connected(serve, revision=None) as line:
        with pytest.raises(McphostError, match=r'it has the id "1" \(a text\) instead of 1$'):
            await line.ask("initialize")


async def test_a_lost_session_that_a_later_answer_renamed_says_so() -> None:
    echo = Echo()

    def serve(talk: Talk) -> None:
        if _is_call(talk):
            talk.whole(404)
        elif talk.visit.body and talk.visit.message.get("method") == "ping":
            talk.result({}, Mcp_Session_Id="another")
        else:
            echo(talk)

    async with connected(serve) as line:
        await line.ask("ping")
        with pytest.raises(SessionExpired, match=r"\(HTTP 404\); a later answer named another one"):
            await line.ask("tools/call")


@pytest.mark.parametrize(
    ("status", "kind", "body", "words"),
    [
        (400, JSON, b'{"error": "header X-Team is missing"}', r"HTTP 400 \(.*json\): header X-Team is missing$"),
        (402, JSON, b'{"message": "no credit"}', ": no credit$"),
        (403, JSON, b'{"error": {"code": 7, "message": "not from here"}}', ": not from here$"),
        (
            422,
            JSON,
            b'{"detail": [{"loc": ["body", "id"], "msg": "Field required", "type": "x"}]}',
            ": body.id: Field re",
        ),
        (400, "application/problem+json", b'{"type": "a:b", "title": "Bad", "detail": "No team."}', ": Bad: No team.$"),
        (400, JSON, b'{"Message": "Forbidden", "access_token": "tok-SECRET-1"}', ": Forbidden$"),
        (400, JSON, b'{"status": 400, "why": "no team"}', ': {"status": 400, "why": "no team"}$'),
        (400, JSON, b'{"error": "cut of', ': {"error": "cut of$'),
        (400, JSON, b'{"why": "not Bearer tok-SECRET-1"}', "not Bearer •••"),
        (400, "text/plain", b"plain words", ": plain words$"),
        (400, JSON, b'{"error": "' + b"x" * 300 + b'"}', ": x{200}…$"),
        (400, JSON, b"[" * 3000, r": \["),
    ],
)
async def test_a_refusal_quotes_what_its_body_says(status: int, kind: str, body: bytes, words: str) -> None:
    async with connected(lambda talk: talk.whole(status, body, kind), revision=None) as line:
        with pytest.raises(HttpStatusError, match=words) as refused:
            await line.ask("initialize")
        with pytest.raises(HttpStatusError, match=words):
            await line.transport.send(Notification("n"))
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "says"), [("7", "it asks to wait 7 s: slow down"), ("Thu, 01 Jan 2026 00:00:00 GMT", "until Thu, 01 Jan")]
)
async def test_a_refusal_says_when_to_try_again(given: str, says: str) -> None:
    def serve(talk: Talk) -> None:
        talk.whole(429, b'{"error": "slow down"}', JSON, retry_after=given)

    async with connected(serve, revision=None) as line:
        with pytest.raises(HttpStatusError, match=says):
            await line.ask("tools/call")


@pytest.mark.parametrize(
    ("events", "says"),
    [
        (b"event: answer\ndata: {answer}\n\n", r": an event called 'answer' is not a message$"),
        (b"data: {answer}\n", r": its last event has no empty line after it$"),
        (b"data: {answer}", r": its last event has no empty line after it$"),
        (b": nothing\n\n", "before the answer$"),
    ],
)
async def test_a_stream_that_ends_without_the_answer_says_what_was_in_it(events: bytes, says: str) -> None:
    def serve(talk: Talk) -> None:
        whole = json.dumps(answer(talk.visit.message["id"], "fine")).encode()
        talk.begin_events()
        talk.events(events.replace(b"{answer}", whole))
        talk.end_events()

    async with connected(serve, revision=None) as line:
        with pytest.raises(ConnectionLost, match=says):
            await line.ask("tools/call")


@pytest.mark.hostile("H12")
@pytest.mark.requirement("HTTP-12")
@pytest.mark.parametrize("way", ["405", "hang"])
async def test_leaving_is_quick_whatever_the_server_says(way: str, until: Until) -> None:
    echo = Echo()

    def serve(talk: Talk) -> None:
        if talk.command != "DELETE":
            echo(talk)
        elif way == "405":
            talk.whole(405)
        else:
            talk.linger()

    async with connected(serve) as line:
        waiting = asyncio.create_task(line.call("sleep"))
        await until(lambda: len(line.web.visits) == 3)
        began = time.monotonic()
        await asyncio.gather(line.transport.aclose(), line.transport.aclose())
        assert time.monotonic() - began < PROMPT
        with pytest.raises(ConnectionLost, match="mcphost closed the connection"):
            await waiting
        with pytest.raises(ConnectionLost, match="mcphost closed the connection"):
            await line.call("echo", text="x")
    assert len(line.web.seen("DELETE")) == 1


# Answers


@pytest.mark.requirement("HTTP-06", "HTTP-26")
@pytest.mark.parametrize("answers", ["json", "sse"])
async def test_what_comes_before_the_answer_arrives_in_order(answers: str) -> None:
    async with connected(Echo(answers)) as line:
        assert await line.call("notify", count=5) == "told"
        assert line.words == list("01234")
        assert await line.call("echo", text="y") == "y"
        connections = {visit.at for visit in line.web.visits}
    assert len(connections) <= 2  # a stream that ended needs no new connection


@pytest.mark.requirement("HTTP-21", "BATCH-05")
async def test_a_server_may_ask_before_it_answers(until: Until) -> None:
    async with connected(Echo()) as line:
        call = asyncio.create_task(line.call("ask"))
        await until(lambda: line.inbox.messages)
        question = line.inbox.messages[0]
        assert isinstance(question, Request)
        await line.transport.send(Response(question.id, result={}))
        assert await call == "replied"


@pytest.mark.requirement("HTTP-23")
async def test_silent_streams_hold_up_nobody(until: Until) -> None:
    async with connected(Echo()) as line:
        silent = [asyncio.create_task(line.call("sleep")) for _ in range(30)]
        listening = asyncio.create_task(line.transport.listen())
        await until(lambda: len(line.web.visits) == 33)
        assert await asyncio.wait_for(line.call("echo", text="x"), 15) == "x"
        for task in [*silent, listening]:
            task.cancel()
        await asyncio.wait(silent)
        await until(lambda: len(line.web.hung_up) == 31)


RIGHT = [
    *("keeps-open", "gzip", "zlib", "raw-deflate", "other-first", "answers-twice", "bad-event-first"),
]
REFUSED: list[tuple[str, type[McphostError], str]] = [
    ("html", HttpStatusError, r"HTTP 200 \(text/html\): <html>␛\[2J <b>hello</b>x{150,200}…$"),
    ("no-type", HttpStatusError, 'HTTP 200: {"jsonrpc":"2.0"}'),
    ("nothing", InvalidResult, "not JSON"),
    ("accepted", HttpStatusError, "HTTP 202: the server took the request and will not answer it"),
    ("no-content", HttpStatusError, "HTTP 204: the server took"),
    ("server-error", HttpStatusError, r"HTTP 502 \(text/html\): <h1>Bad ␛\]0;gateway</h1>␛"),
    ("teapot", HttpStatusError, r"HTTP 418 \(text/plain\): short and stout"),
    ("forbidden", HttpStatusError, "HTTP 403"),
    ("sign-in", AuthorizationRequired, "wants a sign-in"),
    ("scope", AuthorizationRequired, "wants more than this sign-in allows"),
    ("odd-status", HttpStatusError, "HTTP 799"),
    ("long-type", HttpStatusError, r"HTTP 200 \(text/y{20,80}"),
    ("gone", SessionExpired, "no longer knows"),
    ("not-json", InvalidResult, "not JSON"),
    ("not-an-answer", InvalidResult, "a batch"),
    ("utf-16", InvalidResult, "not UTF-8"),
    ("wrong-id", InvalidResult, "no response to this request"),
    ("string-id", InvalidResult, "no response to this request"),
    ("both", InvalidResult, "both a result and an error"),
    ("batch", InvalidResult, "a batch"),
    ("huge-body", MessageTooLarge, "over the limit of 100 kB"),
    ("endless-body", MessageTooLarge, "over the limit of 100 kB"),
    ("bomb", MessageTooLarge, "over the limit of 100 kB"),
    ("gzip-twice", InvalidResult, "content coding 'gzip, gzip'"),
    ("brotli", InvalidResult, "content coding 'br'"),
    ("broken-gzip", InvalidResult, "compressed body is broken"),
    ("gzip-cut", InvalidResult, "not JSON"),
    ("json-as-events", ConnectionLost, "ended the answer's stream before the answer"),
    ("ends-early", ConnectionLost, "ended the answer's stream before the answer"),
    ("event-bomb", ConnectionLost, "ended the answer's stream before the answer"),
    ("line-bomb", ConnectionLost, "ended the answer's stream before the answer"),
    ("invalid-answer", InvalidResult, "not an object"),
    ("huge-event", MessageTooLarge, "an event over the limit"),
    ("huge-other-event", MessageTooLarge, "perhaps this answer"),
    ("endless-event", MessageTooLarge, "perhaps this answer"),
    ("hangs-up", ConnectionLost, "closed the connection before"),
    ("half-a-body", ConnectionLost, "closed the connection before"),
    ("broken-chunks", ConnectionLost, "did not answer in HTTP"),
    ("no-http", ConnectionLost, "did not answer in HTTP: .*SSH-2.0"),
    ("huge-head", ConnectionLost, "did not answer in HTTP: .*8190 bytes"),
]


@pytest.mark.hostile("H08", "H10")
@pytest.mark.requirement("SSE-11", "HTTP-22")
@pytest.mark.parametrize("mode", RIGHT)
async def test_the_right_answer_is_found_among_other_messages(mode: str) -> None:
    async with connected(spoiling(mode)) as line:
        assert await asyncio.wait_for(line.call(), 15) == "right"
        assert await line.call("echo", text="x") == "x"


@pytest.mark.hostile("H07", "H08", "H09")
@pytest.mark.requirement("HTTP-25", "HTTP-27", "HTTP-32", "HTTP-33")
@pytest.mark.parametrize(("mode", "failure", "says"), REFUSED, ids=[mode for mode, *_ in REFUSED])
async def test_what_is_no_answer_fails_the_call_at_once_and_no_other(
    mode: str, failure: type[McphostError], says: str, loop_watchdog: LoopWatchdog
) -> None:
    async with connected(spoiling(mode)) as line:
        began = time.monotonic()
        with pytest.raises(failure, match=says) as caught:
            await line.call()
        assert time.monotonic() - began < PROMPT
        assert len(str(caught.value)) < 500
        assert await line.call("echo", text="x") == "x"
        assert len([v for v in line.web.seen("POST") if b'"act"' in v.body]) == 1
    assert loop_watchdog.longest < 0.3


@pytest.mark.hostile("H07", "H08")
@pytest.mark.requirement("SEC-07")
@pytest.mark.parametrize("mode", ["bomb", "endless-body", "endless-event", "million"])
async def test_what_has_no_end_costs_neither_memory_nor_time(mode: str, loop_watchdog: LoopWatchdog) -> None:
    """At the limits a user has; ten megabytes that stand for ten gigabytes, and bodies that never end."""
    async with connected(spoiling(mode), limits=TransportLimits()) as line:
        tracemalloc.start()
        began = time.monotonic()
        with pytest.raises((MessageTooLarge, InvalidResult)):
            await line.call()
        assert time.monotonic() - began < PROMPT
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 64 << 20
    assert loop_watchdog.longest < 0.25


@pytest.mark.requirement("HTTP-28", "MSG-16")
@pytest.mark.parametrize("mode", ["error-of-nobody", "error-null-id", "error-other-id", "error-with-200"])
async def test_an_error_in_the_body_is_the_answer_whatever_the_status(mode: str) -> None:
    async with connected(spoiling(mode)) as line:
        response = await line.ask("tools/call", {"name": "act", "arguments": {}})
        assert response.error is not None
        assert (response.error.code, response.error.message) == (-32602, "too \x1b[31mred")


@pytest.mark.requirement("HTTP-28")
async def test_an_unknown_method_is_no_forgotten_session() -> None:
    async with connected(spoiling("not-found-method")) as line:
        response = await line.ask("tools/call", {"name": "act", "arguments": {}})
        assert response.error is not None
        assert response.error.code == -32601


@pytest.mark.requirement("HTTP-08", "HTTP-17")
async def test_a_refused_notification_says_why() -> None:
    def serve(talk: Talk) -> None:
        error = {"code": -32000, "message": "Unsupported protocol version"}
        talk.json({"jsonrpc": "2.0", "error": error}, 400)

    async with connected(serve, revision=None) as line:
        with pytest.raises(HttpStatusError, match=r"HTTP 400: Unsupported protocol version \(-32000\)"):
            await line.transport.send(Notification("notifications/initialized"))


@pytest.mark.hostile("J11")
@pytest.mark.requirement("BATCH-01", "BATCH-06", "BATCH-07")
@pytest.mark.parametrize("mode", ["batch", "event-batch"])
async def test_batches_are_unpacked_where_the_revision_has_them(mode: str) -> None:
    async with connected(spoiling(mode), revision=V2025_03_26) as line:
        assert await line.call() == "right"
        assert line.words[0] == "in"
        assert len(line.inbox.problems) == (mode == "batch")


@pytest.mark.hostile("J11")
@pytest.mark.requirement("BATCH-04", "BATCH-07")
@pytest.mark.parametrize(
    ("mode", "revision", "says"),
    [
        ("empty-batch", V2025_03_26, "empty"),
        ("long-batch", V2025_03_26, "limit of 100"),
        ("batch", V2025_06_18, "only"),
    ],
)
async def test_a_batch_that_may_not_be_fails_the_call_it_came_for(mode: str, revision: Revision, says: str) -> None:
    async with connected(spoiling(mode), revision=revision) as line:
        with pytest.raises(InvalidResult, match=says):
            await line.call()
        assert len(line.inbox.problems) == 1


@pytest.mark.requirement("HTTP-26")
async def test_a_call_ends_with_its_answer_not_with_its_stream(until: Until) -> None:
    """And its connection is closed soon after, by us."""
    async with connected(spoiling("keeps-open")) as line:
        assert await asyncio.wait_for(line.call(), PROMPT) == "right"
        await until(lambda: line.web.hung_up, PROMPT)


# Giving up


@pytest.mark.hostile("H06")
@pytest.mark.requirement("HTTP-24")
@pytest.mark.parametrize("mode", ["silent", "silent-stream", "comments", "drips", "keeps-open"])
async def test_a_call_given_up_or_answered_closes_its_connection_at_once(mode: str, until: Until) -> None:
    async with connected(spoiling(mode)) as line:
        call = asyncio.create_task(line.call())
        await until(lambda: len(line.web.visits) == 3)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(call), 0.1)
        began = time.monotonic()
        call.cancel()
        await asyncio.wait([call])
        assert time.monotonic() - began < PROMPT
        if mode not in ("comments", "drips"):
            await until(lambda: line.web.hung_up)
        assert await line.call("echo", text="x") == "x"


async def test_what_is_not_open_says_so() -> None:
    transport = HttpTransport("http://127.0.0.1:1/", TransportLimits())
    for each in (transport.request(Request(1, "ping"), {}), transport.send(Notification("n")), transport.listen()):
        with pytest.raises(ConnectionLost, match="not open"):
            await each
    await transport.aclose()
