from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from mcphost.client.client import Client, Identity, RequestTimeouts
from mcphost.protocol.lifecycle.revisions import HANDSHAKE_REVISIONS, Revision
from tests.client.scripted import Answer, Notes, ScriptedTransport

BRIEF, PATIENT = RequestTimeouts(idle=0.05, hard=0.5), RequestTimeouts(idle=20, hard=30)
OFFERED: dict[str, Any] = {"tools": {"listChanged": True}, "logging": {}}


@dataclass(frozen=True, slots=True)
class Line:
    """A client, its scripted server, and the record of its observer."""

    client: Client
    server: ScriptedTransport
    notes: Notes


Connect = Callable[..., Awaitable[Line]]
Draw = Callable[..., Line]


@pytest.fixture(params=HANDSHAKE_REVISIONS, ids=lambda revision: revision.version)
def revision(request: pytest.FixtureRequest) -> Revision:
    given: Revision = request.param
    return given


@pytest.fixture
async def draw() -> AsyncIterator[Draw]:
    """`draw(script, **client)`: a line that is not connected yet; it is closed when the test ends."""
    lines: list[Line] = []

    def make(script: dict[str, Answer], **more: Any) -> Line:
        server, notes = ScriptedTransport(script), Notes()
        line = Line(Client(server, notes, Identity("1.0"), **{"timeouts": PATIENT, **more}), server, notes)
        lines.append(line)
        return line

    yield make
    for line in lines:
        await line.client.aclose()


def hello(revision: Revision, **more: Any) -> dict[str, Any]:
    return {"protocolVersion": revision.version, "capabilities": OFFERED, "serverInfo": {"name": "s"}, **more}


@pytest.fixture
async def connect(draw: Draw, revision: Revision) -> Connect:
    """`await connect(script, **client)`: a line whose session is open under each revision in turn."""

    async def open_line(script: dict[str, Answer] | None = None, **more: Any) -> Line:
        line = draw({"initialize": hello(revision), "ping": {}, **(script or {})}, **more)
        await line.client.connect(5)
        return line

    return open_line
