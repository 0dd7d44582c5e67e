"""Bad servers on the web, as their user meets them: the state, the words on the card, and whether it is tried again.

The host is put together as in the program; only its patience is shorter.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from mcphost.composition import dependencies
from mcphost.config import Config, Values
from mcphost.errors import McphostError
from mcphost.host.connections import reconnection as retry
from mcphost.host.connections.connection import Connection, ServerState
from mcphost.host.consent.questions import DeclineAll
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.tui.results.failure import failure_of
from mcphost.tui.servers.card import card
from tests.conftest import Until
from tests.loop_watchdog import LoopWatchdog
from tests.transports.http.http_connection import Echo, Talk, Visit, Web, redirecting, spoiling

READY, FAILED, RECONNECTING = ServerState.READY, ServerState.FAILED, ServerState.RECONNECTING
Serve = Callable[[Talk], None]


@asynccontextmanager
async def hosted(url: str, *, startup: float = 20.0, timeout: float = 20.0, **entry: Any) -> AsyncIterator[Host]:
    """A host with the server `a` at ``url``, once it is ready or has failed."""
    server = {"url": url, "startup_timeout_sec": startup, "tool_timeout_sec": timeout, **entry}
    config = Config.model_validate({"servers": {"a": server}, "policy": {"default": "allow"}}, strict=False)
    async with Host(config, dependencies(DeclineAll("nobody asks"), Values({}))) as host:
        await host.servers.ready()
        yield host


def words(host: Host) -> str:
    """Return the text of the server's card."""
    return "\n".join(f"{each.label} {each.value.plain}" for each in card(host.servers["a"], time.monotonic(), 0))


def posts(web: Web, method: str) -> list[Visit]:
    return [visit for visit in web.seen("POST") if visit.message.get("method") == method]


def names_next_step(connection: Connection, card_text: str, state: ServerState) -> bool:
    """Return True if the card names the next step that fits the state."""
    if state is FAILED:
        return connection.retry_at is None and "r retries now" in card_text
    return connection.retry_at is not None and "; r retries now" in card_text


# Servers that cannot be connected to


def answering(status: int, body: bytes = b"", kind: str = "text/html", **headers: Any) -> Serve:
    return lambda talk: talk.whole(status, body, kind, **headers)


def with_session(given: str) -> Serve:
    echo = Echo()
    return lambda talk: echo.say(talk, echo.plain(talk.visit.message), Mcp_Session_Id=given)


def older_transport(written: str, status: int = 405) -> Serve:
    """Takes no POST, and opens the older transport's stream, on which it says ``written``."""

    def serve(talk: Talk) -> None:
        if talk.command != "GET":
            talk.whole(status)
            return
        talk.begin_events()
        talk.events(written.encode())
        talk.linger()

    return serve


def at_first(mode: str) -> Serve:
    return spoiling(mode, "initialize")


OUT_OF_TIME = "initialize timed out after 0.2 s"
CONNECTING: list[tuple[str, Serve, ServerState, str]] = [
    ("html", at_first("html"), FAILED, "HTTP 200 (text/html): <html>␛[2J <b>hello</b>xxx"),
    ("page-not-found", answering(404, b"<h1>No such page</h1>"), FAILED, "HTTP 404 (text/html): <h1>No such page</h1>"),
    ("no-type", at_first("no-type"), FAILED, "HTTP 200: {"),
    ("accepted", at_first("accepted"), FAILED, "HTTP 202: the server took the request and will not answer it"),
    ("forbidden", at_first("forbidden"), FAILED, "HTTP 403"),
    ("truncated", at_first("not-json"), FAILED, "the server's answer is invalid: not JSON"),
    ("gzip-cut", at_first("gzip-cut"), FAILED, "not JSON: Unterminated string"),
    ("wrong-id", at_first("wrong-id"), FAILED, "holds no response to this request"),
    ("both", at_first("both"), FAILED, "both a result and an error"),
    ("refused", at_first("error-with-200"), FAILED, "the server refused initialize: too ␛[31mred (-32602)"),
    ("million", at_first("million"), FAILED, "objects and arrays in one message, over the limit of 50000"),
    ("million-numbers", at_first("million-numbers"), FAILED, "a batch, which only revision 2025-03-26 has"),
    ("bomb", at_first("bomb"), FAILED, "over the limit of 100 kB"),
    ("huge-event", at_first("huge-event"), FAILED, "an event over the limit of 100 kB"),
    ("endless-event", at_first("endless-event"), FAILED, "an event over the limit of 100 kB, perhaps this answer"),
    ("no-http", at_first("no-http"), FAILED, "did not answer in HTTP: Bad status line"),
    ("session", with_session("a b"), FAILED, "session id is too long, or holds what no header may hold"),
    ("long-session", with_session("x" * 5000), FAILED, "session id is too long, or holds what no header may hold"),
    ("round", redirecting(307, lambda talk: "/mcp"), FAILED, "HTTP 307: it redirected more than once"),
    ("elsewhere", redirecting(307, lambda talk: "http://evil.example/"), FAILED, "redirects to http://evil.example:80"),
    ("moved", redirecting(302, lambda talk: "/there"), FAILED, "redirects to /there, but not with the same method"),
    ("endpoint", older_transport("event: endpoint\ndata: http://evil.example/m\n\n"), FAILED, "to another origin"),
    ("server-error", answering(502, b"<h1>Bad gateway</h1>"), RECONNECTING, "HTTP 502 (text/html): <h1>Bad gateway"),
    ("too-many", answering(429, retry_after="99999999"), RECONNECTING, "HTTP 429"),
    ("later", answering(503, retry_after="Fri, 31 Dec 9999 23:59:59 GMT"), RECONNECTING, "HTTP 503"),
    ("long-ago", answering(503, retry_after="-5"), RECONNECTING, "HTTP 503"),
    ("some-day", answering(503, retry_after="some day"), RECONNECTING, "HTTP 503"),
    ("hangs-up", at_first("hangs-up"), RECONNECTING, "closed the connection before its answer was complete"),
    ("half-a-body", at_first("half-a-body"), RECONNECTING, "closed the connection before its answer was complete"),
    ("ends-early", at_first("ends-early"), RECONNECTING, "ended the answer's stream before the answer"),
    ("silent", at_first("silent"), RECONNECTING, OUT_OF_TIME),
    ("silent-stream", at_first("silent-stream"), RECONNECTING, OUT_OF_TIME),
    ("comments", at_first("comments"), RECONNECTING, OUT_OF_TIME),
    ("drips", at_first("drips"), RECONNECTING, OUT_OF_TIME),
    ("drips-body", at_first("drips-body"), RECONNECTING, OUT_OF_TIME),
    ("storm", at_first("storm"), RECONNECTING, OUT_OF_TIME),
    ("no-endpoint", older_transport(": hm\n\n"), RECONNECTING, OUT_OF_TIME),
    ("old-silence", older_transport("event: endpoint\ndata: /m\n\n", 202), FAILED, "HTTP 202"),
]


@pytest.mark.hostile("H01", "H02", "H04", "H05", "H06", "H07", "H08", "H09", "H10", "H11")
@pytest.mark.requirement("LIFE-20", "HTTP-33")
@pytest.mark.parametrize(
    ("serve", "state", "says"), [row[1:] for row in CONNECTING], ids=[row[0] for row in CONNECTING]
)
async def test_the_card_explains_a_bad_server_and_retries_only_if_useful(
    serve: Serve, state: ServerState, says: str, loop_watchdog: LoopWatchdog
) -> None:
    """Before there is a session."""
    limits = {"message_bytes": 100_000} if "100 kB" in says else {}
    with Web(serve) as web:
        began = time.monotonic()
        startup = 0.2 if says is OUT_OF_TIME else 20.0
        async with hosted(web.url, startup=startup, limits=limits) as host:
            connection = host.servers["a"]
            assert time.monotonic() - began < 10
            assert connection.state is state, connection.reason
            assert says in words(host)
            assert names_next_step(connection, words(host), state), words(host)
            assert connection.retry_at is None or connection.retry_at - time.monotonic() < 1
            assert connection.restarts == 1
        assert len(web.visits) <= 6
    assert loop_watchdog.longest < 0.3


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()[1]


@pytest.mark.hostile("H06")
@pytest.mark.requirement("LIFE-27", "HTTP-33")
@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://127.0.0.1:1/mcp", "nothing listens at 127.0.0.1:1; is the server running, and the url right?"),
        ("http://no-such-host.example/mcp", "no address is known for no-such-host.example:80; check the url"),
        ("http://127.0.0.1:{silent}/mcp", OUT_OF_TIME),
        ("https://127.0.0.1:{silent}/mcp", OUT_OF_TIME),
    ],
)
async def test_an_absent_server_is_retried_without_end(
    url: str, says: str, silent_port: int, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    async with hosted(url.format(silent=silent_port), startup=0.2 if says is OUT_OF_TIME else 20.0) as host:
        connection = host.servers["a"]
        assert connection.state is RECONNECTING
        assert says in words(host)
        assert names_next_step(connection, words(host), RECONNECTING)
        if says is not OUT_OF_TIME:
            monkeypatch.setattr(retry, "FIRST", 0.001)
            monkeypatch.setattr(retry, "LONGEST", 0.001)
            connection.start()
            await until(lambda: connection.restarts > 2 * retry.CRASHES)
            assert connection.state is not FAILED


# Certificates


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
CERTIFICATES: list[tuple[str, dict[str, Any], bool, str]] = [
    ("localhost", {}, False, "unable to get local issuer certificate; if its authority is your own, name its file in"),
    ("localhost", {"not_after": LONG_AGO}, True, "certificate has expired; it has to be renewed, unless the clock of"),
    ("other.example", {}, True, "not valid for 'localhost'; it is for another name: correct the url, or have one made"),
]


@pytest.mark.requirement("HTTP-29")
@pytest.mark.parametrize(("name", "more", "trusted", "says"), CERTIFICATES)
async def test_a_bad_certificate_is_explained_and_not_retried(
    name: str, more: dict[str, Any], trusted: bool, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, **more).configure_cert(tls)
    if trusted:
        authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with Web(Echo(), tls) as web:
        async with hosted(web.url) as host:
            assert (host.servers["a"].state, host.servers["a"].restarts) == (FAILED, 1)
            assert f"the certificate of localhost:{web.port} is not trusted: " in words(host)
            assert says in words(host)
        assert web.visits == []


@pytest.mark.hostile("C10")
@pytest.mark.parametrize(
    ("serve", "scheme", "says"),
    [(Echo(), "https", "no TLS with 127.0.0.1"), (at_first("no-http"), "http", "did not answer in HTTP")],
    ids=["plain", "odd"],
)
async def test_a_server_without_tls_is_not_retried_and_its_query_is_hidden(
    serve: Serve, scheme: str, says: str
) -> None:
    """The URL contains a token that is not declared as one."""
    with Web(serve) as web:
        async with hosted(f"{web.url.replace('http', scheme)}?k=s3cret", protocol="legacy") as host:
            assert (host.servers["a"].state, host.servers["a"].restarts) == (FAILED, 1)
            assert says in host.servers["a"].reason
            assert "s3cret" not in host.servers["a"].reason
        assert len(web.visits) <= 1


# Servers that come back, and servers that forget


@pytest.mark.hostile("H05")
@pytest.mark.requirement("LIFE-27", "HTTP-33")
async def test_an_outage_longer_than_a_crash_loop_is_waited_out(monkeypatch: pytest.MonkeyPatch, until: Until) -> None:
    monkeypatch.setattr(retry, "FIRST", 0.001)
    monkeypatch.setattr(retry, "LONGEST", 0.01)
    echo, outages = Echo(), iter(range(3 * retry.CRASHES * 2))  # each try is a probe and a handshake
    with Web(lambda talk: echo(talk) if next(outages, None) is None else talk.whole(503, retry_after="9999")) as web:
        async with hosted(web.url) as host:
            await until(lambda: host.servers["a"].ready)
            assert host.servers["a"].restarts >= 3 * retry.CRASHES


@pytest.mark.hostile("H03")
@pytest.mark.requirement("HTTP-10")
async def test_a_server_that_forgets_every_session_gets_three_more(until: Until) -> None:
    echo = Echo()

    def serve(talk: Talk) -> None:
        echo.sessions.clear()
        echo(talk)

    with Web(serve) as web:
        async with hosted(web.url) as host:
            connection = host.servers["a"]
            await until(lambda: connection.state is FAILED)
            assert "no longer knows this session (HTTP 404: Session not found) (tried several times" in words(host)
            assert names_next_step(connection, words(host), FAILED)
            assert len(posts(web, "initialize")) == retry.LOST_SESSIONS == 4
            assert not any("mcp-session-id" in visit.headers for visit in posts(web, "initialize"))
            connection.start()
            await until(lambda: len(posts(web, "initialize")) > 4)


# Calls that a server spoils


async def called(host: Host, tool: str = "act", **arguments: Any) -> ToolCall:
    """A call, ended."""
    call = host.tool_calls.call("a", tool, arguments)
    try:
        await call.result()
    except McphostError:
        assert call.state.ended
    return call


NO_ANSWER = "Connection lost"
NO_TIME = "Timed out: 1 s without an answer or progress"
CALLS: list[tuple[str, str, str]] = [
    ("html", "HTTP 200 came instead of an answer", "HTTP 200 (text/html)"),
    ("server-error", "HTTP 502 came instead of an answer", "HTTP 502 (text/html)"),
    ("accepted", "HTTP 202 came instead of an answer", "will not answer it"),
    ("odd-status", "HTTP 799 came instead of an answer", "HTTP 799"),
    ("not-json", "The answer is malformed", "not JSON"),
    ("half-a-body", NO_ANSWER, "before its answer was complete"),
    ("utf-16", "The answer is malformed", "not UTF-8"),
    ("wrong-id", "The answer is malformed", "no response to this request"),
    ("string-id", "The answer is malformed", "no response to this request"),
    ("million", "The answer is too large", "over the limit of 100 kB"),
    ("long-batch", "The answer is malformed", "a batch"),
    ("bomb", "The answer is too large", "over the limit of 100 kB"),
    ("endless-body", "The answer is too large", "over the limit of 100 kB"),
    ("endless-event", "The answer is too large", "an event over the limit of 100 kB"),
    ("broken-gzip", "The answer is malformed", "compressed body is broken"),
    ("brotli", "The answer is malformed", "content coding 'br'"),
    ("ends-early", NO_ANSWER, "ended the answer's stream before the answer"),
    ("no-http", NO_ANSWER, "did not answer in HTTP"),
    ("huge-head", NO_ANSWER, "did not answer in HTTP"),
    ("silent", NO_TIME, ""),
    ("silent-stream", NO_TIME, ""),
    ("comments", NO_TIME, ""),
    ("drips", NO_TIME, ""),
    ("drips-event", NO_TIME, ""),
    ("storm", NO_TIME, ""),
]


@pytest.mark.hostile("H04", "H06", "H07", "H08", "H09", "H10")
@pytest.mark.requirement("TIME-01", "HTTP-25", "HTTP-27")
@pytest.mark.parametrize(("mode", "headline", "says"), CALLS, ids=[row[0] for row in CALLS])
async def test_a_spoiled_answer_fails_its_call_and_the_next_call_works(
    mode: str, headline: str, says: str, until: Until, loop_watchdog: LoopWatchdog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is sent once, whatever becomes of it and of the connection."""
    monkeypatch.setattr(retry, "FIRST", 0.01)
    with Web(spoiling(mode)) as web:
        timeout = 1.0 if headline is NO_TIME else 20.0
        async with hosted(web.url, timeout=timeout, limits={"message_bytes": 100_000}) as host:
            call = await called(host)
            assert call.state is (CallState.TIMED_OUT if headline is NO_TIME else CallState.ERROR)
            failure = failure_of(call)
            assert failure is not None
            assert failure.headline == headline
            assert says in " ".join(quote.text for quote in failure.quotes)
            assert (host.servers["a"].state is READY) is (headline is not NO_ANSWER)
            await until(lambda: host.servers["a"].ready)
            assert (await called(host, "echo", text="x")).state is CallState.DONE
        sent = [visit.message["params"]["name"] for visit in posts(web, "tools/call")]
    assert sent == ["act", "echo"]
    assert len(web.seen("GET")) <= 4
    assert loop_watchdog.longest < 0.3
