"""Many agents at the socket of one screen."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcphost.composition.agents import listen_for_agents
from mcphost.composition.gate_decisions import GateDecisions, LocalConsent
from mcphost.config import Config
from mcphost.config.gated import GatedProgram
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.gated_calls import GatedServer
from mcphost.host.consent.questions import Answer, ToolCallQuestion
from mcphost.host.dependencies import Dependencies
from mcphost.host.events import Event
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.serving import link
from mcphost.serving.gate import GateAction
from mcphost.serving.ports import GateDecision
from mcphost.shim import Observer
from tests.conftest import Until
from tests.host.agents.person import Person
from tests.serving.agent_twins import AGENTS as TWINS
from tests.serving.agent_twins import AgentTwin, TwinSession

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


class AskingGate:
    """Hands the decisions of a gate's process to the gate of a twin."""

    def __init__(self, session: TwinSession) -> None:
        self._session = session

    def decide(self, call: int, decision: GateDecision) -> None:
        self._session.rig.decide(decision, call)
        self._session.agent.run()

    def reply(self, number: int, result: Mapping[str, Any] | None, error: Mapping[str, Any] | None) -> None:
        raise AssertionError


@asynccontextmanager
async def linked(twin: AgentTwin, folder: Path) -> AsyncIterator[TwinSession]:
    """An agent at a gate that finds its screen as a gate's process does; only the pipes and the clock are scripted."""
    session, path = TwinSession(twin), folder / "agents.sock"
    hello = link.Hello(role="gate", name="echo", given=twin.name, command=["echo"], cwd="/w")
    observer = Observer(hello.line, lambda: str(path), lambda: lambda line: None)
    local = LocalConsent(lambda: (Config(), []), lambda: folder, {}, ["mcphost", "allow"], str, lambda note: None)
    server, agent = GatedServer("echo", GatedProgram(("echo",), folder="/w")), AgentFacts(twin.name, given=twin.name)
    decisions = GateDecisions(AskingGate(session), observer, path, server, agent, local, lambda: None)
    actions: asyncio.Queue[GateAction | None] = asyncio.Queue()
    for fact in session.rig.facts:
        actions.put_nowait(fact)
    session.rig.forward = actions.put_nowait
    running = asyncio.create_task(decisions.run(actions))
    observer.open()
    try:
        yield session
    finally:
        actions.put_nowait(None)
        await running
        await asyncio.to_thread(observer.close)


@pytest.mark.parametrize("twin", TWINS, ids=str)
async def test_the_audit_log_has_every_decision_about_an_agent(twin: AgentTwin, folder: Path, until: Until) -> None:
    person = Person()
    async with AsyncExitStack() as stack, linked(twin, folder) as session:
        await stack.enter_async_context(screen(folder, person, until))

        async def asked(number: int) -> int:
            request = session.agent.call(n=number)
            await until(lambda: person.open)
            question = person.open[0][0]
            assert isinstance(question, ToolCallQuestion)
            assert (question.arguments, question.origin) == ({"n": number}, f"agent:{twin.name}")
            return request

        yes = await asked(1)
        person.answer(Answer(True))
        await until(lambda: session.server.calls)
        session.finish()
        no = await asked(2)
        person.answer(Answer(False, reason="not today"))
        await until(lambda: no in session.agent.answers)
        edited = await asked(3)
        person.answer(Answer(True, arguments={"n": 30}))
        await until(lambda: len(session.server.calls) == 2)
        session.finish()
        session.agent.cancel(await asked(4))
        await until(lambda: not person.open)
        alone = await asked(5)
        await stack.aclose()
        await until(lambda: alone in session.agent.answers)
        session.agent.end()
    texts = [session.text(each) for each in (yes, no, edited, alone)]
    for text, words in zip(
        texts, ("done", "not today", "changed the arguments", "mcphost allow echo:echo"), strict=True
    ):
        assert words in text
    assert [each["params"]["arguments"] for each in session.server.calls] == [{"n": 1}, {"n": 30}]
    records = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    assert {each["agent"] for each in records} == {twin.name}
    decisions = [(each["by"], each["allowed"], each["arguments"]) for each in records if each["event"] == "decision"]
    assert decisions == [
        ("user", True, {"n": 1}),
        ("user", False, {"n": 2}),
        ("user", True, {"n": 30}),
        ("policy", False, {"n": 5}),
    ]
    outcomes = [each["outcome"] for each in records if each["event"] == "outcome"]
    assert outcomes == ["done", "done", "withdrawn", "withdrawn"]


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
