from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import MessageTooLarge
from mcphost.redaction import MASK, safe_url
from mcphost.transports.base import TransportLimits
from mcphost.transports.http.endpoint import HEADER_CHARACTERS, HEADERS, request_head, response_head
from mcphost.transports.stdio.transport import StdioTransport
from tests.conftest import PythonServer, Until
from tests.transports.processes import FAST, Line, RecordingObserver


@asynccontextmanager
async def observed(
    server: PythonServer, script: str, *args: object, limits: TransportLimits = FAST
) -> AsyncIterator[tuple[Line, RecordingObserver]]:
    observer = RecordingObserver()
    line = Line(StdioTransport(server(script, *args), limits, dict(os.environ), observer=observer))
    await line.transport.open(line.inbox)
    try:
        yield line, observer
    finally:
        await line.transport.aclose()


async def test_both_directions_are_reported_as_the_bytes_on_the_wire(
    python_server: PythonServer, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    async with observed(python_server, "echo.py", "--record", record) as (line, observer):
        for text in ("héllo", "two\nlines"):
            await line.call("echo", text=text)
    assert [kind for kind, _ in observer.records] == ["sent", "received"] * 2
    assert observer.of("sent") == record.read_text("utf-8").split("\n")[:2]
    assert [json.loads(text)["id"] for text in observer.of("received")] == [1, 2]


async def test_stray_lines_and_stderr_are_reported_in_order(python_server: PythonServer, until: Until) -> None:
    async with observed(python_server, "hostile.py", "garbage-first") as (line, observer):
        await line.ask("initialize", {"protocolVersion": "2025-11-25"})
    assert len(observer.of("received")) == 11
    assert '"result"' in observer.of("received")[-1]
    async with observed(python_server, "hostile.py", "crash-at-start") as (line, observer):
        await until(lambda: bool(line.inbox.ends))
    assert observer.records == [("stderr", text) for text in line.inbox.lines]
    assert len(observer.records) == 30


@pytest.mark.requirement("SEC-07")
async def test_a_message_over_the_limit_is_reported_by_its_start(python_server: PythonServer) -> None:
    limits = TransportLimits(message_bytes=10_000, exit_grace=1.0)
    async with observed(python_server, "hostile.py", "long-line", "--bytes", 50_000, limits=limits) as (line, observer):
        with pytest.raises(MessageTooLarge):
            await line.call()
    (report,) = observer.of("malformed")
    assert report.startswith("a message over the limit of 10 kB: {")
    assert len(report) < 1000


CANARY = "canary-0123456789"


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09")
@pytest.mark.parametrize(
    "name",
    ["Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "Mcp-Session-Id", "X-Api-Key", "X-Auth-Token"],
)
def test_a_secret_header_is_named_and_its_value_is_not(name: str) -> None:
    head = response_head(200, "OK", [(name, f"Bearer {CANARY}"), ("Content-Type", "text/plain")])
    assert head.split("\n") == ["HTTP 200 OK", f"{name}: {MASK}", "Content-Type: text/plain"]


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09")
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:canary@h/mcp?a=1", "https://h/mcp?a=1"),
        ("https://h/messages?session_id=canary&b=2", f"https://h/messages?session_id={MASK}&b=2"),
        ("https://h/cb?code=canary&state=canary", f"https://h/cb?code={MASK}&state={MASK}"),
        ("https://h/cb#access_token=canary", f"https://h/cb#access_token={MASK}"),
        ("/messages?sessionId=canary", f"/messages?sessionId={MASK}"),
        ("https://h/@scope/pkg?decode=x", "https://h/@scope/pkg?decode=x"),
    ],
)
def test_a_url_is_reported_without_its_secrets(url: str, shown: str) -> None:
    assert safe_url(url) == shown
    assert request_head("POST", url, [("Location", url)]) == f"POST {shown}\nLocation: {shown}"


def test_a_head_is_bounded_and_a_challenge_is_shown() -> None:
    headers: list[Any] = [("X-Long", "x" * 10_000), ("WWW-Authenticate", 'Bearer scope="a"')] * 100
    lines = response_head(401, "", headers).split("\n")
    assert lines[0] == "HTTP 401"
    assert len(lines) == 1 + HEADERS + 1
    assert lines[1] == f"X-Long: {'x' * HEADER_CHARACTERS}…"
    assert lines[2] == 'WWW-Authenticate: Bearer scope="a"'
