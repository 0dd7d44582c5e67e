"""A host over a real server on the web."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcphost.config import Config
from mcphost.host.traffic.book import TrafficBook
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.http.sse_2024 import SseTransport
from mcphost.transports.http.streamable import HttpTransport
from tests.host.conftest import RecordingHost, ScriptedApprover, Step, settings
from tests.transports.http.http_connection import QUICK, Web


@asynccontextmanager
async def hosted(
    web: Web, *, policy: dict[str, str] | None = None, answers: tuple[Step, ...] = (), old: bool = False, **entry: Any
) -> AsyncIterator[RecordingHost]:
    """A host with the server `a`, ready."""
    traffic = TrafficBook()

    async def open_transport(config: Config, name: str) -> Transport:
        kind = SseTransport if old else HttpTransport
        return kind(web.url, TransportLimits(), timeouts=QUICK, observer=traffic.tap(name))

    config = settings(a={"url": web.url, **entry}, policy=policy)
    approver = ScriptedApprover(*answers)
    async with RecordingHost(config, approver, open_transport=open_transport, traffic=traffic) as running:
        await running.servers.ready()
        yield running
