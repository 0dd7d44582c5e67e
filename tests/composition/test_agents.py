"""Many agents at the socket of one screen."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcphost.composition.agents import listen_for_agents
from mcphost.config import Config
from mcphost.host.consent.questions import Answer
from mcphost.host.dependencies import Dependencies
from mcphost.host.events import Event
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.serving import link
from tests.conftest import Until
from tests.host.agents.person import Person

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no Unix sockets")

AGENTS = 20
FORM = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
PUSH = {"name": "push", "inputSchema": {"type": "object"}}


@pytest.fixture
def folder() -> Iterator[Path]:
    made = tempfile.mkdtemp()  # a socket's path must be short
    yield Path(made)
    shutil.rmtree(made)


@asynccontextmanager
async def screen(folder: Path, person: Person, until: Until) -> AsyncIterator[Host]:
    async def no_transport(config: Config, name: str) -> Any:
        raise AssertionError

    parts = Dependencies(no_transport, person, "1", audit_path=folder / "audit.jsonl", answers=SCREEN_KINDS)
    async with Host(Config(), parts) as host:
        listening = asyncio.create_task(listen_for_agents(host, folder / "agents.sock", folder))
        await until((folder / "agents.sock").exists)
        yield host
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def begin(number: int, folder: Path) -> asyncio.StreamWriter:
    """A gate whose agent waits for a call, and its server for a form, while another call runs."""
    reader, writer = await asyncio.open_unix_connection(folder / "agents.sock")
    writer.write(link.Hello(role="gate", name=f"git-{number}", command=["git", str(number)], cwd="/w").line())
    assert link.read_from_screen(await reader.readline()) == link.Welcome()
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    writer.write(link.MessageCopy(source="agent", time=1.0, size=len(ping)).line() + ping)
    for message in (
        link.AgentNamed(name=f"agent-{number}", version="1"),
        link.CallAsked(call=1, request=1, definition=PUSH, arguments={}),
        link.InboxRequest(number=1, method="elicitation/create", params=FORM, call=1),
    ):
        writer.write(message.line())
    return writer


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


async def test_agents_that_come_and_go_leave_nothing_behind(folder: Path, until: Until) -> None:
    person, idle = Person(), list[Event]()
    async with screen(folder, person, until) as host:
        tasks, files = len(asyncio.all_tasks()), list[int]()
        for turn in range(3):
            writers = [await begin(turn * AGENTS + number, folder) for number in range(AGENTS)]
            await until(lambda: len(person.open) == 2 * AGENTS)
            assert len({session.agent.label for session in host.agents.sessions}) == AGENTS
            person.answer(Answer(True))
            await until(lambda: sum(session.waiting for session in host.agents.sessions) == AGENTS - 1)
            stop = host.bus.observe(idle.append)
            for _ in range(20):
                await asyncio.sleep(0)
            stop()
            for writer in writers:
                writer.close()
            await until(lambda: not host.agents.sessions and not person.open)
            await until(lambda: len(asyncio.all_tasks()) <= tasks and open_files() <= min(files, default=1000))
            files.append(open_files())  # the first turn opened the audit log
        assert idle == []
        assert all(call.state.ended for session in host.agents.ended for call in session.calls.values())
