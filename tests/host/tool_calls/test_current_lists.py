"""No call is made by a list that is known to be old, whatever became of listing it again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mcphost.config import Config
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer
from mcphost.host.tool_calls.call import CallState
from mcphost.protocol.wire.jsonrpc import ErrorObject, Request, Response
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.stdio.transport import Command, StdioTransport
from tests.conftest import Until
from tests.host.conftest import RecordingHost, ScriptedApprover, echo, settings, wire

pytestmark = pytest.mark.slow

SAY = {"text": "x"}


class Gate:
    """Requests for tools wait here while it is shut."""

    def __init__(self) -> None:
        self.waiting, self.opened = 0, asyncio.Event()


class Gated(StdioTransport):
    """Lists tools only once its gate is open."""

    gate: Gate

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        if request.method == "tools/list":
            self.gate.waiting += 1
            await self.gate.opened.wait()
        return await super().request(request, headers)


@asynccontextmanager
async def gated(record: Path, gate: Gate, **entry: float) -> AsyncIterator[RecordingHost]:
    async def open_transport(config: Config, name: str) -> Transport:
        server = config.servers[name]
        transport = Gated(Command(server.command or "", server.args), TransportLimits(exit_grace=0.1), os.environ)
        transport.gate = gate
        return transport

    config = settings(policy={"default": "allow"}, a=echo("--record", record, **entry))
    async with RecordingHost(config, open_transport=open_transport) as running:
        await running.servers.ready()
        yield running


@asynccontextmanager
async def shut_later(record: Path) -> AsyncIterator[tuple[RecordingHost, Gate]]:
    """A server that is up, whose gate was shut since."""
    gate = Gate()
    gate.opened.set()
    async with gated(record, gate) as running:
        gate.opened.clear()
        yield running, gate


async def test_a_call_waits_for_a_listing_that_somebody_else_began(tmp_path: Path, until: Until) -> None:
    async with shut_later(tmp_path / "wire") as (running, gate):
        running.servers["a"].listings.mark_stale("tools")
        await until(lambda: gate.waiting == 2)
        call = running.tool_calls.call("a", "echo", SAY)
        await running.servers["a"].ping()
        assert call.sent_at is None
        gate.opened.set()
        await running.end_of(call)
    assert (call.state, gate.waiting) == (CallState.DONE, 2)


async def test_a_listing_that_is_given_up_is_made_up_for(tmp_path: Path, until: Until) -> None:
    async with shut_later(tmp_path / "wire") as (running, gate):
        running.servers["a"].listings.mark_stale("tools")
        call = running.tool_calls.call("a", "echo", SAY)
        await until(lambda: gate.waiting == 2)
        call.cancel()
        await running.end_of(call)
        gate.opened.set()
        await until(lambda: len(wire(tmp_path / "wire", "tools/list")) == 2)
        assert running.catalog.tools("a")


@pytest.mark.hostile("L03")
async def test_tools_that_are_listed_too_slowly_for_the_start_come_later(tmp_path: Path, until: Until) -> None:
    gate = Gate()
    async with gated(tmp_path / "wire", gate, startup_timeout_sec=1.0) as running:
        assert "startup_timeout_sec = 1" in (running.servers["a"].notice or "")
        gate.opened.set()
        await until(lambda: bool(running.catalog.tools("a")))
        assert running.servers["a"].notice is None


class Unlisted(StdioTransport):
    """Lists its tools once."""

    lists = 0

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        if request.method == "tools/list":
            self.lists += 1
            if self.lists > 1:
                return Response(request.id, error=ErrorObject(-32603, "not now"))
        return await super().request(request, headers)


async def test_an_approval_is_asked_again_if_tools_cannot_be_listed() -> None:
    async def open_transport(config: Config, name: str) -> Transport:
        server = config.servers[name]
        return Unlisted(Command(server.command or "", server.args), TransportLimits(exit_grace=0.1), os.environ)

    config = settings(policy={"relist_sec": 0}, a=echo())
    always = Answer(True, lifetime=Lifetime.ALWAYS)
    async with RecordingHost(config, ScriptedApprover(always, Answer(True)), open_transport=open_transport) as running:
        await running.servers.ready()
        for _ in range(2):
            assert (await running.run("a", "echo", SAY)).state is CallState.DONE
        again = running.approver.questions[1]
    assert "it may have changed (listing the tools failed: not now" in again.rule
    assert "so that it is asked again; allowed by you, always" in again.rule
