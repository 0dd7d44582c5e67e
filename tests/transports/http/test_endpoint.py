"""Exchanges over HTTP whatever engine is under httpx: redirects, proxies, authorities, timeouts, failures."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import trustme

from mcphost.errors import ConnectionLost, HttpStatusError
from mcphost.protocol.wire.jsonrpc import Notification
from mcphost.transports.base import TransportLimits
from mcphost.transports.http.endpoint import PhaseTimeouts, open_client
from mcphost.transports.http.failures import lost
from mcphost.transports.http.responses import PIECE, coding_of
from mcphost.transports.http.streamable import HttpTransport
from tests.transports.http.http_connection import PROMPT, Echo, Inbox, Talk, Web, WebLine, connected, redirecting
from tests.transports.processes import RecordingObserver

SECRETS = {"Authorization": "Bearer canary-1", "X-Api-Key": "canary-2"}
BRIEF = PhaseTimeouts(headers=0.3, ending=0.3)
"""Connecting is given its usual time: on a busy machine it takes longer than a test would wait for silence."""


async def opening(url: str, *, timeouts: PhaseTimeouts = BRIEF, headers: Mapping[str, str] | None = None) -> str:
    """Why a handshake with ``url`` fails."""
    with Web(Echo()) as unused:
        line = WebLine(unused, HttpTransport(url, TransportLimits(), timeouts=timeouts, headers=headers))
        try:
            await line.transport.open(line.inbox)
            await line.shake_hands()
        except ConnectionLost as lost:
            return str(lost)
        finally:
            await line.transport.aclose()
    pytest.fail("the handshake went well")


# Redirects


@pytest.mark.hostile("H01")
@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("where", ["/there", "there", "//{host}/there", "http://{host}/there"])
async def test_a_redirect_on_the_same_origin_keeps_method_body_and_headers(status: int, where: str) -> None:
    serve = redirecting(status, lambda talk: where.format(host=talk.headers["host"]))
    async with connected(serve, headers=SECRETS) as line:
        assert await line.call("echo", text="x") == "x"
        there = [visit for visit in line.web.visits if visit.path == "/there"]
        assert [visit.method for visit in there] == ["POST"] * 3
        assert {visit.headers["authorization"] for visit in there} == {"Bearer canary-1"}
        assert there[-1].headers["mcp-session-id"] == "session-1!"
    assert [visit.path for visit in line.web.seen("DELETE")] == ["/mcp", "/there"]
    assert len({visit.at for visit in line.web.seen("POST")}) == 1


@pytest.mark.hostile("H01")
@pytest.mark.requirement("HTTP-29")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("where", ["http://127.0.0.1:{port}/x", "http://localhost:{port}/x", "//127.0.0.1:{port}/x"])
async def test_a_redirect_to_another_origin_is_named_and_never_followed(status: int, where: str) -> None:
    with Web(Echo()) as canary:
        target = where.format(port=canary.port)
        async with connected(redirecting(status, lambda _: target), revision=None, headers=SECRETS) as line:
            with pytest.raises(HttpStatusError, match=f"HTTP {status}: .*:{canary.port}, which is another origin"):
                await line.shake_hands()
            assert len(line.web.visits) == 1
        assert canary.visits == []


@pytest.mark.hostile("H01")
@pytest.mark.requirement("HTTP-29")
@pytest.mark.parametrize(
    ("status", "where", "says"),
    [
        (302, "/there", "not with the same method"),
        (307, "/mcp", "redirected more than once"),
        (307, "file:///etc/passwd", "another origin"),
        (307, "https://{host}/there", "another origin"),
        (307, "http://user@{host}/there", "another origin"),
        (307, "http://x:99x/", r"^127.0.0.1:\d+ redirects to an address that cannot be used; correct the url$"),
        (307, "javascript:alert(1)", r"^127.0.0.1:\d+ redirects to an address that cannot be used; correct the url$"),
        (307, "mailto:a@b", "redirects to an address that cannot be used"),
    ],
)
async def test_a_redirect_to_an_unusable_address_is_refused(status: int, where: str, says: str) -> None:
    serve = redirecting(status, lambda talk: where.format(host=talk.headers["host"]))
    async with connected(serve, revision=None) as line:
        with pytest.raises((HttpStatusError, ConnectionLost), match=says):
            await line.shake_hands()
        assert len(line.web.visits) <= 2


@pytest.mark.requirement("HTTP-29")
async def test_redirects_of_calls_and_streams_are_bounded() -> None:
    echo = Echo()

    def serve(talk: Talk) -> None:
        if talk.command == "POST" and b"tools/call" not in talk.visit.body:
            echo(talk)
        else:
            talk.whole(307, location=f"{talk.path}x")

    async with connected(serve) as line:
        with pytest.raises(HttpStatusError, match="redirected more than once; correct the url"):
            await line.call("echo", text="x")
        assert [visit.path for visit in line.web.seen("POST")[-2:]] == ["/mcp", "/mcpx"]
        with pytest.raises(HttpStatusError, match="redirected more than 5 times"):
            await line.transport.listen()
        assert [visit.path for visit in line.web.seen("GET")] == [f"/mcp{'x' * times}" for times in range(6)]
    assert sum(b"tools/call" in visit.body for visit in line.web.visits) == 2


@pytest.mark.hostile("H01")
@pytest.mark.requirement("HTTP-29")
async def test_a_redirect_to_another_origin_takes_nothing_along() -> None:
    """For a call, the stream that is listened to, and the farewell."""
    echo = Echo()
    with Web(Echo()) as canary:

        def serve(talk: Talk) -> None:
            if talk.command == "POST" and b"tools/call" not in talk.visit.body:
                echo(talk)
            else:
                talk.whole(307, location=f"http://127.0.0.1:{canary.port}/mcp")

        async with connected(serve, headers=SECRETS) as line:
            for each in (line.call("echo", text="x"), line.transport.listen()):
                with pytest.raises(HttpStatusError, match="another origin"):
                    await each
        assert [visit.method for visit in line.web.visits] == ["POST", "POST", "POST", "GET", "DELETE"]
        assert canary.visits == []


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """An authority that only these tests trust."""
    return trustme.CA()


@pytest.fixture(scope="module")
def tls(authority: trustme.CA) -> ssl.SSLContext:
    """The TLS context of a server at localhost."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    return context


@pytest.mark.requirement("HTTP-29")
async def test_an_untrusted_certificate_is_refused_with_the_reason(
    tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")  # by the authorities that are trusted without it
    with Web(Echo(), tls) as web:
        why = await opening(web.url)
        assert web.visits == []
    assert (
        f"the certificate of localhost:{web.port} is not trusted: unable to get local issuer certificate; if its" in why
    )
    assert "SSL_CERT_FILE" in why


async def test_an_authority_of_the_environment_is_trusted(
    authority: trustme.CA, tls: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(trusted))
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    async with connected(Echo("sse"), tls=tls) as line:
        assert await line.call("echo", text="x") == "x"
    with Web(Echo(), tls) as web:
        assert "IP address mismatch" not in await opening(web.url.replace("localhost", "127.0.0.2"), headers={})


async def test_a_file_of_authorities_that_is_not_there_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    assert "cannot be used" in await opening("https://127.0.0.1:1/")


# What failures say


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()[1]


@pytest.mark.hostile("H06")
async def test_each_failure_of_the_wire_is_a_sentence_to_act_on(silent_port: int) -> None:
    with Web(Echo()) as web:
        assert "no TLS with 127.0.0.1" in await opening(web.url.replace("http", "https"))
        free = web.port
    began = time.monotonic()
    assert await opening(f"https://127.0.0.1:{silent_port}/", timeouts=PhaseTimeouts(connect=0.3)) == (
        f"127.0.0.1:{silent_port} could not be connected to in the time it had"
    )
    assert time.monotonic() - began < PROMPT
    assert f"nothing listens at 127.0.0.1:{free}; is the server running" in await opening(f"http://127.0.0.1:{free}/")
    assert f"nothing listens at [::1]:{free}" in await opening(f"http://[::1]:{free}/?token=s3cret")
    assert "no address is known for no-such-host.example:80" in await opening("http://no-such-host.example/")


@pytest.mark.parametrize(
    ("url", "says"),
    [("ftp://x/", "must start with http"), ("http:///x", "names no host"), ("http://x:99x/", "cannot be")],
)
async def test_an_unusable_url_is_explained(url: str, says: str) -> None:
    assert says in await opening(url)


async def test_headers_that_could_add_headers_are_never_sent() -> None:
    with Web(Echo()) as web:
        assert "s3cret" not in await opening(web.url, headers={"X-Key": "s3cret\r\nX-More: 1"})
        assert web.visits == []


@pytest.mark.hostile("H06")
async def test_a_notification_is_not_waited_for_without_end(silent_port: int) -> None:
    transport = HttpTransport(f"http://127.0.0.1:{silent_port}/", TransportLimits(), timeouts=BRIEF)
    await transport.open(Inbox())
    with pytest.raises(ConnectionLost, match="sent nothing in the time it had"):
        await asyncio.wait_for(transport.send(Notification("n")), 15)
    await transport.aclose()


@pytest.mark.hostile("H06")
@pytest.mark.parametrize("status", [202, 500])
async def test_a_body_that_stops_halfway_delays_its_message_alone(status: int) -> None:
    """The time to read is over once and for all, and whoever reads on would never let go of the loop."""

    def serve(talk: Talk) -> None:
        talk.head(status, content_type="application/json", content_length=9)
        talk.raw(b"{")
        talk.linger()

    async with connected(serve, revision=None, timeouts=BRIEF) as line:
        sending = asyncio.create_task(line.transport.send(Notification("n")))
        assert await asyncio.wait({sending}, timeout=PROMPT) == ({sending}, set())
        assert isinstance(sending.exception(), ConnectionLost) is (status == 500)


# Proxies


def proxying(talk: Talk) -> None:
    if talk.command == "CONNECT":
        talk.whole(403)
    else:
        Echo(stateless=True)(talk)


async def shaken(web: Web, url: str) -> None:
    """Shake hands with ``url``."""
    line = WebLine(web, HttpTransport(url, TransportLimits(), timeouts=BRIEF))
    await line.transport.open(line.inbox)
    await line.shake_hands()
    await line.transport.aclose()


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
async def test_a_proxy_of_the_environment_is_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Web(proxying) as proxy:
        monkeypatch.setenv(name, f"http://user:p%40ss@127.0.0.1:{proxy.port}")
        await shaken(proxy, "http://server.example:81/mcp?a=b")
        assert {visit.path for visit in proxy.visits} == {"http://server.example:81/mcp?a=b"}
        assert proxy.visits[0].headers["proxy-authorization"] == "Basic dXNlcjpwQHNz"


@pytest.mark.parametrize("exempt", ["server.example", "*", "other, server.example"])
async def test_no_proxy_is_heeded(exempt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Web(proxying) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", exempt)
        assert "server.example" in await opening("http://server.example/mcp")  # no test finds the address of a name
        assert proxy.visits == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_no_proxy_is_a_way_to_a_server_on_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Web(proxying) as proxy, Web(Echo()) as web:
        for name in ("HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await shaken(web, f"http://{host}:{web.port}/mcp")
        assert proxy.visits == []
        assert web.visits != []


async def test_a_proxy_that_fails_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with Web(proxying) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:s3cret@127.0.0.1:{proxy.port}")
        why = await opening("https://server.example/")
        assert "the proxy of the environment refused" in why
        assert "s3cret" not in why
    assert "nothing listens at the proxy" in await opening("https://server.example/")
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:1")
    assert "socks5 proxy" in await opening("https://server.example/")


# The client itself


@pytest.mark.parametrize("path", ["/a%2Fb?c=%2F&d=e+f", "/caf%C3%A9?x=%41"])
async def test_a_url_is_asked_for_as_it_was_written(path: str) -> None:
    with Web(lambda talk: talk.whole(200)) as web:
        async with open_client(web.url, BRIEF) as client:
            await client.get(f"http://127.0.0.1:{web.port}{path}")
        assert web.visits[0].path == path
        assert web.visits[0].headers["user-agent"].startswith("mcphost/")


async def test_the_client_of_httpx_raises_errors_of_httpx(silent_port: int) -> None:
    async with open_client("http://127.0.0.1/", BRIEF) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get("http://127.0.0.1:1/")
        with pytest.raises(httpx.ReadTimeout):
            await client.get(f"http://127.0.0.1:{silent_port}/", timeout=httpx.Timeout(10, read=0.05))


class Renewing(httpx.Auth):
    """Knows an old token, and a new one once the old one is refused."""

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = "Bearer old"
        response = yield request
        if response.status_code == 401:
            request.headers["Authorization"] = "Bearer new"
            yield request


async def test_a_token_may_be_renewed_below_the_transport() -> None:
    echo = Echo()

    def serve(talk: Talk) -> None:
        echo(talk) if talk.headers["authorization"] == "Bearer new" else talk.whole(401)

    async with connected(serve, auth=Renewing()) as line:
        assert await line.call("echo", text="x") == "x"
    assert line.web.seen("DELETE")[-1].headers["authorization"] == "Bearer new"


class Slow(httpx.Auth):
    """Takes its time over one request, before or after it is sent."""

    def __init__(self, when: str) -> None:
        self.when, self.waits, self.go_on = when, asyncio.Event(), asyncio.Event()

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if self.when == "before":
            await self._wait()
        yield request
        if self.when == "after":
            await self._wait()

    async def _wait(self) -> None:
        self.waits.set()
        await self.go_on.wait()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_request_held_by_a_sign_in_is_not_sent_after_closing(when: str) -> None:
    auth = Slow(when)
    async with connected(redirecting(307, lambda _: "/there"), revision=None, auth=auth) as line:
        asking = asyncio.create_task(line.ask("ping"))
        await auth.waits.wait()
        await line.transport.aclose()
        auth.go_on.set()
        with pytest.raises(ConnectionLost, match="mcphost closed the connection"):
            await asking
        assert len(line.web.visits) == (when == "after")


@pytest.mark.requirement("HTTP-14")
@pytest.mark.parametrize("answers", ["json", "sse"])
async def test_every_exchange_is_observed_without_secrets(answers: str) -> None:
    observer = RecordingObserver()
    async with connected(Echo(answers), observer=observer, headers=SECRETS) as line:
        await line.call("echo", text="seen")
    assert [json.loads(text).get("id") for text in observer.of("sent")] == [1, None, 2]
    assert [json.loads(text)["id"] for text in observer.of("received")] == [1, 2]
    heads = observer.of("http")
    assert [head.split()[0] for head in heads] == ["POST", "HTTP"] * 3
    assert not any(word in head for head in heads for word in ("session-1!", "canary"))


@pytest.mark.hostile("H08")
@pytest.mark.parametrize("step", [1, 1000, 1_000_000])
def test_a_compressed_body_comes_in_bounded_pieces(step: int) -> None:
    whole = bytes(range(256)) * 4000
    packed = gzip.compress(whole)
    coding = coding_of(" GZip ")
    pieces = [piece for at in range(0, len(packed), step) for piece in coding.pieces(packed[at : at + step])]
    assert b"".join(pieces) == whole
    assert max(map(len, pieces)) <= PIECE


def found_broken_after_a_while() -> None:
    try:
        raise TimeoutError  # nothing came, so the connection is looked at
    except TimeoutError:
        raise httpx.RemoteProtocolError("its body is broken") from None


def test_a_body_that_breaks_later_is_reported_the_same() -> None:
    with pytest.raises(httpx.RemoteProtocolError) as noticed:
        found_broken_after_a_while()
    told = lost(noticed.value, httpx.URL("http://127.0.0.1:8000/mcp"))
    assert str(told) == "127.0.0.1:8000 did not answer in HTTP: its body is broken; is the url right?"
    assert told.lasting
