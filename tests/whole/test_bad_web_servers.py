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

from mcphost.config import Config, Values
from mcphost.errors import McphostError
from mcphost.host import backoff
from mcphost.host.calls import Call, CallState
from mcphost.host.connection import Connection, ServerState
from mcphost.host.consent import DeclineAll
from mcphost.host.host import Host
from mcphost.tui.widgets.failure import failure_of
from mcphost.tui.widgets.server_card import card
from mcphost.wiring import fittings
from tests.conftest import LoopWatchdog, Until
from tests.transports.web_line import Echo, Talk, Visit, Web, redirecting, spoiling

READY, FAILED, RECONNECTING = ServerState.READY, ServerState.FAILED, ServerState.RECONNECTING
Serve = Callable[[Talk], None]


@asynccontextmanager
async def hosted(url: str, *, startup: float = 2.0, timeout: float = 0.4, **entry: Any) -> AsyncIterator[Host]:
    """A host with the server `a` at ``url``, once it is ready or has failed."""
    server = {"url": url, "startup_timeout_sec": startup, "tool_timeout_sec": timeout, **entry}
    config = Config.model_validate({"servers": {"a": server}, "policy": {"default": "allow"}}, strict=False)
    async with Host(config, fittings(DeclineAll("nobody asks"), Values({}))) as host:
        await host.ready()
        yield host


def words(host: Host) -> str:
    """What the card of the server says."""
    return "\n".join(f"{each.label} {each.value.plain}" for each in card(host.server("a"), host.now(), 0))


def posts(web: Web, method: str) -> list[Visit]:
    return [visit for visit in web.seen("POST") if visit.message.get("method") == method]


def is_told(connection: Connection, card_text: str, state: ServerState) -> bool:
    """Does the card say how it goes on, as fits the state?"""
    if state is FAILED:
        return connection.retry_at is None and "press r in the list of servers to try again" in card_text
    return connection.retry_at is not None and "or now with r" in card_text


# Servers that cannot be connected to


def answering(status: int, body: bytes = b"", kind: str = "text/html", **headers: Any) -> Serve:
    return lambda talk: talk.whole(status, body, kind, **headers)


def with_session(given: str) -> Serve:
    echo = Echo()
    return lambda talk: echo.say(talk, echo.plain(talk.visit.message), Mcp_Session_Id=given)


def to_the_old_way(told: str, status: int = 405) -> Serve:
    """Takes no POST, and opens the older transport's stream, on which it says ``told``."""

    def serve(talk: Talk) -> None:
        if talk.command != "GET":
            talk.whole(status)
            return
        talk.begin_events()
        talk.events(told.encode())
        talk.linger()

    return serve


def at_first(mode: str) -> Serve:
    return spoiling(mode, "initialize")


OUT_OF_TIME = "initialize timed out after 0.3 s"
CONNECTING: list[tuple[str, Serve, ServerState, str]] = [
    ("html", at_first("html"), FAILED, "HTTP 200 (text/html): <html>␛[2J <b>hello</b>xxx"),
    ("page-not-found", answering(404, b"<h1>No such page</h1>"), FAILED, "HTTP 404 (text/html): <h1>No such page</h1>"),
    ("no-type", at_first("no-type"), FAILED, "HTTP 200: {"),
    ("accepted", at_first("accepted"), FAILED, "HTTP 202: the server took the request and will not answer it"),
    ("forbidden", at_first("forbidden"), FAILED, "HTTP 403"),
    ("sign-in", at_first("sign-in"), FAILED, "wants a sign-in"),
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
    ("round", redirecting(307, lambda talk: "/mcp"), FAILED, "HTTP 307: it redirected more than 5 times"),
    ("elsewhere", redirecting(307, lambda talk: "http://evil.example/"), FAILED, "redirects to http://evil.example:80"),
    ("moved", redirecting(302, lambda talk: "/there"), FAILED, "redirects to /there, but not with the same method"),
    ("endpoint", to_the_old_way("event: endpoint\ndata: http://evil.example/m\n\n"), FAILED, "to another origin"),
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
    ("storm", at_first("storm"), RECONNECTING, OUT_OF_TIME),
    ("no-endpoint", to_the_old_way(": hm\n\n"), RECONNECTING, OUT_OF_TIME),
    ("old-silence", to_the_old_way("event: endpoint\ndata: /m\n\n", 202), FAILED, "HTTP 202"),
]


@pytest.mark.requirement("LIFE-20", "HTTP-33")
@pytest.mark.parametrize(("serve", "state", "says"), [row[1:] for row in CONNECTING], ids=[row[0] for row in CONNECTING])
async def test_what_is_no_server_is_said_on_the_card_and_tried_again_only_where_that_can_help(
    serve: Serve, state: ServerState, says: str, loop_watchdog: LoopWatchdog
) -> None:
    """H01, H02, H04, H05, H06, H07, H08, H09, H10, H11, before there is a session."""
    limits = {"message_bytes": 100_000} if "100 kB" in says else {}
    with Web(serve) as web:
        began = time.monotonic()
        startup = 0.3 if says is OUT_OF_TIME else 3.0
        async with hosted(web.url, startup=startup, limits=limits) as host:
            connection = host.server("a")
            assert time.monotonic() - began < 1.5
            assert connection.state is state, connection.reason
            assert says in words(host)
            assert is_told(connection, words(host), state), words(host)
            assert connection.retry_at is None or connection.retry_at - host.now() < 1
            assert connection.restarts == 1
        assert len(web.visits) <= 6
    assert loop_watchdog.longest < 0.3
