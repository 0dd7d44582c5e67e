"""Which transport a URL was found to speak, remembered: within a run, over the next ones, and never wrongly."""

from __future__ import annotations

import asyncio
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcphost.composition import dependencies
from mcphost.composition.detected_transports import DetectedTransports
from mcphost.config import Config, ServerConfig, Values
from mcphost.config.state import StateStore
from mcphost.errors import AuthorizationRequired, ConnectionLost, HttpStatusError, McphostError
from mcphost.host.consent.questions import DeclineAll
from mcphost.protocol.wire.jsonrpc import Request
from mcphost.transports.http.detection import DetectedTransport, Kind
from mcphost.transports.http.sse_2024 import SseTransport
from mcphost.transports.http.streamable import HttpTransport
from tests.conftest import Until
from tests.memory_store import MemoryStore
from tests.transports.http.http_connection import HELLO, QUICK, SMALL, Echo, Inbox, Talk, Web, WebLine

OLD, NEW, SILENT = Echo(old=True), Echo(listens=False), Echo(stateless=True)
HELLOS = Request(1, "initialize", HELLO)


def detecting(url: str, remembered: Kind | None, learned: list[Kind]) -> DetectedTransport:
    return DetectedTransport(
        lambda: HttpTransport(url, SMALL, timeouts=QUICK),
        lambda: SseTransport(url, SMALL, timeouts=QUICK, endpoint_seconds=0.2),
        remembered=remembered,
        learned=learned.append,
    )


@pytest.mark.requirement("HTTP-30")
@pytest.mark.parametrize(
    ("remembered", "server", "came", "found"),
    [
        ("sse", OLD, ["GET", "POST"], "sse"),
        ("sse", NEW, ["GET", "POST"], "http"),
        ("sse", SILENT, ["GET", "POST"], "http"),
        ("http", OLD, ["POST", "GET", "POST"], "sse"),
        ("http", NEW, ["POST"], "http"),
    ],
)
async def test_a_remembered_transport_is_tried_first(
    remembered: Kind, server: Callable[[Talk], None], came: list[str], found: Kind
) -> None:
    learned: list[Kind] = []
    with Web(server) as web:
        line = WebLine(web, detecting(web.url, remembered, learned))
        await line.transport.open(line.inbox)
        await line.ask("initialize", HELLO)
        assert [visit.method for visit in web.visits] == came
        assert line.transport.own_stream is (found == "http")
        await line.transport.aclose()
    assert learned == [found]


def refusing(status: int, **headers: Any) -> Callable[[Talk], None]:
    return lambda talk: talk.whole(status, **headers)


NOTHING_SAID: list[tuple[Callable[[Talk], None] | None, type[McphostError]]] = [
    (None, ConnectionLost),
    (lambda talk: talk.connection.shutdown(2), ConnectionLost),
    (refusing(401, www_authenticate="Bearer"), AuthorizationRequired),
    (refusing(403), HttpStatusError),
    (refusing(429), HttpStatusError),
    (refusing(302, location="https://elsewhere.example/"), HttpStatusError),
    (refusing(503), HttpStatusError),
]
"""Behaviours of a server (None: it does not run), and the error that follows."""


@pytest.mark.requirement("HTTP-32", "HTTP-33")
@pytest.mark.parametrize("remembered", ["sse", "http"])
@pytest.mark.parametrize(("serve", "failure"), NOTHING_SAID)
async def test_an_outage_or_a_sign_in_says_nothing_about_the_transport(
    remembered: Kind, serve: Callable[[Talk], None] | None, failure: type[McphostError]
) -> None:
    learned: list[Kind] = []
    web = Web(serve or refusing(200))
    with web:
        transport = detecting(web.url, remembered, learned)
        if serve is not None:
            with pytest.raises(failure):
                await greet(transport)
    if serve is None:
        with pytest.raises(failure):
            await greet(transport)
    await transport.aclose()
    assert len({visit.method for visit in web.visits}) <= 1, "the other transport was tried"
    assert learned == []


async def greet(transport: Any) -> None:
    await transport.open(Inbox())
    await transport.request(HELLOS, {})


# Over runs.


async def a_run(state: Path | None, url: str, **entry: Any) -> list[str]:
    """One mcphost that connects once; returns the errors that its user sees."""
    told: list[str] = []
    server = ServerConfig.model_validate({"url": url, **entry})
    parts = dependencies(DeclineAll("no"), Values({}), state=state, report=told.append)
    transport = await parts.open_transport(Config(servers={"web": server}), "web")
    try:
        await greet(transport)
    except McphostError as error:
        told.append(type(error).__name__)
    await transport.aclose()
    await asyncio.get_running_loop().shutdown_default_executor()  # as at the end of a run
    return told


def kept(state: Path) -> list[str]:
    file = state / "transports.toml"
    return list(tomllib.loads(file.read_text())["urls"].values()) if file.exists() else []


async def first_method(state: Path | None, web: Web, **entry: Any) -> str:
    web.visits.clear()
    assert await a_run(state, web.url, **entry) == []
    return web.visits[0].method


def test_the_next_run_starts_with_the_detected_transport(tmp_path: Path) -> None:
    with Web(OLD) as web:
        methods = [asyncio.run(first_method(tmp_path, web)) for _ in range(2)]
        assert (methods, kept(tmp_path)) == (["POST", "GET"], ["sse"])
        file = tmp_path / "transports.toml"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        web.answer = NEW
        methods = [asyncio.run(first_method(tmp_path, web)) for _ in range(2)]
        assert (methods, kept(tmp_path)) == (["GET", "POST"], ["http"])
        web.answer = OLD
        asyncio.run(first_method(tmp_path, web))
    assert kept(tmp_path) == ["sse"]
    before = file.read_bytes()
    assert asyncio.run(a_run(tmp_path, web.url)) == ["ConnectionLost"]
    assert file.read_bytes() == before
    file.unlink()
    with Web(OLD) as web:
        assert asyncio.run(first_method(tmp_path, web)) == "POST"


@pytest.mark.parametrize(("transport", "serve", "method"), [("http", NEW, "POST"), ("sse", OLD, "GET")])
def test_what_the_configuration_says_asks_and_tells_nothing(
    tmp_path: Path, transport: str, serve: Echo, method: str
) -> None:
    (tmp_path / "transports.toml").write_text("= damaged")
    with Web(serve) as web:
        assert asyncio.run(first_method(tmp_path, web, transport=transport)) == method
    assert (tmp_path / "transports.toml").read_text() == "= damaged"


@pytest.mark.parametrize("content", ["urls = 3", "[urls]\nx = 'carrier pigeon'\ny = 5", "= damaged"])
def test_a_file_that_says_nothing_usable_is_begun_anew(tmp_path: Path, content: str) -> None:
    (tmp_path / "transports.toml").write_text(content)
    with Web(OLD) as web:
        told = asyncio.run(a_run(tmp_path, web.url))
    assert len(told) == ("damaged" in content)
    assert kept(tmp_path) == ["sse"]


def test_an_unusable_file_is_reported_and_does_not_fail(tmp_path: Path) -> None:
    (tmp_path / "transports.toml").symlink_to(tmp_path / "target")
    with Web(OLD) as web:
        told = asyncio.run(a_run(tmp_path, web.url))
    assert [sentence.split(",")[0] for sentence in told] == [
        "which transport a URL speaks could not be read",
        "which transport a URL speaks could not be saved",
    ]
    assert not (tmp_path / "target").exists()


def test_one_run_remembers_without_a_folder(tmp_path: Path) -> None:
    async def twice(web: Web) -> list[str]:
        parts = dependencies(DeclineAll("no"), Values({}))
        config = Config(servers={"web": ServerConfig(url=web.url)})
        for _ in range(2):
            web.visits.clear()
            transport = await parts.open_transport(config, "web")
            await greet(transport)
            await transport.aclose()
        return [visit.method for visit in web.visits]

    with Web(OLD) as web:
        assert asyncio.run(twice(web)) == ["GET", "POST"]


def test_a_verdict_that_is_forgotten_is_found_out_anew(tmp_path: Path) -> None:
    async def forgets(url: str) -> list[bool]:
        verdicts = DetectedTransports(StateStore(tmp_path, pytest.fail), pytest.fail)
        await verdicts.load()
        return [verdicts.forget(url), verdicts.forget(url)]

    with Web(OLD) as web:
        asyncio.run(a_run(tmp_path, web.url))
        assert asyncio.run(forgets(web.url)) == [True, False]
        assert kept(tmp_path) == []
        assert asyncio.run(first_method(tmp_path, web)) == "POST"


async def test_the_file_holds_no_secret_of_a_url(until: Until) -> None:
    store = MemoryStore()
    DetectedTransports(store, pytest.fail).learn("https://user:canary@h:8443/canary/mcp?token=canary", "sse")
    await until(lambda: bool(store.content))
    ((key, kind),) = store.content["urls"].items()
    assert (key.split()[0], kind) == ("https://h:8443", "sse")
    assert "canary" not in str(store.content)
